"""Transactions of one replica: `.txnindex`, producer snapshots, markers, open transactions.

One pass over the batches of producers, in the order of the log, decides all checks. A transaction
index has an entry for each abort of a transaction with data, or a read_committed reader gets
aborted records (`index`); a producer snapshot is the table of the producers at its offset
(`producer`); a marker without data before it ends nothing (`marker`, a note). Open transactions at
the end are returned: the coordinator's records decide whether they hang (`hanging_checks`).

If a log begins after offset 0, producers whose first batches are gone are not judged. Compacted
logs are left out: compaction removes batches, and whole transactions.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kraft_wire.audit.finding import NOWHERE, Finding, Severity
from kraft_wire.audit.layout import Layout, finding_at
from kraft_wire.audit.replica import Batches, segment_file
from kraft_wire.wire.records.control_records import ControlRecordType

__all__ = [
    "IndexEntry",
    "OpenTransaction",
    "ProducerEntry",
    "TransactionFiles",
    "check_transactions",
]

INDEX_ENTRY_BYTES: Final = 34
_NOTHING: Final = -1

IndexEntry = tuple[int, int, int, int]
"""Producer id, first offset, offset of the marker, last stable offset."""
ProducerEntry = tuple[int, int, int, int, int]
"""Producer id, epoch, last sequence, last offset, where its transaction began; -1 for none."""


@dataclass(frozen=True, slots=True)
class TransactionFiles:
    """The readable files beside the log."""

    indexes: Mapping[int, Sequence[IndexEntry]] = field(default_factory=dict)
    """By base offset of the segment, without segments that have no file."""
    snapshots: Mapping[int, Sequence[ProducerEntry]] = field(default_factory=dict)
    """By offset."""
    damage: Mapping[str, str] = field(default_factory=dict)
    """The fault of an unreadable file, by name."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction without a marker at the end of a replica."""

    node: str
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    file: str
    position: int
    last_timestamp: int


@dataclass(slots=True)
class _Producer:
    """The state of a producer by the batches so far."""

    epoch: int = _NOTHING
    last_sequence: int = _NOTHING
    last_offset: int = _NOTHING
    is_whole: bool = True
    """Whether all batches of its transaction are there."""
    knows_last: bool = True
    """Whether its last sequence and offset are those of the batches so far.

    They may be of a batch before the beginning of the log.
    """


class _Fold:
    """The transactions of a log up to some row."""

    def __init__(self, batches: Batches, is_whole: bool) -> None:
        self._batches = batches
        self._is_whole = is_whole
        self.producers: dict[int, _Producer] = {}
        self.open: dict[int, int] = {}
        """Row of the first batch, by producer id, the oldest first."""
        self.aborted: list[IndexEntry] = []
        self.unsure: set[tuple[int, int]] = set()
        """(producer id, marker) of aborts whose transaction may have begun before the log."""
        self.lone_markers: list[int] = []

    def take(self, row: int) -> None:
        """Take the next batch of a producer in."""
        batches = self._batches
        producer_id = int(batches.producer_id[row])
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = _Producer()
            producer.is_whole = producer.knows_last = self._is_whole
        epoch = int(batches.producer_epoch[row])
        if epoch != producer.epoch:
            producer.knows_last |= producer.epoch != _NOTHING
            producer.epoch, producer.last_sequence, producer.last_offset = epoch, _NOTHING, _NOTHING
        if batches.is_control[row]:
            self._end(row, producer_id, producer)
            return
        width = int(batches.last_offset[row] - batches.base_offset[row])
        producer.last_sequence = (int(batches.base_sequence[row]) + width) % (1 << 31)
        producer.last_offset = int(batches.last_offset[row])
        producer.knows_last = True
        if batches.is_transactional[row]:
            self.open.setdefault(producer_id, row)

    def _end(self, row: int, producer_id: int, producer: _Producer) -> None:
        marker = int(self._batches.base_offset[row])
        is_abort = self._batches.control_type[row] == ControlRecordType.ABORT
        first = self.open.pop(producer_id, None)
        if not producer.is_whole:
            if is_abort:
                self.unsure.add((producer_id, marker))
            producer.is_whole = True
        elif first is None:
            self.lone_markers.append(row)
        elif is_abort:
            oldest = next(iter(self.open.values()), None)
            stable = marker + 1 if oldest is None else int(self._batches.base_offset[oldest])
            begin = int(self._batches.base_offset[first])
            self.aborted.append((producer_id, begin, marker, stable))


