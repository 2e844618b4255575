"""The judge's facts about every partition, which must stay true.

Leaders, their epochs, ISRs and fenced brokers come from the committed metadata, replayed here by a
few lines that share nothing with `metadata.replay`. The first leader that rightly calls a batch
committed fixes it. Only an unclean election loses committed batches. It is detected: the leader was
neither in the ISR nor eligible. It loses the batches of earlier leader epochs after the committed
batches that its leader has.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.metadata.records import decode_message
from kraft_wire.model import Uuid
from kraft_wire.sim.judge.log_watch import LogWatch, SeenBatch
from kraft_wire.sim.judge.reduced_batches import BatchFacts, difference, facts_of
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.upkeep_topics import LogRules
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["GroupPartition", "PartitionTruth", "Truth"]

GroupPartition = tuple[str, str, int]
"""Group, topic, partition: the key of a committed offset."""

_ALL: Final = sys.maxsize
_UNCHANGED: Final = -2
_SEQUENCES: Final = 1 << 31
_OFFSET_KEYS: Final = (0, 1)
_FENCE: Final = 1
"""In a change of a registration; -1 ends it, and 0 leaves it as it is."""


@dataclass(slots=True, eq=False)
class PartitionTruth:
    """One partition of one topic id."""

    topic: str
    topic_id: Uuid
    number: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader: int = -1
    leader_epoch: int = 0
    is_moving: bool = False
    """Whether a reassignment is in progress."""
    adding: tuple[int, ...] = ()
    """Replicas that it brings."""
    is_deleted: bool = False
    leaders: dict[int, int] = field(default_factory=dict)
    """Leader epoch -> the elected leader."""
    cuts: dict[int, int] = field(default_factory=dict)
    """Leader epoch that began with an unclean election -> where what it kept ends, 0 while unknown.
    """
    uncut: list[int] = field(default_factory=list)
    """Epochs whose lost records are unknown."""
    wiped: tuple[int, ...] = ()
    """Members of the ISR whose disk was replaced, until the metadata or their logs show it."""
    batches: list[SeenBatch] = field(default_factory=list)
    """Everything committed."""
    ends: list[int] = field(default_factory=list)
    placed: dict[tuple[int, int], int] = field(default_factory=dict)
    """(epoch, base offset) -> CRC: the batch of every log there."""
    producers: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Producer id -> its epoch and the next sequence."""
    rules: LogRules | None = None
    """How its log is cleaned, None if it never is."""
    originals: dict[tuple[int, int], SeenBatch] = field(default_factory=dict)
    """(epoch, base offset) -> the batch as it was appended, where the log is cleaned."""
    newest: dict[bytes, int] = field(default_factory=dict)
    """Key -> offset of its newest committed record, where the log is compacted."""
    undecided: dict[int, dict[bytes, int]] = field(default_factory=dict)
    """Producer id -> keys and offsets of its open transaction."""
    start: int = 0
    """The greatest log start offset that a replica reached by right."""
    directories: tuple[Uuid, ...] = ()
    """Ids of the log directories of its replicas, in their order, none below level 17."""
    assignments: int = 0
    """How often its replicas became others."""
    isr_changes: int = 0
    """How often replicas left or joined the ISR."""
    starts_ordered: list[int] = field(default_factory=list)
    """Log start offsets that the operator asked for; -1 means the high watermark."""

    @property
    def name(self) -> str:
        """How it is called."""
        return f"{self.topic}-{self.number}"

    @property
    def unclean_epoch(self) -> int:
        """The newest leader epoch that began with an unclean election, -1 for none."""
        return max(self.cuts, default=-1)

    @property
    def is_cut(self) -> bool:
        """Whether the lost records of the last unclean election are known."""
        return not self.uncut

    def led_uncleanly(self) -> None:
        """An unclean election began the newest leader epoch."""
        self.cuts[self.leader_epoch] = 0
        self.uncut.append(self.leader_epoch)

    def kept_until(self, epoch: int) -> int:
        """Return the offset below which no unclean election lost records of an epoch."""
        return min((cut for later, cut in self.cuts.items() if later > epoch), default=_ALL)

    @property
    def end(self) -> int:
        """The end of the committed records."""
        return self.ends[-1] if self.ends else 0

    def batch_before(self, offset: int) -> SeenBatch | None:
        """Return the committed batch with the record before an offset."""
        at = bisect_right(self.ends, offset - 1)
        return self.batches[at] if at < len(self.batches) else None

    def commit(self, batch: SeenBatch, node_id: int) -> None:
        """Take a batch as committed; a producer's sequences continue where they ended (S21)."""
        assert batch.base_offset == self.end, (batch.base_offset, self.end)
        head = RecordBatch(memoryview(batch.data))
        if head.producer_id >= 0 and not batch.is_control and self.topic != OFFSETS_TOPIC:
            known_epoch, wanted = self.producers.get(head.producer_id, (-1, 0))
            if known_epoch < 0 and self.cuts:
                wanted = head.base_sequence  # nothing is left of it: any sequence is its first
            elif head.producer_epoch != known_epoch:
                wanted = 0
            if head.producer_epoch < known_epoch or head.base_sequence != wanted:
                who = (head.producer_id, head.producer_epoch)
                facts = (self.name, who, "sequence", head.base_sequence, "instead of", wanted)
                raise Violation("S21 ProducerSequence", node_id, *facts)
            following = (head.last_sequence + 1) % _SEQUENCES
            self.producers[head.producer_id] = (head.producer_epoch, following)
        self.batches.append(batch)
        self.ends.append(batch.end_offset)
        if self.rules is not None:
            self._note_keys(facts_of(batch))

    def _note_keys(self, facts: BatchFacts) -> None:
        """Add the keys of a committed batch, those of a transaction when it is committed."""
        producer_id = facts.producer[0]
        keys = {bytes(r.key): at for at, r in facts.records.items() if r.key is not None}
        if facts.is_control:
            keys = self.undecided.pop(producer_id, {})
            if not facts.is_abort:
                self.newest |= {k: at for k, at in keys.items() if at > self.newest.get(k, -1)}
        elif facts.is_transactional:
            self.undecided.setdefault(producer_id, {}).update(keys)
        else:
            self.newest |= keys

    @property
    def has_open_transaction(self) -> bool:
        """Whether the log holds an open transaction."""
        return bool(self.undecided)

    @property
    def first_open(self) -> int | None:
        """Where the first open transaction begins, None without one."""
        return min((at for keys in self.undecided.values() for at in keys.values()), default=None)

    def is_same(self, own: SeenBatch | None, committed: SeenBatch | None) -> bool:
        """Return whether a log's batch is a committed one, or a valid compaction of it."""
        if own is None or committed is None:
            return False
        if own.identity == committed.identity:
            return True
        return self.rules is not None and difference(committed, own) is None

    def is_as_placed(self, batch: SeenBatch) -> bool:
        """Return whether a batch equals that of every log at its place."""
        key = (batch.epoch, batch.base_offset)
        if self.rules is None:
            return self.placed.setdefault(key, batch.crc) == batch.crc
        return self.is_same(batch, self.originals.setdefault(key, batch))

    def has_placed(self, epoch: int, offset: int) -> bool:
        """Return whether a log had a batch of a leader epoch at an offset or above."""
        return any(of == epoch and at >= offset for of, at in (*self.placed, *self.originals))

    def is_superseded(self, record: Record) -> bool:
        """Return whether compaction may remove a committed record from every log."""
        if record.key is None or record.value is None:
            return True  # the judge of rewritten segments checks the time of tombstones
        return self.newest.get(bytes(record.key), -1) > record.offset

    def is_inside_batch(self, offset: int) -> bool:
        """Return whether an offset is after the first record of a committed batch."""
        batch = self.batch_before(offset + 1)
        return batch is not None and batch.base_offset < offset

    def ends_epoch(self, offset: int) -> bool:
        """Return whether the record at an offset is committed, and first in its leader epoch."""
        before, behind = self.batch_before(offset), self.batch_before(offset + 1)
        return before is not None and behind is not None and before.epoch < behind.epoch

    def may_lack(self, first: int, end: int) -> bool:
        """Return whether a reader may get no record of a committed range."""
        if self.rules is None or not self.rules.is_compacted:
            return False
        at = bisect_right(self.ends, first)
        for batch in self.batches[at:]:
            if batch.base_offset >= end:
                return True
            facts = facts_of(batch)
            records = facts.records.items()
            is_kept = not (facts.is_control or facts.is_transactional)
            if is_kept and any(o >= first and not self.is_superseded(r) for o, r in records):
                return False
        return self.end >= end

    def take_back(self, log: LogWatch) -> None:
        """Drop the batches that an uncleanly elected leader does not have.

        One that compaction removed from its log, or rewrote, is not dropped.
        """
        cleaned = [
            batch.end_offset <= log.end_offset
            and self.may_lack(batch.base_offset, batch.end_offset)
            for batch in self.batches
        ]
        kept, self.batches, self.ends, self.producers = self.batches, [], [], {}
        for batch, is_cleaned in zip(kept, cleaned, strict=True):
            own = log.batch_before(batch.end_offset)
            if not (is_cleaned if own is None else self.is_same(own, batch)):
                break
            self.commit(batch, -1)
        if len(self.uncut) == 1:  # else one of them may still lead unseen, from an unknown offset
            self.cuts[self.uncut[0]] = self.end
        self.uncut = []


