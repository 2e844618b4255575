"""Owners and epochs of consumer groups, as the log of their coordinator has them (KIP-848).

C01: "a partition is assigned to a new member once its former owner has revoked it". C02: "the group
epoch" and each member's epoch never go back. The records are those of the offsets topic, once
committed; the answers of members are compared with them.

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
from kraft_wire.wire.records.record import Record

__all__ = ["GroupEpochs", "Place"]

_OWNED: Final = "C01 OneOwner"
_EPOCHS: Final = "C02 EpochsGrow"
_GROUP_KEY: Final = ConsumerGroupMetadataKey.RECORD_TYPE
_MEMBER_KEY: Final = ConsumerGroupCurrentMemberAssignmentKey.RECORD_TYPE

Place = tuple[Uuid, int]
"""A partition of a topic."""


@dataclass(slots=True)
class _Member:
    """A member, as its newest record has it and as it was told."""

    epoch: int = 0
    owned: frozenset[Place] = frozenset()
    """Assigned, or to be revoked."""
    told_epoch: int = 0
    told: frozenset[Place] = frozenset()
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
        key, value = record.key, record.value
        kind = -1 if key is None else int.from_bytes(key[:2], "big")
        if kind == _GROUP_KEY:
            of_group, _ = ConsumerGroupMetadataKey.decode(memoryview(key or b""), 0, 2)
            self._group_record(of_group.group_id, value, node_id)
        elif kind == _MEMBER_KEY:
            of_member, _ = ConsumerGroupCurrentMemberAssignmentKey.decode(
                memoryview(key or b""), 0, 2
            )
            self._member_record(of_member.group_id, of_member.member_id, value, node_id)
            touched[of_member.group_id] = None

    def _group_record(self, group: str, value: bytes | memoryview | None, node_id: int) -> None:
        if value is None:
            self.epochs.pop(group, None)
            return
        found, _ = ConsumerGroupMetadataValue.decode(memoryview(value), 0, 2)
        self.looked[_EPOCHS] += 1
        before = self.epochs.get(group, -1)
        if found.epoch < before:
            raise Violation(_EPOCHS, node_id, group, "epoch", found.epoch, "after", before)
        self.epochs[group] = found.epoch

    def _member_record(
        self, group: str, member_id: str, value: bytes | memoryview | None, node_id: int
    ) -> None:
        members = self.members.setdefault(group, {})
        if value is None:
            members.pop(member_id, None)
            return
        found, _ = ConsumerGroupCurrentMemberAssignmentValue.decode(memoryview(value), 0, 2)
        member = members.setdefault(member_id, _Member())
        self.looked[_EPOCHS] += 1
        left = found.member_epoch < 0
        if not left and found.member_epoch < member.epoch:
            facts = (group, member_id, "epoch", found.member_epoch, "after", member.epoch)
            raise Violation(_EPOCHS, node_id, *facts)
        if found.member_epoch > self.epochs.get(group, -1):
            of_group = (group, member_id, "epoch", found.member_epoch, "of", self.epochs.get(group))
            raise Violation(_EPOCHS, node_id, *of_group)
        member.epoch = 0 if left else found.member_epoch
        topics = [*found.assigned_partitions, *found.partitions_pending_revocation]
        member.owned = frozenset((each.topic_id, at) for each in topics for at in each.partitions)
        if left:
            member.told, member.told_epoch = frozenset(), 0

    def _check_owners(self, group: str, node_id: int) -> None:
        self.looked[_OWNED] += 1
        owners: dict[Place, str] = {}
        for member_id, member in self.members[group].items():
            for place in member.owned:
                other = owners.setdefault(place, member_id)
                if other != member_id:
                    facts = (group, place[1], "of", other, "is given to", member_id)
                    raise Violation(_OWNED, node_id, *facts)

    # -- the members -----------------------------------------------------------------------------

    def told(
        self, node_id: int, group: str, member_id: str, epoch: int, owned: frozenset[Place]
    ) -> bool:
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

    def gave_back(self, group: str, member_id: str, owned: frozenset[Place]) -> None:
        """A member stops to use all but these partitions."""
        member = self.members.get(group, {}).get(member_id)
        if member is not None:
            member.told &= owned

    def dropped(self, group: str, member_id: str) -> None:
        """A member has lost its place, or gives everything back."""
        member = self.members.get(group, {}).get(member_id)
        if member is not None:
            member.told, member.told_epoch = frozenset(), 0
