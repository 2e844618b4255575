"""Compares the answers of transactional clients with the committed logs.

T04: a transaction that was acknowledged as committed is committed, whole and once. T05, T06: a
read_committed consumer gets no other records, and needs nothing but the answer to filter them. T11,
T12: a fenced client was replaced, and no two clients share an identity. T16: offsets are committed
or aborted with their transaction's records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NoReturn

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.sim.disk.file_nodes import FileNode
from kraft_wire.sim.judge.log_watch import SeenBatch, read_batches
from kraft_wire.sim.judge.partition_truth import GroupPartition, PartitionTruth
from kraft_wire.sim.judge.transactions.client_transactions import (
    ClientTransaction,
    Value,
    value_of,
)
from kraft_wire.sim.judge.transactions.log_scan import LogScan, head_of
from kraft_wire.sim.judge.transactions.watch import TransactionWatch
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import AbortedTransaction, PartitionData
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["TransactionHistory"]

_KEPT: Final = "T04 CommitIsKept"
_HIDDEN: Final = "T05 OnlyCommittedRead"
_SUFFICES: Final = "T06 AbortedListSuffices"
_FENCED: Final = "T11 FencedIsFenced"
_IDENTITY: Final = "T12 Identity"
_OFFSETS: Final = "T16 OffsetsShareFate"
_NEVER_SHOWN: Final = 32_767


class TransactionHistory:
    """The answers of all transactional clients."""

    def __init__(self, watch: TransactionWatch) -> None:
        self._watch = watch
        self._judge = watch.judge
        self._identities: dict[tuple[int, int], tuple[int, int]] = {}
        """Producer id and epoch -> the client and its incarnation that got them."""
        self._transactions: dict[tuple[int, int], ClientTransaction] = {}
        self._owed: dict[GroupPartition, tuple[int, str]] = {}
        """The offset of the newest acknowledged commit."""

    # -- answers to clients ----------------------------------------------------------------------

    def is_known(self, name: str) -> bool:
        """Return whether an id has a record."""
        return name in self._watch.ids.ids

    def is_exhausted(self, name: str) -> bool:
        """Return whether the producer of an id has no epoch left."""
        record = self._watch.ids.ids.get(name)
        return record is not None and record.producer[1] >= _NEVER_SHOWN - 1

    def begun(self, transaction: ClientTransaction) -> ClientTransaction:
        """A client begins a transaction."""
        self._transactions[transaction.client, transaction.number] = transaction
        return transaction

    def identity_told(
        self, node_id: int, name: str, producer: tuple[int, int], who: tuple[int, int]
    ) -> None:
        """A client got its producer id and epoch."""
        self._judge.looked[_IDENTITY] += 1
        known = self._identities.setdefault(producer, who)
        owner = self._watch.ids.owners.get(producer[0])
        if known != who or producer[1] >= _NEVER_SHOWN or owner != name:
            raise Violation(_IDENTITY, node_id, name, producer, "told", known, who, "of", owner)

    def refused(
        self, node_id: int, name: str, producer: tuple[int, int] | None, error: ErrorCode
    ) -> None:
        """A client was fenced: its identity is not the newest."""
        is_fence = error in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        self._judge.marks["transactor fenced"] += is_fence
        if not is_fence or producer is None or not self._watch.leads_ids(node_id, name):
            return
        self._judge.looked[_FENCED] += 1
        if self._watch.ids.is_current(name, producer):
            raise Violation(_FENCED, node_id, name, producer, error.name, "is the newest")

    def unexpected(self, node_id: int, request: str, error: ErrorCode) -> NoReturn:
        """An answer has an error that no transactional client expects."""
        raise Violation("T13 MemoryIsTheLog", node_id, request, "answered", error.name)

    def ended(self, node_id: int, transaction: ClientTransaction) -> None:
        """T04: the result that a client gets is the committed one, for all its records."""
        self._judge.looked[_KEPT] += 1
        self._judge.marks[f"transaction told {transaction.told}"] += 1
        verdict = self._watch.ids.verdict_of(transaction.producer)
        if verdict is None or verdict.is_commit != transaction.told:
            raise Violation(_KEPT, node_id, transaction.name, transaction.told, "not", verdict)
        if not transaction.told:
            return
        named = verdict.partitions
        written = [transaction.sent[number] for number in transaction.acked]
        missing = [each.name for each in written if (each.topic, each.number) not in named]
        if missing or (transaction.offsets and (OFFSETS_TOPIC, 0) not in named):
            raise Violation(_KEPT, node_id, transaction.name, "without", missing, "of", named)
        for place, offset, note in transaction.offsets:
            self._owed[place] = (offset, note)

    # -- offsets ---------------------------------------------------------------------------------

    def offsets_owed(self, place: GroupPartition) -> tuple[int, str] | None:
        """Return the offset that a later request must get, unless it gets a newer one."""
        return self._owed.get(place)

    def offsets_leader(self) -> int:
        """Return the coordinator of groups that knows its role, -1 for none."""
        truths = self._judge.truth.of_topic(OFFSETS_TOPIC)
        leader = truths[0].leader if truths else -1
        return leader if leader >= 0 and self._judge.leads(leader, truths[0]) else -1

    def stable_offset_shown(
        self,
        node_id: int,
        place: GroupPartition,
        shown: tuple[int, str],
        owed: tuple[int, str] | None,
    ) -> None:
        """T16: a fetched offset was committed, and is not older than an acknowledged one."""
        self._judge.looked[_OFFSETS] += 1
        known = self._judge.truth.offsets.get(place, [])
        if shown[0] >= 0 and shown not in known:
            raise Violation(_OFFSETS, node_id, place, shown, "was never committed", known[-3:])
        if owed is None:
            return
        if owed not in known or (shown not in known[known.index(owed) :]):
            raise Violation(_OFFSETS, node_id, place, shown, "is older than", owed, known[-3:])

    # -- readers ---------------------------------------------------------------------------------

    def read_committed(self, node_id: int, truth: PartitionTruth, data: PartitionData) -> None:
        """T05, T06: compare an answer to a read_committed consumer with the whole log."""
        records = data.records
        if truth.is_deleted or not records:
            return
        assert isinstance(records, (bytes, bytearray, memoryview)), type(records)
        scan = self._watch.scan_of(truth)
        batches, _ = read_batches(bytes(records), 0, FileNode(b""))
        shown = {id(each) for each in _filtered(batches, data.aborted_transactions or [])}
        for batch in batches:
            if batch.is_control:
                continue
            self._judge.looked[_HIDDEN] += 1
            facts = (truth.name, batch.identity, "stable to", data.last_stable_offset)
            is_stable = batch.base_offset < data.last_stable_offset
            if not is_stable or not scan.is_decided(batch):
                raise Violation(_HIDDEN, node_id, *facts, "is undecided")
            is_aborted = scan.is_aborted(batch)
            self._note_aborted(scan, batch)
            if (id(batch) in shown) == is_aborted:
                listed = [(e.producer_id, e.first_offset) for e in data.aborted_transactions or []]
                raise Violation(_SUFFICES, node_id, *facts, "aborted", is_aborted, listed)

    def _note_aborted(self, scan: LogScan, batch: SeenBatch) -> None:
        if scan.is_aborted(batch):
            marks = self._judge.marks
            marks["aborted batch read and left out"] += 1
            is_later = scan.of_batch[batch.base_offset].marker_leader_epoch > batch.epoch
            marks["aborted batch read after a leader change"] += is_later

    # -- the end ---------------------------------------------------------------------------------

    def judge_everything(self) -> None:
        """T04, T05, T16: all of a transaction is visible, or nothing, as its client was told."""
        visible = Counter(self._visible())
        for transaction in self._transactions.values():
            if transaction.transactional_id not in self._watch.tainted:
                self._judge_transaction(transaction, visible)
        self._judge_loops(visible)

    def _visible(self) -> Iterator[Value]:
        for truth in self._judge.truth.existing():
            scan = self._watch.scan_of(truth)
            for batch in truth.batches:
                head = head_of(batch)
                if not head.is_transactional or head.is_marker or scan.is_aborted(batch):
                    continue
                if scan.is_decided(batch):
                    for record in RecordBatch(memoryview(batch.data)).records():
                        value = value_of(None if record.value is None else bytes(record.value))
                        if value is not None:
                            yield value

    def _judge_transaction(self, transaction: ClientTransaction, visible: Counter[Value]) -> None:
        self._judge.looked[_KEPT] += 1
        key = (transaction.client, transaction.number)
        kept = [n for n, truth in transaction.sent.items() if not truth.is_deleted]
        counts = {n: self._count(visible, key, n) for n in kept}
        found = [n for n in kept if counts[n]]
        twice = [n for n in kept if counts[n] > 1]
        may_commit = transaction.asked is True
        is_whole = found == kept and may_commit
        if twice or (transaction.told and not is_whole) or (found and not is_whole):
            facts = (transaction.name, "told", transaction.told, "of", kept, "visible", counts)
            raise Violation(_KEPT if transaction.told else _HIDDEN, 0, *facts)

    def _count(self, visible: Counter[Value], key: tuple[int, int], number: int) -> int:
        return self._by_number(visible).get((*key, number), 0)

    def _by_number(self, visible: Counter[Value]) -> dict[tuple[int, int, int], int]:
        cached = getattr(self, "_numbers", None)
        if cached is None:
            cached = Counter[tuple[int, int, int]]()
            for value, count in visible.items():
                cached[value.client, value.transaction, value.number] += count
            self._numbers = cached
        return cached

    def _judge_loops(self, visible: Counter[Value]) -> None:
        """A loop has written exactly the records that it has read, each offset once."""
        written: dict[str, Counter[int]] = {}
        for value, count in visible.items():
            transaction = self._transactions[value.client, value.transaction]
            if value.source is not None:
                written.setdefault(transaction.transactional_id, Counter())[value.source] += count
        for name, sources in written.items():
            if name in self._watch.tainted:
                continue
            self._judge.looked[_OFFSETS] += 1
            places = [p for p in self._judge.truth.offsets if p[0] == f"loop {name}"]
            end = self._judge.truth.offsets[places[0]][-1][0] if places else 0
            wrong = [n for n in range(max(end, *sources) + 1) if sources[n] != (n < end)]
            if wrong:
                facts = (
                    name,
                    "committed up to",
                    end,
                    "wrong",
                    [(n, sources[n]) for n in wrong[:5]],
                )
                raise Violation(_OFFSETS, 0, *facts)


def _filtered(batches: list[SeenBatch], aborted: list[AbortedTransaction]) -> Iterator[SeenBatch]:
    """Remove the records of an answer's aborted transactions, as clients do."""
    waiting = sorted((each.first_offset, each.producer_id) for each in aborted)
    left_out: dict[int, None] = {}
    for batch in batches:
        while waiting and waiting[0][0] < batch.end_offset:
            left_out[waiting.pop(0)[1]] = None
        head = head_of(batch)
        if head.is_marker:
            if not head.is_commit:
                left_out.pop(head.producer_id, None)
        elif not (head.is_transactional and head.producer_id in left_out):
            yield batch
