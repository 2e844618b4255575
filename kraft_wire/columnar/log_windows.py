"""Walks over the bytes of a log file, window by window, damaged or not.

Every stretch of the file becomes exactly one row of a window: a whole batch with a right checksum
(`ok`), a whole one with a wrong checksum (`crc`), bytes between batches (`garbage`), or what
follows the last whole batch (`torn`: a cut write, zeros of a preallocation). Formats 0 to 2
(KIP-31, KIP-98). A length is trusted once the checksum over that many bytes is right; otherwise the
next whole batch is searched (`resync`), inside the declared length too.

Memory is bounded by one window or, where a batch is larger, by `batch_bytes_max`: a larger one is
checked in pieces and reported without its content. Time is bounded by a credit of bytes for
checksums that turn out wrong.

Does not look into batches: `batch_columns` reads headers, `records` the rest.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

import numpy as np

from kraft_wire.columnar.arrays import PADDING_BYTES, Int64s
from kraft_wire.columnar.resync import batch_candidates
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.legacy_batch import LEGACY_LENGTH_MIN
from kraft_wire.wire.records.record_batch import (
    CHECKED_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
)

__all__ = ["MemoryFile", "Status", "Window", "read_windows", "window_of"]

_FRAME: Final = struct.Struct(">i4xBI")  # length, magic, checksum of format 2; from byte 8
_FRAME_AT: Final = 8
_BASE_OFFSET: Final = struct.Struct(">q")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23
_LEGACY_CRC: Final = struct.Struct(">I")
_LEGACY_CRC_AT: Final = 12
_LEGACY_CHECKED_FROM: Final = 16
_MAGIC_AT: Final = 16
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD_BYTES

_LEGACY_BYTES_MIN: Final = LEGACY_LENGTH_MIN + LOG_OVERHEAD_BYTES

_WINDOW_BYTES: Final = 8 << 20
_BATCH_BYTES_MAX: Final = 256 << 20
_PIECE_BYTES: Final = 1 << 20
_SEARCH_BYTES_MIN: Final = 1 << 12
_CREDIT_BYTES: Final = 4 << 30
_CREDIT_PER_BYTE: Final = 16


class Status(IntEnum):
    """The kind of a stretch of a log file; the view `batches` has the names in lower case."""

    OK = 0
    CRC = 1
    TORN = 2
    GARBAGE = 3


class Readable(Protocol):
    """The needed part of a file: positioned reads, shorter only at its end."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Read up to `size_bytes` at `position`."""
        ...


class MemoryFile:
    """Bytes that were fetched or read already, as a file."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(data)

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Return a copy of up to `size_bytes` at `position`."""
        return bytes(self._view[position : position + size_bytes])


@dataclass(frozen=True, slots=True)
class Window:
    """Some consecutive stretches of a file, with their bytes."""

    data: bytes
    """The bytes from `position` on, and at least `PADDING_BYTES` more."""
    position: int
    """Where `data` begins in the file."""
    size_bytes: int
    """Bytes of the file that the rows cover; `data` leaves out batches that are too large."""
    starts: Int64s
    """Where each row begins in `data`."""
    sizes: Int64s
    """Bytes of each row."""
    status: Int64s
    """One `Status` a row."""

    @property
    def held_bytes(self) -> int:
        """How many bytes of the file are in `data`."""
        return len(self.data) - PADDING_BYTES


def window_of(data: bytes | bytearray | memoryview) -> Window:
    """Return the one window over bytes in memory, for example a fetched batch or several."""
    size = max(len(data), 1)
    windows = list(read_windows(MemoryFile(data), len(data), window_bytes=size))
    if len(windows) == 1:
        return windows[0]
    assert not windows, "a window of the data's size holds all of it"
    none = np.zeros(0, np.int64)
    return Window(bytes(PADDING_BYTES), 0, 0, none, none, none)


def read_windows(
    file: Readable,
    end_position: int,
    start_position: int = 0,
    *,
    window_bytes: int = _WINDOW_BYTES,
    batch_bytes_max: int = _BATCH_BYTES_MAX,
) -> Iterator[Window]:
    """Yield the stretches of [start_position, end_position); together they cover it all.

    `start_position` must be where a batch begins (0, or an entry of the index), or else the bytes
    before the first batch are `garbage`. A file that became shorter ends at its present end.
    """
    assert 0 <= start_position <= end_position, (start_position, end_position)
    assert window_bytes > 0, window_bytes
    walk = _Walk(file, end_position, window_bytes, batch_bytes_max)
    position = start_position
    while position < walk.end:
        window = walk.window_at(position)
        if window is None:
            return
        yield window
        position += window.size_bytes


