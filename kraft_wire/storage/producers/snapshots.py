"""Producer tables on disk: `<20-digit offset>.snapshot` files beside the segments (KIP-98).

A snapshot at offset N is the table after every record below N. One is taken at each roll and at
a clean stop; loading takes the newest intact one and replays the log from there. They are derived
and carry a CRC: a damaged one is skipped.
"""

from collections.abc import Callable, Sequence

from kraft_wire.model import Offset
from kraft_wire.storage.files import FileSystem, replace_file
from kraft_wire.storage.producers.producer_state import CorruptSnapshot, ProducerStates
from kraft_wire.storage.producers.replay import ProducerReplay
from kraft_wire.storage.recovery.verification import right_batches
from kraft_wire.storage.scan import BadBatch
from kraft_wire.storage.segment import CorruptLog, Segment, file_name, offset_in
from kraft_wire.wire.records.corruption import CorruptRecordBatch

__all__ = [
    "load_producers",
    "remove_snapshots",
    "remove_stray_snapshots",
    "snapshot_offsets",
    "snapshot_path",
    "take_snapshot",
]

_SUFFIX = ".snapshot"


def snapshot_path(directory: str, offset: Offset) -> str:
    """Return the path of the table of all records below an offset."""
    assert offset >= 0, offset
    return f"{directory}/{file_name(offset, _SUFFIX)}"


def snapshot_offsets(fs: FileSystem, directory: str) -> list[Offset]:
    """Return the offsets at which snapshots were taken, growing."""
    found = (offset_in(name, _SUFFIX) for name in fs.names(directory))
    offsets = [each for each in found if each is not None]
    assert offsets == sorted(offsets), offsets
    return offsets


def take_snapshot(fs: FileSystem, directory: str, states: ProducerStates) -> bool:
    """Write the table at its end offset, unless the file has it; return whether it was written.

    A node that stops may have thousands of logs, most of them unchanged since its start.
    """
    assert states.map_end_offset >= 0, states.map_end_offset
    path = snapshot_path(directory, states.map_end_offset)
    table = states.snapshot()
    if fs.exists(path) and fs.read(path) == table:
        return False
    replace_file(fs, path, table, durable=False)
    assert fs.exists(path), path
    return True


def remove_snapshots(fs: FileSystem, directory: str, is_unwanted: Callable[[Offset], bool]) -> None:
    """Remove the snapshots at unwanted offsets, durably: a stale one would load a wrong table."""
    unwanted = [offset for offset in snapshot_offsets(fs, directory) if is_unwanted(offset)]
    for offset in unwanted:
        fs.unlink(snapshot_path(directory, offset))
    if unwanted:
        fs.sync_directory(directory)
    assert not any(map(is_unwanted, snapshot_offsets(fs, directory))), directory


def remove_stray_snapshots(fs: FileSystem, directory: str, bases: Sequence[Offset]) -> None:
    """Remove snapshots that were taken at no segment's base, except for the newest one.

    A clean stop and a segment that compaction has joined to another leave them. Not durable: they
    are right, and the next start removes them again. Kafka:
    ProducerStateManager.removeStraySnapshots.
    """
    assert bases, directory
    taken = snapshot_offsets(fs, directory)
    kept = {*bases, *(offset for offset in taken[-1:] if offset > bases[-1])}
    for offset in taken:
        if offset not in kept:
            fs.unlink(snapshot_path(directory, offset))


def load_producers(
    fs: FileSystem,
    directory: str,
    segments: Sequence[Segment],
    end_offset: Offset,
    high_watermark: Offset | None = None,
) -> ProducerStates:
    """Return the table at `end_offset`: newest intact snapshot up to there, then the log.

    A snapshot does not have ended transactions, but those whose marker is not below the high
    watermark hold the last stable offset back. If there are any, an older snapshot is used.
    """
    assert segments, directory
    states = ProducerStates()
    limit = end_offset
    for taken_at in reversed(snapshot_offsets(fs, directory)):
        if not segments[0].base_offset <= taken_at <= limit:
            continue
        try:
            states.load_snapshot(fs.read(snapshot_path(directory, taken_at)), taken_at)
        except CorruptSnapshot:
            continue
        if high_watermark is None or taken_at <= high_watermark:
            break
        if not states.has_markers or not _has_marker(segments, high_watermark, taken_at):
            break
        # Non-obvious 34: this snapshot lacks transactions that hold the last stable offset back.
        states, limit = ProducerStates(), high_watermark
    _replay(states, segments, end_offset)
    states.map_end_offset = end_offset
    return states


def _has_marker(segments: Sequence[Segment], start: Offset, end: Offset) -> bool:
    """Whether a control batch is in [start, end); CorruptLog if the log cannot be read."""
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if segment.base_offset >= end:
            break
        if following is not None and following.base_offset <= start:
            continue
        frame = segment.locate(max(start, segment.base_offset))
        batches = [] if frame is None else segment.batches_from(frame.position)
        if any(batch.is_control and batch.base_offset < end for _, batch in batches):
            return True
    return False


def _replay(states: ProducerStates, segments: Sequence[Segment], end_offset: Offset) -> None:
    """Replay the log from the end of the table; CorruptLog if it cannot be read."""
    replay = ProducerReplay(states)
    start = states.map_end_offset
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if segment.base_offset >= end_offset:
            break
        if start >= end_offset or (following is not None and following.base_offset <= start):
            continue
        frame = segment.locate(max(start, segment.base_offset))
        if frame is not None:
            _replay_segment(replay, segment, frame.position, end_offset)
    replay.settle()
    assert states.map_end_offset >= 0, states.map_end_offset


def _replay_segment(
    replay: ProducerReplay, segment: Segment, position: int, end_offset: Offset
) -> None:
    """Take the batches from `position` on that begin below `end_offset`."""
    assert position < segment.size_bytes, (position, segment.path)
    try:
        for found in right_batches(segment.file, position, segment.size_bytes):
            position, size, base_offset, _, _, _, producer_id, view, at = found
            if base_offset >= end_offset:
                return
            if producer_id >= 0:
                replay.take(producer_id, view, at, size)
    except BadBatch as bad:
        raise CorruptLog(segment.path, bad.position, bad.reason) from bad
    except CorruptRecordBatch as error:  # a marker that cannot be read
        raise CorruptLog(segment.path, position, error.reason) from error
