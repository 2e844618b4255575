"""S69: the files beside sealed segments hold what the batches of the log say.

Looked at when a replica's segments change (a roll, a compaction, the start of a process): the
offset, time and transaction index of each sealed segment, and each producer snapshot. A file that
is missing is not judged, because the node rebuilds it. Nothing is shared with `storage`: the rules
are those of `LogSegment.append`, `ProducerStateManager` and KIP-98, written down plainly.

Compaction and retention remove batches, but neither what a snapshot says about a producer nor the
start of its transaction. There a file may know more than the log.

Errors: `Violation`. The ids are in docs/SIMULATION.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final

from kraft_wire.sim.disk.file_nodes import DirectoryNode, FileNode
from kraft_wire.sim.judge.data_log_watch import DataLogWatch, SeenSegment
from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.replica_watch import ReplicaWatch
from kraft_wire.sim.judge.transactions.log_scan import LogScan, head_of
from kraft_wire.wire.crc32c import crc32c

__all__ = ["SegmentFiles"]

_FILES: Final = "S69 FilesAreTheLog"
_INDEX_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_ABORTED_ENTRY: Final = Struct(">hqqqq")
_SNAPSHOT_HEAD: Final = Struct(">hIi")
_SNAPSHOT_ENTRY: Final = Struct(">qhiqiqiq")
_TIME_AT: Final = 35
_NUMBERS_AT: Final = 23
_NUMBERS: Final = Struct(">i8xqqhi")
"""Last offset delta, largest time, producer id, its epoch, its first sequence."""
_SEQUENCES: Final = 1 << 31


class SegmentFiles:
    """Compares the files of each sealed segment once in the life of a process."""

    def __init__(self, judge: ReplicaJudge, *, interval_bytes: int) -> None:
        self.judge = judge
        self.interval_bytes = interval_bytes
        """Bytes of batches after which an index gets its next entry."""

    def look_at(self, watch: ReplicaWatch) -> None:
        """Segments of a replica are other ones: compare the files that were not compared yet."""
        directory = watch.machine.fs.look(watch.log.directory)
        if not isinstance(directory, DirectoryNode) or not isinstance(watch.log, DataLogWatch):
            return
        segments = watch.log.segments
        is_start, seen = "active" not in watch.compared, watch.compared
        scan: LogScan | None = None
        for segment in segments[:-1]:
            if not segment.batches:
                continue
            last = segment.batches[-1]
            name, state = f"{segment.base_offset:020d}", (last.segment, last.position, last.crc)
            if seen.get(name) != state:
                seen[name] = state
                scan = scan or _scan_of(watch.log.batches)
                self._look_at_segment(watch, directory, segment, scan)
        if segments:
            self._look_at_roll(watch, directory, segments)
        is_compacted = watch.truth.rules is not None and watch.truth.rules.is_compacted
        for name, node in directory.children.items():
            if name.endswith(".snapshot") and isinstance(node, FileNode):
                if seen.get(name) is not node and not (is_start and is_compacted):
                    self._look_at_snapshot(watch, int(name[:20]), bytes(node.content))
                seen[name] = node

    def _check(self, holds: bool, watch: ReplicaWatch, *facts: object) -> None:
        self.judge.check(_FILES, holds, watch, *facts)

    # -- indexes ---------------------------------------------------------------------------------

    def _look_at_segment(
        self, watch: ReplicaWatch, directory: DirectoryNode, segment: SeenSegment, scan: LogScan
    ) -> None:
        stem = f"{segment.base_offset:020d}"
        wanted, times, all_times = _indexes_of(segment, self.interval_bytes)
        found = _entries(directory, f"{stem}.index", _INDEX_ENTRY)
        if found is not None:
            self._check(found == wanted, watch, f"{stem}.index", found, "not", wanted)
        found = _entries(directory, f"{stem}.timeindex", _TIME_ENTRY)
        if found is not None:
            is_right = _is_run(found, all_times) and set(times) <= set(found)
            is_right = is_right and found[-1:] == all_times[-1:]
            self._check(is_right, watch, f"{stem}.timeindex", found, "not", times, "of", all_times)
        found = _entries(directory, f"{stem}.txnindex", _ABORTED_ENTRY) or []
        self._look_at_aborted(watch, segment, found, scan)

    def _look_at_aborted(
        self,
        watch: ReplicaWatch,
        segment: SeenSegment,
        found: Sequence[tuple[int, ...]],
        scan: LogScan,
    ) -> None:
        """Each aborted transaction whose marker is in the segment, and that has data, is there.

        Its first record may be gone from the log, and transactions that were open then.
        """
        entries = {(entry[1], entry[3]): entry for entry in found}
        for each in scan.ended:
            marker = each.marker_offset
            assert marker is not None, each
            if each.is_commit or not segment.base_offset <= marker < segment.end_offset:
                continue
            entry = entries.get((each.producer_id, marker))
            facts = (f"{segment.base_offset:020d}.txnindex", found, "lacks", each.producer_id)
            is_there = entry is not None and entry[2] <= each.first_offset
            is_there = is_there and entry is not None and entry[4] <= each.stable_offset
            self._check(is_there, watch, *facts, each.first_offset, marker, each.stable_offset)

    # -- producers -------------------------------------------------------------------------------

    def _look_at_roll(
        self, watch: ReplicaWatch, directory: DirectoryNode, segments: Sequence[SeenSegment]
    ) -> None:
        """A roll has taken a snapshot where the new segment begins."""
        active, before = segments[-1].base_offset, watch.compared.get("active")
        watch.compared["active"] = active
        if any(each.base_offset == before for each in segments[:-1]):
            name = f"{active:020d}.snapshot"
            self._check(name in directory.children, watch, name, "was not taken")

    def _look_at_snapshot(self, watch: ReplicaWatch, taken_at: int, data: bytes) -> None:
        """Compare a producer snapshot with the batches below its offset."""
        name, log = f"{taken_at:020d}.snapshot", watch.log
        if taken_at > log.end_offset or not log.batches:
            return
        _, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
        self._check(crc == crc32c(data[6:]), watch, name, "has a wrong checksum")
        rows = list(_SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :]))
        self._check(len(rows) == count, watch, name, len(rows), "rows, not", count)
        table = {row[0]: row for row in rows}
        below = [each for each in log.batches if each.end_offset <= taken_at]
        scan, producers = _scan_of(below), _producers_of(below)
        is_compacted = watch.truth.rules is not None and watch.truth.rules.is_compacted
        for producer_id, seen in producers.items():
            row = table.get(producer_id)
            if row is None:
                continue  # it was idle for too long
            facts = (name, row, "not", seen)
            is_whole = log.start_offset == 0 and not is_compacted
            is_same = seen.agrees(row, is_whole=is_whole, is_compacted=is_compacted)
            self._check(is_same, watch, *facts)
            own = scan.open.get(producer_id)
            first, begins = row[7], -1 if own is None else own.first_offset
            is_right = first == begins if is_whole else (begins < 0 or 0 <= first <= begins)
            self._check(is_right, watch, name, producer_id, "open from", first, "not", begins)


@dataclass(slots=True)
class _Producer:
    """What the batches of a log say about one producer."""

    epoch: int = -1
    last_sequence: int = -1
    last_offset: int = -1
    delta: int = 0
    timestamp: int = -1
    coordinator_epoch: int = -1
    is_sure: bool = True
    """False behind a marker that compaction has emptied: a replica that copied it ignored it."""

    def agrees(self, row: tuple[int, ...], *, is_whole: bool, is_compacted: bool) -> bool:
        """Return whether a row of a snapshot says the same."""
        _, epoch, sequence, offset, delta, timestamp, coordinator_epoch, _ = row
        if not self.is_sure:
            return epoch >= self.epoch
        if is_compacted and (epoch > self.epoch or offset > self.last_offset):
            return True
        own = (self.epoch, self.last_sequence, self.last_offset, self.delta)
        is_same = (epoch, sequence, offset, delta) == own
        if is_compacted:
            return is_same and coordinator_epoch >= self.coordinator_epoch
        is_marked = self.coordinator_epoch == coordinator_epoch
        is_unknown = self.coordinator_epoch < 0 and not is_whole  # its marker may be removed
        return is_same and timestamp == self.timestamp and (is_marked or is_unknown)


def _producers_of(batches: Sequence[SeenBatch]) -> dict[int, _Producer]:
    """Return the table of producers: `ProducerAppendInfo`, batch by batch."""
    found: dict[int, _Producer] = {}
    for batch in batches:
        delta, timestamp, producer_id, epoch, first = _NUMBERS.unpack_from(batch.data, _NUMBERS_AT)
        if producer_id < 0:
            continue
        own = found.setdefault(producer_id, _Producer())
        if batch.is_control and head_of(batch).coordinator_epoch < 0:
            own.is_sure = False
            continue
        if own.epoch != epoch:
            own.epoch, own.last_sequence, own.last_offset, own.delta = epoch, -1, -1, 0
        if batch.is_control:
            own.coordinator_epoch = head_of(batch).coordinator_epoch
        else:
            own.last_sequence = (first + delta) % _SEQUENCES
            own.last_offset, own.delta = batch.base_offset + delta, delta
        own.timestamp = timestamp
    return found


def _scan_of(batches: Sequence[SeenBatch]) -> LogScan:
    scan = LogScan()
    scan.follow(batches)
    return scan


def _entries(directory: DirectoryNode, name: str, form: Struct) -> list[tuple[int, ...]] | None:
    """Return the entries of an index file, None without a file."""
    node = directory.children.get(name)
    if not isinstance(node, FileNode):
        return None
    data = bytes(node.content)
    whole = len(data) - len(data) % form.size
    return [*form.iter_unpack(data[:whole]), *([()] if whole < len(data) else [])]


def _indexes_of(
    segment: SeenSegment, interval_bytes: int
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the entries of the offset index, those that the time index needs, and may have.

    A time entry names the first batch with the largest time so far. One is needed beside each
    entry of the offset index; a stop or a cut may have left others.
    """
    offsets: list[tuple[int, ...]] = []
    times: list[tuple[int, ...]] = []
    all_times: list[tuple[int, ...]] = []
    since = 0
    for batch in segment.batches:
        last = batch.end_offset - 1 - segment.base_offset
        timestamp = int.from_bytes(batch.data[_TIME_AT : _TIME_AT + 8], "big", signed=True)
        if timestamp > (all_times[-1][0] if all_times else -1):
            all_times.append((timestamp, last))
        if since > interval_bytes:
            offsets.append((last, batch.position))
            times += all_times[-1:]
            since = 0
        since += len(batch.data)
    return offsets, times, all_times


def _is_run(found: Sequence[tuple[int, ...]], allowed: Sequence[tuple[int, ...]]) -> bool:
    """Return whether entries are some of the allowed ones, in their order."""
    left: Iterator[tuple[int, ...]] = iter(allowed)
    return all(entry in left for entry in found)
