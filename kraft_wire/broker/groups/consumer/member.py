"""A member of a consumer group (KIP-848), as its records describe it.

A member is a value: a heartbeat or a record makes another one in its place. Assigned partitions
keep the epoch at which they were given (KIP-1251).
"""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, TypeAlias

from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.object_sizes import MEMBER_BYTES, PARTITION_BYTES
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)

__all__ = ["GONE_EPOCH", "AssignedPartitions", "ConsumerMember", "MemberState"]

AssignedPartitions: TypeAlias = JavaHashMap[Uuid, JavaHashMap[int, int]]
"""Topic id to partitions, each with the epoch at which the member got it."""

GONE_EPOCH: Final = -1
"""Member epoch after the tombstone of the current assignment."""


class MemberState(IntEnum):
    """How far a member is on its way to its target, by the number in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """The member must give up partitions before it continues."""
    UNRELEASED_PARTITIONS = 2
    """The member waits for partitions that other members still hold."""
    UNKNOWN = 127
    """A state of a later release."""

    @classmethod
    def _missing_(cls, value: object) -> "MemberState":
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member; the defaults are those of a member without records."""

    member_id: str
    instance_id: str | None = None
    """Not None for a static member."""
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    """The address with a leading slash."""
    subscribed_topic_names: tuple[str, ...] = ()
    """In the order in which they were sent or stored."""
    subscribed_topic_regex: str | None = ""
    """Empty or None: the member uses none."""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_metadata: ClassicMemberMetadata | None = None
    """Not None while the member uses the classic protocol."""
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: AssignedPartitions = field(default_factory=JavaHashMap)
    pending_revocation: AssignedPartitions = field(default_factory=JavaHashMap)
    """Partitions that the member may still own, and must give up."""

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        """Return the member after a record of its subscription."""
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=tuple(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic_metadata=value.classic_member_metadata,
        )

    def with_current_assignment(
        self, value: ConsumerGroupCurrentMemberAssignmentValue
    ) -> "ConsumerMember":
        """Return the member after a record of its epoch, state and partitions."""
        epoch = value.member_epoch
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=_with_epochs(value.assigned_partitions, epoch),
            pending_revocation=_with_epochs(value.partitions_pending_revocation, epoch),
        )

    def without_assignment(self) -> "ConsumerMember":
        """Return the member after the tombstone of its current assignment."""
        return replace(
            self,
            member_epoch=GONE_EPOCH,
            previous_member_epoch=GONE_EPOCH,
            assigned=JavaHashMap(),
            pending_revocation=JavaHashMap(),
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether the member has all that the target of an epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    @property
    def size_bytes(self) -> int:
        """Memory that the member takes, as `object_sizes` counts it."""
        names = (*self.subscribed_topic_names, self.subscribed_topic_regex or "", self.client_id)
        partitions = sum(
            len(each)
            for topics in (self.assigned, self.pending_revocation)
            for each in topics.values()
        )
        classic = self.classic_metadata
        protocols = [] if classic is None else classic.supported_protocols
        return (
            MEMBER_BYTES
            + sum(map(len, names))
            + PARTITION_BYTES * partitions
            + sum(len(each.name) + len(each.metadata) for each in protocols)
        )


def _with_epochs(topics: list[TopicPartitions], member_epoch: int) -> AssignedPartitions:
    """Return partitions with their epochs; a record before 4.3 has none, or a wrong number."""
    found: AssignedPartitions = JavaHashMap()
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        partitions: JavaHashMap[int, int] = JavaHashMap()
        for partition, epoch in zip(topic.partitions, epochs, strict=True):
            partitions[partition] = epoch
        found[topic.topic_id] = partitions
    return found
