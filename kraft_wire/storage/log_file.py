"""Walks over the `.log` file of a segment in use, where bytes outside of valid batches are damage.

`scan` walks any file and leaves the decision to its caller, which may be recovery; here the log was
recovered before, and `CorruptLog` sets it aside.
"""

from collections.abc import Iterator
from typing import Protocol

from kraft_wire.model import Offset, StorageError
from kraft_wire.storage.files import File
from kraft_wire.storage.scan import BadBatch, Frame, batches, find_frame, frames
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["CorruptLog", "LogFile", "batches_of", "frame_of", "frames_of"]


class CorruptLog(StorageError):
    """A log file has invalid bytes where a batch must be."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__("verify", path, f"position {position}: {reason}")
        self.position = position


class LogFile(Protocol):
    """An open `.log` file with its used size, which only the log knows."""

    path: str
    size_bytes: int

    @property
    def file(self) -> File:
        """The open file."""
        ...


def frame_of(log: LogFile, position: int, offset: Offset) -> Frame | None:
    """Return the first batch from `position` on that ends at or after `offset`, or None."""
    assert 0 <= position <= log.size_bytes, (position, log.path)
    try:
        return find_frame(log.file, position, log.size_bytes, offset)
    except BadBatch as bad:
        raise CorruptLog(log.path, bad.position, bad.reason) from bad


def frames_of(log: LogFile, position: int) -> Iterator[Frame]:
    """Yield the frames from `position` on."""
    assert 0 <= position <= log.size_bytes, (position, log.path)
    try:
        yield from frames(log.file, position, log.size_bytes)
    except BadBatch as bad:
        raise CorruptLog(log.path, bad.position, bad.reason) from bad


def batches_of(log: LogFile, position: int) -> Iterator[tuple[int, RecordBatch]]:
    """Yield (position, batch) from `position` on, each with its CRC verified."""
    assert 0 <= position <= log.size_bytes, (position, log.path)
    try:
        yield from batches(log.file, position, log.size_bytes)
    except BadBatch as bad:
        raise CorruptLog(log.path, bad.position, bad.reason) from bad