def check_transactions(
    layout: Layout, files: TransactionFiles, checks: Collection[str]
) -> tuple[list[Finding], list[OpenTransaction]]:
    """Judge a replica without other faults; return the open transactions at its end, too."""
    replica, batches = layout.replica, layout.replica.batches
    if replica.is_compacted or not batches.is_valid.all():
        return [], []
    rows = layout.rows[batches.producer_id[layout.rows] >= 0]
    is_whole = len(layout.rows) == 0 or int(batches.base_offset[layout.rows[0]]) == 0
    fold = _Fold(batches, is_whole)
    findings = [
        _about(layout, name, _NOTHING, NOWHERE, reason) for name, reason in files.damage.items()
    ]
    offsets = [each for each in sorted(files.snapshots) if each <= layout.log_end_offset]
    for row in rows.tolist():
        while offsets and int(batches.base_offset[row]) >= offsets[0]:
            findings += _snapshot_findings(layout, fold, files, offsets.pop(0))
        fold.take(row)
    for offset in offsets:
        findings += _snapshot_findings(layout, fold, files, offset)
    findings += _index_findings(layout, fold, files)
    findings += _marker_findings(layout, fold)
    found = [each for each in findings if each.check in checks]
    return found, [_open(layout, producer_id, row) for producer_id, row in fold.open.items()]


def _open(layout: Layout, producer_id: int, row: int) -> OpenTransaction:
    replica, batches = layout.replica, layout.replica.batches
    own = layout.rows[batches.producer_id[layout.rows] == producer_id]
    return OpenTransaction(
        *(replica.node, replica.topic, replica.partition, producer_id),
        *(int(batches.producer_epoch[own[-1]]), int(batches.base_offset[row])),
        *(batches.file(row), int(batches.position[row])),
        int(np.max(batches.max_timestamp[own])),
    )


def _snapshot_findings(
    layout: Layout, fold: _Fold, files: TransactionFiles, offset: int
) -> Iterator[Finding]:
    """Yield the first entry of a producer snapshot that differs from the log."""
    name = f"{offset:020d}.snapshot"
    entries = {each[0]: each for each in files.snapshots[offset]}
    for producer_id, producer in fold.producers.items():
        if not producer.is_whole:
            continue
        row = fold.open.get(producer_id)
        begin = _NOTHING if row is None else int(layout.replica.batches.base_offset[row])
        entry = entries.get(producer_id)
        if entry is None:
            if begin >= 0:
                detail = f"the open transaction of producer {producer_id} is missing"
                yield _about(layout, name, begin, NOWHERE, detail)
                return
            continue  # an idle producer expires
        last = (producer.last_sequence, producer.last_offset)
        if not producer.knows_last:
            last = (entry[2], entry[3])
        right = (producer_id, producer.epoch, *last, begin)
        if entry != right:
            detail = f"producer {producer_id}: {entry[1:]}, the log has {right[1:]}"
            yield _about(layout, name, max(begin, producer.last_offset), NOWHERE, detail)
            return


def _index_findings(layout: Layout, fold: _Fold, files: TransactionFiles) -> Iterator[Finding]:
    """Yield the first entry of each transaction index that is wrong or missing."""
    segments = layout.replica.segments
    for at, base in enumerate(segments):
        end = segments[at + 1] if at + 1 < len(segments) else layout.log_end_offset
        name = segment_file(base).replace(".log", ".txnindex")
        if name in files.damage:
            continue
        wanted = [each for each in fold.aborted if base <= each[2] < end]
        found = [each for each in files.indexes.get(base, ()) if each[2] < layout.log_end_offset]
        for place, entry in enumerate(found):
            if entry not in wanted and (entry[0], entry[2]) not in fold.unsure:
                detail = f"entry {entry} matches no aborted transaction"
                yield _about(layout, name, entry[2], place * INDEX_ENTRY_BYTES, detail)
                break
        else:
            missing = [each for each in wanted if each not in found]
            is_written_later = at + 1 == len(segments) and found == wanted[: len(found)]
            if missing and not is_written_later:
                detail = f"the aborted transaction {missing[0]} is missing"
                yield _about(layout, name, missing[0][2], NOWHERE, detail)


def _marker_findings(layout: Layout, fold: _Fold) -> Iterator[Finding]:
    """Note markers that end nothing: a repeated one, or of a partition that got no data."""
    if fold.lone_markers:
        first = fold.lone_markers[0]
        producer_id = layout.replica.batches.producer_id[first]
        count = len(fold.lone_markers)
        detail = f"the marker of producer {producer_id} ends no open transaction"
        detail += f", and {count - 1} later ones" if count > 1 else ""
        yield finding_at(layout.replica, "marker", "info", first, detail)


def _about(layout: Layout, name: str, offset: int, position: int, detail: str) -> Finding:
    replica = layout.replica
    check = "producer" if name.endswith(".snapshot") else "index"
    severity: Severity = "error"
    place = (replica.node, replica.topic, replica.partition, offset, name, position)
    return Finding(check, severity, *place, detail)
