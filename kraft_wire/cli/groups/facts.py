"""Groups, members and offsets as the `groups` verbs show them, whatever the kind of group."""

from dataclasses import dataclass
from typing import Literal

from kraft_wire.model import TopicPartition

__all__ = ["GroupFacts", "Kind", "ListedGroup", "Member", "OffsetRow"]

Kind = Literal["classic", "consumer", "share", "streams"]
"""The protocol of a group's members; a group of offsets alone counts as classic, as in Kafka."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a list; None if the broker's version does not report it."""

    group: str
    state: str | None
    type: str | None
    protocol_type: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member and its partitions."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    """Of a streams member what its active tasks read."""
    active_tasks: tuple[str, ...] = ()
    """Of a streams member: subtopology and partition, `0_3`."""
    standby_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group as its coordinator describes it."""

    group: str
    kind: Kind
    state: str
    assignor: str
    members: tuple[Member, ...]

    @property
    def is_active(self) -> bool:
        """Whether it has members, or is waiting for them."""
        return self.state.lower() not in ("empty", "dead")


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """One partition of a group: how far it has read."""

    topic: str
    partition: int
    committed_offset: int | None
    """Of a share group its start offset: the first record that is not final."""
    log_end_offset: int | None
    lag: int | None
    member: Member | None
    """The member that reads the partition; None in a share group, where many may."""
