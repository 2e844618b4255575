"""Owners and epochs of consumer and streams groups, as the log of their coordinator has them.

C01: "a partition is assigned to a new member once its former owner has revoked it" (KIP-848), and
an active task of a streams group likewise (KIP-1071). C02: "the group epoch" and each member's
epoch never go back. The records are those of the offsets topic, once committed; the answers of
members are compared with them.

Errors: `Violation`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.model import Uuid
from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.reduced_batches import facts_of
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraft_wire.wire.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraft_wire.wire.generated.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.streams_group_metadata_key import StreamsGroupMetadataKey
from kraft_wire.wire.generated.streams_group_metadata_value import StreamsGroupMetadataValue
from kraft_wire.wire.records.record import Record

__all__ = ["GroupEpochs", "Owned", "Place"]

_OWNED: Final = "C01 OneOwner"
_EPOCHS: Final = "C02 EpochsGrow"

Place = tuple[Uuid, int]
"""A partition of a topic."""
Owned = frozenset[Place] | frozenset[tuple[str, int]]
"""Partitions of a consumer group's member, or active tasks of a streams group's."""


@dataclass(slots=True)
class _Member:
    """A member, as its newest record has it and as it was told."""

    epoch: int = 0
    owned: Owned = frozenset()
    """Assigned, or to be revoked."""
    told_epoch: int = 0
    told: Owned = frozenset()
    """What the member itself takes for its own."""


@dataclass(slots=True)
class GroupEpochs:
    """Every consumer group: its epoch and members."""

    looked: Counter[str]
    epochs: dict[str, int] = field(default_factory=dict)
    members: dict[str, dict[str, _Member]] = field(default_factory=dict)

    # -- the log ---------------------------------------------------------------------------------

    def committed(self, truth: PartitionTruth, node_id: int, batch: SeenBatch) -> None:
        """Take a committed batch; its records of a group count from the end of the batch on."""
        if truth.topic != OFFSETS_TOPIC:
            return
        touched: dict[str, None] = {}
        for record in facts_of(batch).records.values():
            self._replay(record, node_id, touched)
        for group in touched:
            self._check_owners(group, node_id)

    def _replay(self, record: Record, node_id: int, touched: dict[str, None]) -> None:
        key, value = memoryview(record.key or b""), record.value
        kind = int.from_bytes(key[:2], "big") if key else -1
        for group_key, group_value in _GROUPS:
            if kind == group_key.RECORD_TYPE:
                group_id = group_key.decode(key, 0, 2)[0].group_id
                found = None if value is None else group_value.decode(memoryview(value), 0, 2)[0]
                self._group_record(group_id, found, node_id)
        for member_key, read in _MEMBERS:
            if kind == member_key.RECORD_TYPE:
                of_member = member_key.decode(key, 0, 2)[0]
                at = None if value is None else read(memoryview(value))
                self._member_record(of_member.group_id, of_member.member_id, at, node_id)
                touched[of_member.group_id] = None

    def _group_record(self, group: str, found: GroupValue | None, node_id: int) -> None:
        if found is None:
            self.epochs.pop(group, None)
            return
        self.looked[_EPOCHS] += 1
        before = self.epochs.get(group, -1)
        if found.epoch < before:
            raise Violation(_EPOCHS, node_id, group, "epoch", found.epoch, "after", before)
        self.epochs[group] = found.epoch

    def _member_record(
        self, group: str, member_id: str, at: tuple[int, Owned] | None, node_id: int
    ) -> None:
        """`at`: the member's epoch and what it has or must give back; None if it is removed."""
        members = self.members.setdefault(group, {})
        if at is None:
            members.pop(member_id, None)
            return
        epoch, owned = at
        member = members.setdefault(member_id, _Member())
        self.looked[_EPOCHS] += 1
        left = epoch < 0
        if not left and epoch < member.epoch:
            raise Violation(
                _EPOCHS, node_id, group, member_id, "epoch", epoch, "after", member.epoch
            )
        if epoch > self.epochs.get(group, -1):
            of_group = (group, member_id, "epoch", epoch, "of", self.epochs.get(group))
            raise Violation(_EPOCHS, node_id, *of_group)
        member.epoch, member.owned = 0 if left else epoch, owned
        if left:
            member.told, member.told_epoch = frozenset(), 0

    def _check_owners(self, group: str, node_id: int) -> None:
        self.looked[_OWNED] += 1
        owners: dict[tuple[Uuid | str, int], str] = {}
        for member_id, member in self.members[group].items():
            for place in member.owned:
                other = owners.setdefault(place, member_id)
                if other != member_id:
                    facts = (group, place[1], "of", other, "is given to", member_id)
                    raise Violation(_OWNED, node_id, *facts)

    # -- the members -----------------------------------------------------------------------------

    def told(self, node_id: int, group: str, member_id: str, epoch: int, owned: Owned) -> bool:
        """A member got an answer; return False for one that was overtaken by its removal.

        From here on it owns these partitions, until it is told otherwise or removed.
        """
        members = self.members.get(group, {})
        member = members.get(member_id)
        if member is None:
            return False
        self.looked[_EPOCHS] += 1
        if epoch < member.told_epoch or epoch > member.epoch:
            facts = (group, member_id, "told epoch", epoch, "after", member.told_epoch)
            raise Violation(_EPOCHS, node_id, *facts, "committed", member.epoch)
        self.looked[_OWNED] += 1
        for other_id, other in members.items():
            shared = owned & other.told if other_id != member_id else ()
            if shared:
                places = (group, sorted(at for _, at in shared), "of", other_id)
                raise Violation(_OWNED, node_id, *places, "told to", member_id)
        member.told_epoch, member.told = epoch, owned
        return True

    def gave_back(self, group: str, member_id: str, owned: Owned) -> None:
        """A member stops to use all but these partitions."""
        member = self.members.get(group, {}).get(member_id)
        if member is not None:
            member.told &= owned

    def dropped(self, group: str, member_id: str) -> None:
        """A member has lost its place, or gives everything back."""
        member = self.members.get(group, {}).get(member_id)
        if member is not None:
            member.told, member.told_epoch = frozenset(), 0


def _partitions(value: memoryview) -> tuple[int, Owned]:
    found, _ = ConsumerGroupCurrentMemberAssignmentValue.decode(value, 0, 2)
    topics = [*found.assigned_partitions, *found.partitions_pending_revocation]
    return found.member_epoch, frozenset(
        (each.topic_id, number) for each in topics for number in each.partitions
    )


def _tasks(value: memoryview) -> tuple[int, Owned]:
    found, _ = StreamsGroupCurrentMemberAssignmentValue.decode(value, 0, 2)
    tasks = [*found.active_tasks, *found.active_tasks_pending_revocation]
    return found.member_epoch, frozenset(
        (each.subtopology_id, number) for each in tasks for number in each.partitions
    )


GroupValue = ConsumerGroupMetadataValue | StreamsGroupMetadataValue
_GROUPS: Final = (
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
)
_MEMBERS: Final = (
    (ConsumerGroupCurrentMemberAssignmentKey, _partitions),
    (StreamsGroupCurrentMemberAssignmentKey, _tasks),
)