class _Walk:
    """One pass over a file: the bytes at hand, and how many may still fail a check."""

    def __init__(self, file: Readable, end: int, window_bytes: int, batch_bytes_max: int) -> None:
        self.end = end
        self._file = file
        self._window_bytes = window_bytes
        self._batch_bytes_max = batch_bytes_max
        self._credit = _CREDIT_BYTES
        self._load(0, 0)

    def _load(self, position: int, size: int) -> None:
        wanted = size + PADDING_BYTES if size else 0
        data = self._file.pread(wanted, position) if wanted else b""
        self._position = position
        self._held = min(size, len(data), self.end - position)
        if len(data) < size:  # the file became shorter
            self.end = min(self.end, position + len(data))
        if len(data) < self._held + PADDING_BYTES:
            data += bytes(self._held + PADDING_BYTES - len(data))
        self._data = data[: self._held + PADDING_BYTES]
        self._view = memoryview(self._data)

    def window_at(self, position: int) -> Window | None:
        """Continue reading at `position`; None if the file ends there now."""
        self._load(position, min(self._window_bytes, self.end - position))
        if not self._held:
            return None
        self._make_room(position)
        starts, sizes, status = self._rows()
        self._credit += _CREDIT_PER_BYTE * sum(sizes)
        return Window(
            self._data,
            position,
            starts[-1] + sizes[-1],
            np.array(starts, np.int64),
            np.array(sizes, np.int64),
            np.array(status, np.int64),
        )

    def _make_room(self, position: int) -> None:
        """Read as much as the first batch needs, where that is more than a window."""
        size = self._framed(position)
        if size is None or size <= self._held or size > self._batch_bytes_max:
            return
        if self._crc_is_valid(position, size):
            self._load(position, size)

    def _rows(self) -> tuple[list[int], list[int], list[int]]:
        """Walk over the bytes at hand; whole batches with a right checksum never leave the loop."""
        starts: list[int] = []
        sizes: list[int] = []
        status: list[int] = []
        view, held, frame = self._view, self._held, _FRAME.unpack_from
        at = 0
        while at < held:
            length, magic, crc = frame(view, at + _FRAME_AT)
            size, kind = length + LOG_OVERHEAD_BYTES, Status.OK
            is_whole = magic == MAGIC and length >= _LENGTH_MIN and at + size <= held
            if not is_whole or crc32c(view[at + CHECKED_FROM : at + size]) != crc:
                if at and self._is_cut_by_window(at, size, magic):
                    break
                size, kind = self._judge(self._position + at)
            starts.append(at)
            sizes.append(size)
            status.append(kind)
            at += size
        return starts, sizes, status

    def _is_cut_by_window(self, at: int, size: int, magic: int) -> bool:
        """Whether a batch at `at` may be whole in the file, but not in this window."""
        position = self._position + at
        if self._position + self._held >= self.end:
            return False
        if self._held - at < HEADER_BYTES:
            return True
        return magic <= MAGIC and at + size > self._held and position + size <= self.end

    def _judge(self, position: int) -> tuple[int, Status]:
        """Return the size and nature of the stretch that begins at `position`."""
        size = self._framed(position)
        if size is None:
            return self._lost(position, position + 1)
        if self._crc_is_valid(position, size):
            return size, Status.OK
        after = position + size
        if after < self.end and not self._begins_batch(after):
            inner = self._find(position + 1, after)
            return (inner - position, Status.GARBAGE) if inner >= 0 else self._lost(position, after)
        swallowed = self._find_swallowed(position, after)
        return (size, Status.CRC) if swallowed < 0 else (swallowed - position, Status.GARBAGE)

    def _lost(self, position: int, search_from: int) -> tuple[int, Status]:
        """Return the stretch up to the next whole batch, or to the end of the file."""
        found = self._find(search_from, self.end)
        if found < 0:
            return self.end - position, Status.TORN
        return found - position, Status.GARBAGE

    def _find_swallowed(self, position: int, after: int) -> int:
        """Return where a batch begins inside one whose length points to a later batch, or -1.

        Its offsets are between those of both: a value that holds a batch has other offsets. The
        later batch may itself be bytes of another one that only look like a beginning.
        """
        head = self._bytes(position, HEADER_BYTES)
        own = HEADER_BYTES if head[_MAGIC_AT] == MAGIC else _LEGACY_BYTES_MIN
        if after - position < own + _LEGACY_BYTES_MIN:
            return -1  # no room for two
        (base,) = _BASE_OFFSET.unpack_from(head)
        delta = 0
        if head[_MAGIC_AT] == MAGIC and len(head) >= HEADER_BYTES:
            (delta,) = _LAST_OFFSET_DELTA.unpack_from(head, _LAST_OFFSET_DELTA_AT)
        found = self._find(position + 1, after)
        if found < 0:
            return -1
        if self._is_within_batch(after, found):
            return found
        (inner,) = _BASE_OFFSET.unpack_from(self._bytes(found, _BASE_OFFSET.size))
        if after < self.end:
            (beyond,) = _BASE_OFFSET.unpack_from(self._bytes(after, _BASE_OFFSET.size))
            if inner >= beyond:
                return -1
        return found if inner > base + delta else -1

    def _is_within_batch(self, position: int, first: int) -> bool:
        """Whether consecutive batches, from a whole one at `first` on, cover the position.

        Then bytes at `position` that look like the beginning of a batch do not begin one.
        """
        at = first
        while at < position:
            size = self._framed(at)
            if size is None:
                return False
            at += size
        return at > position

    def _find(self, position: int, stop: int) -> int:
        """Return where the first whole batch with a right checksum in [position, stop) begins."""
        step = _SEARCH_BYTES_MIN
        while position < stop:
            chunk = self._bytes(position, min(step, stop - position) + PADDING_BYTES)
            begins = min(step, stop - position)
            for at, size in batch_candidates(chunk, begins, self.end - position):
                if self._crc_is_valid(position + at, size):
                    return position + at
            position += begins
            step = min(2 * step, _PIECE_BYTES)
        return -1

    def _framed(self, position: int) -> int | None:
        """Return the size that the header declares, None if no whole batch can be there."""
        left = self.end - position
        if not self._begins_batch(position):
            return None
        length: int = _FRAME.unpack_from(self._bytes(position, HEADER_BYTES), _FRAME_AT)[0]
        size = length + LOG_OVERHEAD_BYTES
        return size if size <= left else None

    def _begins_batch(self, position: int) -> bool:
        """Whether length and magic are possible."""
        head = self._bytes(position, HEADER_BYTES)
        if len(head) < _LEGACY_BYTES_MIN:
            return False
        length, magic, _ = _FRAME.unpack_from(head, _FRAME_AT)
        least = _LENGTH_MIN if magic == MAGIC else LEGACY_LENGTH_MIN
        return bool(magic <= MAGIC and length >= least)

    def _crc_is_valid(self, position: int, size: int) -> bool:
        """Check a batch of any size, in pieces; False too where the credit is used up."""
        if size > self._credit:
            return False
        head = self._bytes(position, HEADER_BYTES)
        if head[_MAGIC_AT] == MAGIC:
            wanted, at, checksum = _FRAME.unpack_from(head, _FRAME_AT)[2], CHECKED_FROM, crc32c
        else:
            (wanted,) = _LEGACY_CRC.unpack_from(head, _LEGACY_CRC_AT)
            at, checksum = _LEGACY_CHECKED_FROM, zlib.crc32
        value = 0
        while at < size:
            piece = self._bytes(position + at, min(_PIECE_BYTES, size - at))
            if not piece:
                break
            value = checksum(piece, value)
            at += len(piece)
        if at == size and value == wanted:
            return True
        self._credit -= size
        return False

    def _bytes(self, position: int, size: int) -> memoryview:
        """Return up to `size` bytes of the file, from the window where they are at hand."""
        size = min(size, self.end - position)
        at = position - self._position
        if at >= 0 and at + size <= self._held:
            return self._view[at : at + size]
        return memoryview(self._file.pread(max(size, 0), position))