class Truth:
    """All partitions that there ever were."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[Uuid, int], PartitionTruth] = {}
        self.topic_ids: dict[str, Uuid] = {}
        """Of the topics that exist."""
        self.offsets: dict[GroupPartition, list[tuple[int, str]]] = {}
        """Committed offsets with their metadata, in the order of the log."""
        self._pending: dict[tuple[int, int], list[_Offset]] = {}
        """Partition of the offsets topic and producer id -> offsets of its open transaction."""
        self._stored: dict[GroupPartition, int] = {}
        """Where the record of the committed offset lies."""
        self.unclean: list[PartitionTruth] = []
        """Partitions that just had an unclean election, for the check whether it is allowed."""
        self.fenced: dict[int, bool] = {}
        """Registered brokers, and whether they are fenced."""
        self.marks: Counter[str] = Counter()
        """How often the replicas of a partition changed, by kind of change."""
        self.rules_of: Callable[[str], LogRules | None] = lambda topic: None
        """How the log of a topic is cleaned."""

    def existing(self) -> list[PartitionTruth]:
        """Return the partitions that were not deleted."""
        return [each for each in self.partitions.values() if not each.is_deleted]

    def of_topic(self, name: str) -> list[PartitionTruth]:
        """Return the partitions of a topic that exists."""
        topic_id = self.topic_ids.get(name)
        return [each for (of, _), each in self.partitions.items() if of == topic_id]

    # -- metadata --------------------------------------------------------------------------------

    def metadata_committed(self, batch: SeenBatch) -> None:
        """Replay a committed batch of the metadata log."""
        for value in batch.values():
            self._replay(decode_message(value))

    def _replay(self, record: Message) -> None:
        match record:
            case TopicRecord():
                self.topic_ids[record.name] = record.topic_id
            case PartitionRecord():
                self._created(record)
            case PartitionChangeRecord():
                self._changed(self.partitions[record.topic_id, record.partition_id], record)
            case RemoveTopicRecord():
                self._removed(record.topic_id)
            case RegisterBrokerRecord():
                self.fenced[record.broker_id] = record.fenced
            case BrokerRegistrationChangeRecord() if record.fenced:
                self.fenced[record.broker_id] = record.fenced == _FENCE

    def _created(self, record: PartitionRecord) -> None:
        name = next(n for n, each in self.topic_ids.items() if each == record.topic_id)
        partition = PartitionTruth(
            name,
            record.topic_id,
            record.partition_id,
            tuple(record.replicas),
            tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            leaders={record.leader_epoch: record.leader},
            rules=self.rules_of(name),
            directories=tuple(record.directories),
        )
        self.partitions[record.topic_id, record.partition_id] = partition

    def _removed(self, topic_id: Uuid) -> None:
        for name in [name for name, each in self.topic_ids.items() if each == topic_id]:
            del self.topic_ids[name]
        for (each, _), partition in self.partitions.items():
            if each == topic_id:
                partition.is_deleted = True

    def _changed(self, partition: PartitionTruth, record: PartitionChangeRecord) -> None:
        if record.leader != _UNCHANGED:
            self._elected(partition, record)
        if record.isr is not None:
            partition.isr_changes += set(record.isr) != set(partition.isr)
            partition.isr = tuple(record.isr)
            partition.wiped = tuple(n for n in partition.wiped if n in partition.isr)
        if record.replicas is not None:
            self.marks[_look_at_move(partition, record.replicas)] += 1
            partition.replicas = tuple(record.replicas)
            partition.assignments += 1
        if record.directories is not None:
            partition.directories = tuple(record.directories)
        if record.eligible_leader_replicas is not None:
            partition.elr = tuple(record.eligible_leader_replicas)
        if record.last_known_elr is not None:
            partition.last_known_elr = tuple(record.last_known_elr)
        if record.adding_replicas is not None or record.removing_replicas is not None:
            partition.is_moving = bool(record.adding_replicas or record.removing_replicas)
        if record.adding_replicas is not None:
            partition.adding = tuple(record.adding_replicas)

    def _elected(self, partition: PartitionTruth, record: PartitionChangeRecord) -> None:
        partition.leader_epoch += 1
        partition.leaders[partition.leader_epoch] = record.leader
        if record.leader >= 0 and _is_unclean(partition, record):
            self.unclean.append(partition)
        if record.leader in partition.elr:
            self.marks["eligible replica elected"] += 1
        elif not partition.isr and record.leader in partition.last_known_elr:
            self.marks["last known leader elected"] += 1
        partition.leader = record.leader

    # -- groups ----------------------------------------------------------------------------------

    def group_records(self, partition: PartitionTruth, batch: SeenBatch) -> None:
        """Add the offsets of a committed batch of the offsets topic.

        Those of a transaction count from its marker on, unless a place has a newer record.
        """
        if partition.topic != OFFSETS_TOPIC:
            return
        facts = facts_of(batch)
        key = (partition.number, facts.producer[0])
        if facts.is_control:
            pending = self._pending.pop(key, [])
            for each in () if facts.is_abort else pending:
                if each.at > self._stored.get(each.place, -1):
                    self._store(each)
            return
        for offset, record in facts.records.items():
            found = _offset_of(record, offset)
            if found is None:
                continue
            if facts.is_transactional:
                self._pending.setdefault(key, []).append(found)
                continue
            self._store(found)
            if record.value is None:
                for waiting in self._pending.values():
                    waiting[:] = [each for each in waiting if each.place != found.place]

    def _store(self, found: _Offset) -> None:
        self._stored[found.place] = found.at
        self.offsets.setdefault(found.place, []).append(found.shown)


class _Offset(NamedTuple):
    """An offset of a group, as one record has it."""

    place: GroupPartition
    at: int
    """Where the record lies."""
    shown: tuple[int, str]
    """The offset and its metadata."""


def _offset_of(record: Record, at: int) -> _Offset | None:
    key = record.key
    if key is None or int.from_bytes(key[:2], "big") not in _OFFSET_KEYS:
        return None
    named, _ = OffsetCommitKey.decode(memoryview(key), 0, 2)
    place = (named.group, named.topic, named.partition)
    if record.value is None:
        return _Offset(place, at, (-1, ""))  # the answer without a committed offset
    version = int.from_bytes(record.value[:2], "big")
    value, _ = OffsetCommitValue.decode(memoryview(record.value), version, 2)
    return _Offset(place, at, (value.offset, value.metadata))


def _look_at_move(before: PartitionTruth, replicas: list[int]) -> str:
    """Judge a change of replicas, and name its kind.

    S58: replicas are removed only when their replacements are in the ISR.

    If more are removed than added, all that stay are in it (KIP-455). `before` has the new ISR
    already.
    """
    gone = [each for each in before.replicas if each not in replicas]
    if not gone:
        return "replicas added"
    if set(gone) <= set(before.adding):
        return "reassignment called off"
    came = [each for each in before.adding if each in replicas]
    needed = replicas if len(came) < len(gone) else came
    if not set(needed) <= set(before.isr):
        facts = (before.name, "without", gone, "has ISR", before.isr, "of", replicas)
        raise Violation("S58 ReassignmentWhole", before.leader, *facts)
    return "replicas removed" if len(replicas) < len(before.replicas) else "replicas exchanged"


def _is_unclean(before: PartitionTruth, record: PartitionChangeRecord) -> bool:
    """Return whether the new leader may lack committed records.

    An uncleanly elected leader is alone in the new ISR. A new leader beside other members has just
    joined them, with the change that ends a reassignment, and is judged by its log. The same holds
    if that change removes all other replicas: it happens only after the new replicas are in sync.
    The leader that was the last one in sync has every committed record (KIP-966).
    """
    if record.leader in (*before.isr, *before.elr, *before.last_known_elr):
        return False
    if record.replicas is not None and record.leader in before.adding:
        return False
    return record.isr is None or list(record.isr) == [record.leader]
