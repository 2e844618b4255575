"""The transactions of a log that read_committed needs, for a batch query and for a stream.

A record counts where the next marker of its producer is a COMMIT, and only below the oldest
transaction that is open at the end of the log. So the batches after a part of a log decide about
it. Of the batches before it only open transactions matter, and these are in the producer snapshot
(KIP-98) that a node writes beside each segment. A task reads the headers of its own segments, and
continues until all transactions that are open there have ended.

A stream's scan continues where it stopped. It is dropped if the log no longer has the last scanned
batch (a truncation, another replica), and then begins again: it is only a cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from kraft_wire.columnar import (
    AbortedRange,
    PartitionFiles,
    TransactionScan,
    batch_columns,
    read_windows,
)
from kraft_wire.model import Offset, StorageError
from kraft_wire.spark.kraftlog.log_walk import judge_damage, walk
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.planning import EVERYTHING, LogPart, Stretch, producers_before
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.producers.producer_state import CorruptSnapshot, ProducerStates
from kraft_wire.wire.records.record_batch import HEADER_BYTES

__all__ = ["CommittedLogs", "Decided", "scan_around"]


class Decided(NamedTuple):
    """The aborted ranges and the last stable offset for a part's read_committed reader."""

    aborted: list[AbortedRange]
    last_stable_offset: int | None
    """Where the oldest transaction began that concerns the part and never ends."""


def scan_around(fs: FileSystem, part: LogPart, options: LogOptions) -> Decided:
    """Return the results of the transactions of a part; `part.history` is the whole log.

    A damaged marker does not count: if damage is skipped, the records of its transaction are not
    returned.
    """
    segments = [stretch.segment for stretch in part.history]
    first = segments.index(part.stretches[0].segment)
    last = segments.index(part.stretches[-1].segment)

    @cache
    def opened(at: int) -> dict[int, int] | None:
        return _opened_before(fs, part.directory, segments[at]) if at < len(segments) else None

    def take(at: int) -> None:
        _add_segment(fs, part, part.history[at], options, scan)
        if (after := opened(at + 1)) is not None:
            scan.settle(after)

    begin = next((at for at in range(first, -1, -1) if opened(at) is not None), 0)
    scan = TransactionScan(opened(begin) or {})
    for at in range(begin, last + 1):
        take(at)
    pending = scan.opened
    for at in range(last + 1, len(segments)):
        if not pending:
            break
        after = opened(at + 1)
        if after is None or _still_open(pending, after) != pending:  # one of them ends here
            take(at)
            pending = _still_open(pending, scan.opened)
    return Decided(scan.aborted, min(pending.values(), default=None))


def _still_open(pending: Mapping[int, int], opened: Mapping[int, int]) -> dict[int, int]:
    """Return the transactions that are still open later; a producer has one at a time."""
    return {
        producer: first
        for producer, first in pending.items()
        if opened.get(producer, first + 1) <= first
    }


def _opened_before(fs: FileSystem, directory: str, segment: str) -> dict[int, int] | None:
    """Return the open transactions at the start of a segment; None without a good snapshot."""
    states = ProducerStates()
    try:
        states.load_snapshot(fs.read(producers_before(directory, segment)), Offset(0))
    except (StorageError, CorruptSnapshot):
        return None
    return {
        state.producer_id: int(state.transaction_first_offset)
        for state in states.active_producers()
        if state.transaction_first_offset is not None
    }


def _add_segment(
    fs: FileSystem, part: LogPart, segment: Stretch, options: LogOptions, scan: TransactionScan
) -> None:
    """Read the headers of a whole segment, even if only a part of it is requested."""
    is_end = segment == part.history[-1]
    whole = replace(part, stretches=(segment,), offsets=EVERYTHING, holds_log_end=is_end)
    for found in walk(fs, whole, fail_on_loss=options.fail_on_data_loss):
        if options.on_corrupt == "fail":
            judge_damage(found, "fail")
        scan.add(found.columns)


@dataclass(slots=True)
class _Scanned:
    """How far one log was scanned."""

    scan: TransactionScan = field(default_factory=TransactionScan)
    segment: str = ""
    position: int = 0
    """Behind the last whole batch of that segment that was scanned."""
    last_position: int = 0
    last_header: bytes = b""
    """Of that batch; none if the segment had no whole one yet."""


class CommittedLogs:
    """The transactions of logs, by directory."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._known: dict[str, _Scanned] = {}

    def end_offset(self, files: PartitionFiles) -> int:
        """Return the last stable offset of a log as it is now."""
        return self._scanned(files).scan.last_stable_offset

    def told(self, part: LogPart) -> LogPart:
        """Return a part of a scanned log with its aborted transactions."""
        known = self._known[part.directory].scan.aborted
        end = part.offsets.end
        within = [
            each
            for each in known
            if each.last_offset >= part.offsets.start and (end is None or each.first_offset < end)
        ]
        return replace(part, aborted=tuple(within), history=())

    def _scanned(self, files: PartitionFiles) -> _Scanned:
        known = self._known.setdefault(files.directory, _Scanned())
        if not self._is_still_there(files, known):
            known = self._known[files.directory] = _Scanned()
        for segment in files.segments:
            if segment.file < known.segment:
                continue
            if segment.file > known.segment:
                known.segment, known.position, known.last_header = segment.file, 0, b""
            self._go_on(f"{files.directory}/{segment.file}", segment.size_bytes, known)
        return known

    def _go_on(self, path: str, size_bytes: int, known: _Scanned) -> None:
        """Scan the rest of a segment, up to its last whole batch."""
        try:
            file = self._fs.open_for_reading(path)
        except StorageError:
            return  # deleted meanwhile: the next listing does not have it
        for window in read_windows(file, size_bytes, known.position):
            columns = batch_columns(window)
            known.scan.add(columns)
            valid = columns.is_valid
            if valid.any():
                known.last_position = int(columns.position[valid][-1])
                known.last_header = file.pread(HEADER_BYTES, known.last_position)
                known.position = known.last_position + int(columns.size_bytes[valid][-1])
        file.close()

    def _is_still_there(self, files: PartitionFiles, known: _Scanned) -> bool:
        if not known.last_header:
            return True
        try:
            file = self._fs.open_for_reading(f"{files.directory}/{known.segment}")
        except StorageError:
            return False
        found = file.pread(HEADER_BYTES, known.last_position)
        file.close()
        return found == known.last_header
