"""Kinds of groups besides classic ones, by their records, and what every kind can be asked."""

from enum import Enum
from typing import Final, Protocol

from kraft_wire.broker.coordination.log import CoordinatorRecord

__all__ = ["ALL_GROUP_OPERATIONS", "GROUP_TYPES_OF_RECORDS", "GroupType", "OtherGroup"]


ALL_GROUP_OPERATIONS: Final = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: all of them without an authorizer."""


class GroupType(Enum):
    """The kind of a group, by the name that ListGroups shows as its type and protocol type."""

    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


GROUP_TYPES_OF_RECORDS: Final[dict[int, GroupType]] = (
    dict.fromkeys((3, 4, 5, 6, 7, 8, 16), GroupType.CONSUMER)
    | dict.fromkeys(range(10, 16), GroupType.SHARE)
    | dict.fromkeys(range(17, 24), GroupType.STREAMS)
)
"""Record type to the kind of group that it describes."""


class OtherGroup(Protocol):
    """A group that is not classic, as the administration and the offsets see it."""

    @property
    def group_id(self) -> str:
        """The id, which no group of another kind has."""
        ...

    @property
    def kind(self) -> GroupType:
        """The kind of the group."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members: then it may be deleted, or become a classic one."""
        ...

    @property
    def state_name(self) -> str:
        """The state that ListGroups shows."""
        ...

    @property
    def safe_at(self) -> int:
        """High watermark that commits the newest records of the group."""
        ...

    @property
    def offsets_expire(self) -> bool:
        """Whether offsets expire, of topics that no member reads."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic, as far as that is known."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the tombstones that remove the group from the log, in the order of Kafka's."""
        ...

    def release(self) -> None:
        """Release the counted memory of the group, which is removed."""
        ...
