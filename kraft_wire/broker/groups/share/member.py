"""A member of a share group (KIP-932), as its records describe it.

A member is a value: a heartbeat or a record makes another one in its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kraft_wire.broker.groups.assignors.spec import Target, given, same_target, target_of
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.broker.groups.object_sizes import MEMBER_BYTES, PARTITION_BYTES
from kraft_wire.wire.generated.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.share_group_member_metadata_value import (
    ShareGroupMemberMetadataValue,
)

__all__ = ["GONE_EPOCH", "STABLE", "ShareMember", "TopicNames", "topic_names"]

TopicNames: TypeAlias = JavaHashMap[str, None]
"""A set of names, in the order in which Java's lists it."""

GONE_EPOCH: Final = -1
"""Member epoch after the tombstone of the current assignment."""

STABLE: Final = 0
"""The only state that a record of a share group has."""


def topic_names(names: Sequence[str]) -> TopicNames:
    """Return names as the set that Apache makes of a list."""
    return java_hash_set(names, max(int(len(names) / 0.75) + 1, 16))


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member; the defaults are those of a member without records."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    """The address with a leading slash."""
    subscribed_topic_names: TopicNames = field(default_factory=JavaHashMap)
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = STABLE
    assigned: Target = field(default_factory=dict, compare=False)
    """In the order of a record; `is_same` compares it in any order."""

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> "ShareMember":
        """Return the member after a record of its subscription."""
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=topic_names(value.subscribed_topic_names),
        )

    def with_current_assignment(
        self, value: ShareGroupCurrentMemberAssignmentValue
    ) -> "ShareMember":
        """Return the member after a record of its epoch and partitions."""
        stored = {each.topic_id: tuple(each.partitions) for each in value.assigned_partitions}
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=target_of(given(stored)),
        )

    def without_assignment(self) -> "ShareMember":
        """Return the member after the tombstone of its current assignment."""
        return replace(
            self,
            member_epoch=GONE_EPOCH,
            previous_member_epoch=GONE_EPOCH,
            assigned={},
        )

    def is_same(self, other: "ShareMember") -> bool:
        """Whether nothing differs, whatever the order of topics and partitions."""
        return self == other and same_target(self.assigned, other.assigned)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether the member has what the target of an epoch gives it."""
        return self.state == STABLE and self.member_epoch == epoch

    @property
    def size_bytes(self) -> int:
        """Memory that the member takes, as `object_sizes` counts it."""
        names = (*self.subscribed_topic_names, self.client_id)
        partitions = sum(len(each) for each in self.assigned.values())
        return MEMBER_BYTES + sum(map(len, names)) + PARTITION_BYTES * partitions
