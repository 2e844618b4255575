"""Facts about partitions at the end of the metadata log: ISR, leader, and compacted topics.

A lenient fold of the few record types that matter (KIP-631): records that contradict earlier ones
are skipped, because an audit reads damaged directories. Metadata transactions (KIP-868) count when
they end. The strict fold is `metadata.replay`, which `snapshot_checks` compares snapshots with.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kraft_wire.audit.partition_audit import METADATA_TOPIC, PartitionFacts
from kraft_wire.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.records import decode_message
from kraft_wire.model import Uuid
from kraft_wire.storage.cleaning.cleanable import COMPACTED_TOPICS
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message

__all__ = ["Assignment", "MetadataFacts", "MetadataFold"]

_KINDS: Final = (
    TopicRecord,
    PartitionRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
)
_BEGIN, _END, _ABORT = 23, 24, 25
_WANTED: Final = frozenset({*(kind.RECORD_TYPE for kind in _KINDS), _BEGIN, _END, _ABORT})
_TYPE_AT: Final = 1
_UNCHANGED_LEADER: Final = -2
_POLICIES: Final = {TOPIC_RESOURCE: "cleanup.policy", BROKER_RESOURCE: "log.cleanup.policy"}
_COMPACT: Final = "compact"
_NO_ISR: Final = frozenset[str]()
"""No ISR: a minority of a quorum may lag, and so may all replicas of a deleted topic."""


@dataclass(slots=True)
class Assignment:
    """The replicas of a partition, its ISR, and its leader."""

    replicas: list[int]
    isr: list[int]
    leader: int
    directories: list[Uuid] = field(default_factory=list)
    """The directories of the replicas, in their order; empty in older records (KIP-858)."""
    eligible: list[int] = field(default_factory=list)
    """Replicas outside the ISR that have every committed record (KIP-966)."""
    last_known: list[int] = field(default_factory=list)
    """The last leader, while no replica is in sync or eligible."""

    @property
    def complete(self) -> list[int]:
        """The replicas that must have every committed record."""
        return [*self.isr, *self.eligible] or self.last_known


@dataclass(slots=True)
class MetadataFacts:
    """The facts about the partitions of a cluster; empty if no metadata log was read."""

    is_known: bool = False
    assignments: dict[tuple[str, int], Assignment] = field(default_factory=dict)
    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    compacted: set[str] = field(default_factory=set)
    """Topics that are or were compacted."""
    all_compacted: bool = False
    """Whether the brokers' default is to compact topics."""

    def is_compacted(self, topic: str) -> bool:
        """Whether records of a topic may be missing by design."""
        return self.all_compacted or topic in self.compacted or topic in COMPACTED_TOPICS

    def of(self, topic: str, partition: int, high_watermark: int) -> PartitionFacts:
        """Return the facts about a partition; unknown where the metadata log does not name it."""
        if topic == METADATA_TOPIC:
            return PartitionFacts(isr=_NO_ISR, high_watermark=high_watermark)
        found = self.assignments.get((topic, partition))
        if found is None:
            isr = _NO_ISR if self.is_known else None
            return PartitionFacts(isr=isr, high_watermark=high_watermark)
        isr = frozenset(map(str, found.complete))
        leader = str(found.leader) if found.leader >= 0 else None
        return PartitionFacts(isr, leader, high_watermark, self.topic_ids.get(topic))


class MetadataFold:
    """Takes the values of metadata records in the order of the log."""

    def __init__(self) -> None:
        self.facts = MetadataFacts(is_known=True)
        self._names: dict[Uuid, str] = {}
        self._partitions: dict[Uuid, dict[int, Assignment]] = {}
        self._held: list[Message] | None = None
        """The records of an open metadata transaction."""

    def take(self, values: Iterable[bytes | None]) -> None:
        """Fold the next records; other records than metadata are skipped."""
        for value in values:
            if value is None or len(value) <= _TYPE_AT or value[_TYPE_AT] not in _WANTED:
                continue
            try:
                record = decode_message(value)
            except MetadataFault:
                continue
            self._take(record)

    def finish(self) -> MetadataFacts:
        """Return the facts at the end, without an open transaction."""
        for topic_id, partitions in self._partitions.items():
            name = self._names.get(topic_id)
            if name is not None:
                self.facts.topic_ids[name] = topic_id
                for partition, assignment in partitions.items():
                    self.facts.assignments[name, partition] = assignment
        return self.facts

    def _take(self, record: Message) -> None:
        kind = record.RECORD_TYPE
        if kind == _BEGIN:
            self._held = []
        elif kind in (_END, _ABORT):
            held, self._held = self._held or [], None
            for each in held if kind == _END else ():
                self._apply(each)
        elif self._held is not None:
            self._held.append(record)
        else:
            self._apply(record)

    def _apply(self, record: Message) -> None:
        match record:
            case TopicRecord():
                self._names[record.topic_id] = record.name
                self._partitions.setdefault(record.topic_id, {})
            case RemoveTopicRecord():
                name = self._names.pop(record.topic_id, "")
                self._partitions.pop(record.topic_id, None)
                self.facts.compacted.discard(name)
            case PartitionRecord():
                assignment = Assignment(
                    record.replicas,
                    record.isr,
                    record.leader,
                    record.directories or [],
                    record.eligible_leader_replicas or [],
                    record.last_known_elr or [],
                )
                own = self._partitions.setdefault(record.topic_id, {})
                own[record.partition_id] = assignment
            case PartitionChangeRecord():
                self._change(record)
            case ConfigRecord():
                self._configure(record)
            case ClearElrRecord():
                self._clear(record)

    def _change(self, record: PartitionChangeRecord) -> None:
        assignment = self._partitions.get(record.topic_id, {}).get(record.partition_id)
        if assignment is None:
            return
        if record.isr is not None:
            assignment.isr = record.isr
        if record.eligible_leader_replicas is not None:
            assignment.eligible = record.eligible_leader_replicas
        if record.last_known_elr is not None:
            assignment.last_known = record.last_known_elr
        if record.replicas is not None:
            assignment.replicas = record.replicas
        if record.directories is not None:
            assignment.directories = record.directories
        if record.leader != _UNCHANGED_LEADER:
            assignment.leader = record.leader

    def _clear(self, record: ClearElrRecord) -> None:
        """Drop the eligible replicas of one topic, or of all when no name is given."""
        for topic_id, partitions in self._partitions.items():
            if record.topic_name in ("", self._names.get(topic_id)):
                for assignment in partitions.values():
                    assignment.eligible, assignment.last_known = [], []

    def _configure(self, record: ConfigRecord) -> None:
        if record.name != _POLICIES.get(record.resource_type):
            return
        # as brokers read a list: "delete, compact" compacts too
        policies = [each.strip() for each in (record.value or "").split(",")]
        compacts = _COMPACT in policies
        if record.resource_type == BROKER_RESOURCE:
            self.facts.all_compacted |= compacts
        elif compacts:
            self.facts.compacted.add(record.resource_name)
