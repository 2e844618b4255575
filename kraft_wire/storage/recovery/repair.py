"""Removes damage from a log without losing any byte: the work of `kraft-wire repair --cut`.

A log that recovery refuses stays unchanged until an operator decides. `cut` makes it end where the
damage begins, or removes a damaged side file. The bytes that it removes stay beside the segment
under a name that neither Kafka nor this program loads: `<segment>.<position>.cut`. The next start
verifies the rest from its first batch on and rebuilds indexes, epochs and producers.
"""

from contextlib import suppress

from kraft_wire.model import Offset, TopicPartition
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.checkpoints import RECOVERY_POINTS, read_offsets, write_offsets
from kraft_wire.storage.directory.log_directory import CLEAN_SHUTDOWN
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.recovery.damage import Damage, FoundSegment, segments_of
from kraft_wire.storage.segment import LOG_SUFFIX

__all__ = ["CUT_SUFFIX", "cut"]

CUT_SUFFIX = ".cut"
_COPY_BYTES = 1 << 20


def cut(fs: FileSystem, path: str, damage: Damage) -> list[str]:
    """Repair a damaged directory; return the side files with the removed bytes.

    Errors: StorageError with the log cut or not, but nothing lost; another call completes it.
    """
    assert damage.can_be_cut, damage
    # From now on the next start must not assume a clean shutdown.
    fs.unlink(f"{path}/{CLEAN_SHUTDOWN}")
    fs.sync_directory(path)
    if damage.partition is not None:
        _forget_recovery_point(fs, path, damage.partition)
    directory, _, name = damage.path.rpartition("/")
    if name.endswith(LOG_SUFFIX):
        kept = _cut_log(fs, directory, damage)
    else:
        kept = [_set_aside(fs, damage.path, 0)]
    fs.sync_directory(directory)
    return kept


def _forget_recovery_point(fs: FileSystem, path: str, partition: TopicPartition) -> None:
    """Make the next start verify the whole log, durably, before the log becomes shorter."""
    checkpoint = f"{path}/{RECOVERY_POINTS}"
    known: dict[TopicPartition, Offset] = {}
    with suppress(CorruptCheckpoint):
        known = read_offsets(fs, checkpoint)
    if known.pop(partition, None) is not None:
        write_offsets(fs, checkpoint, known)
    assert partition not in known, partition


def _cut_log(fs: FileSystem, directory: str, damage: Damage) -> list[str]:
    """Save and cut everything from the damage on, back to front, so that no gap can remain."""
    segments = list(segments_of(fs, directory))
    kept: list[str] = []
    for index in range(len(segments) - 1, -1, -1):
        segment = segments[index]
        if segment.path == damage.path and (damage.position > 0 or index == 0):
            if damage.position < segment.size_bytes:
                kept.append(_keep_tail(fs, segment, damage.position))
            break
        kept.append(_set_aside(fs, segment.path, 0))
        fs.sync_directory(directory)
        if segment.path == damage.path:
            break
    assert len(kept) <= len(segments), (kept, directory)
    return kept


def _keep_tail(fs: FileSystem, segment: FoundSegment, position: int) -> str:
    """Copy the bytes from `position` on into a side file, durably, then truncate the segment."""
    assert 0 <= position < segment.size_bytes, (position, segment.path)
    side_path = _side_path(fs, segment.path, position)
    side = fs.open(side_path, create=True)
    done = 0
    while position + done < segment.size_bytes:
        data = segment.file.pread(_COPY_BYTES, position + done)
        side.pwrite(data, done)
        done += len(data)
    side.fsync()
    side.close()
    fs.sync_directory(side_path.rpartition("/")[0])
    file = fs.open(segment.path)
    file.truncate(position)
    file.fsync()
    file.close()
    return side_path


def _set_aside(fs: FileSystem, path: str, position: int) -> str:
    """Rename a whole file to a name that is never loaded."""
    side_path = _side_path(fs, path, position)
    fs.rename(path, side_path)
    return side_path


def _side_path(fs: FileSystem, path: str, position: int) -> str:
    """Return an unused name beside `path`."""
    stem = path.removesuffix(LOG_SUFFIX)
    side_path = f"{stem}.{position}{CUT_SUFFIX}"
    number = 1
    while fs.exists(side_path):
        number += 1
        side_path = f"{stem}.{position}.{number}{CUT_SUFFIX}"
    assert side_path != path, path
    return side_path
