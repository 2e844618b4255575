"""Checks every batch of a log, in order and without changes: the reading part of recovery.

`LogVerifier` walks segments and yields the values that indexes are made from; `BadBatch` has the
place where it stopped, and `damage_behind` decides whether that is a torn tail. Recovery acts on
the answer, `repair` shows it to an operator. The walk unpacks one header and checks one CRC per
batch; callers make objects only if they need them.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

from kraft_wire.model import Offset
from kraft_wire.storage.files import File
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.scan import HEADER_BYTES, BadBatch, checked_batch_at, find_batch_after
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.record_batch import CHECKED_FROM, LOG_OVERHEAD_BYTES, MAGIC

__all__ = ["BEFORE_FIRST", "LogVerifier", "VerifiedBatch", "damage_behind", "right_batches"]

BEFORE_FIRST = -1
"""The position of an error of a whole segment."""
_HEAD = struct.Struct(">qiiBIhi8xqq")
_LENGTH_MIN = HEADER_BYTES - LOG_OVERHEAD_BYTES
_CHUNK_BYTES = 4 << 20
_INT32_MAX = (1 << 31) - 1
_SECTOR_BYTES = 512
_UNCHECKED_BYTES = 17  # base offset, length, epoch and magic come before the bytes under the CRC


class VerifiableSegment(Protocol):
    """A segment, as the checks of its batches use it."""

    path: str
    base_offset: Offset
    size_bytes: int

    @property
    def file(self) -> File:
        """The open `.log` file."""
        ...


VerifiedBatch: TypeAlias = tuple[int, int, int, int, int, int, int, memoryview, int]
"""A verified batch, with the values that derived files need: position, size, base offset, last
offset, leader epoch, largest timestamp, producer id, and a buffer with the start of the batch in
it. A plain tuple, because there may be millions."""


class LogVerifier:
    """One walk over the segments of a log: checks each batch, and the order of batches."""

    def __init__(
        self,
        start_offset: Offset,
        epochs: LeaderEpochs,
        recovery_point: Offset,
        *,
        is_contiguous: bool,
    ) -> None:
        assert start_offset >= 0, start_offset
        self.expected = start_offset
        """Offset at which the log continues."""
        self._is_contiguous = is_contiguous
        self._recovery_point = recovery_point
        self._least_epoch = -1
        self._known = list(reversed(epochs.entries))
        self._next_known = self._known[-1][1] if self._known else Offset(1 << 63)

    def batches_of(self, segment: VerifiableSegment) -> Iterator[VerifiedBatch]:
        """Yield the batches of the next segment; BadBatch at the first invalid one."""
        base = segment.base_offset
        if base < self.expected or (self._is_contiguous and base > self.expected):
            reason = f"base offset {base}, but the segment before ends at {self.expected}"
            raise BadBatch(BEFORE_FIRST, reason)
        if base <= self._recovery_point:
            self.expected = base  # what was before it was durable: compaction has removed it
        end_position = segment.size_bytes
        for found in right_batches(segment.file, 0, end_position):
            position, _, base_offset, last_offset, epoch = found[:5]
            if base_offset >= self._next_known:
                self._pass_known_epochs(base_offset)
            if base_offset != self.expected or epoch != self._least_epoch:
                self._check_place(position, base_offset, epoch)
                if last_offset - base > _INT32_MAX:
                    reason = (
                        f"last offset is {last_offset}, out of the range of a segment at {base}"
                    )
                    raise BadBatch(position, reason, is_damage=True)
                self._least_epoch = epoch
            self.expected = Offset(last_offset + 1)
            assert self.expected > base_offset, found
            yield found

    def _pass_known_epochs(self, offset: int) -> None:
        """Read the epoch that the checkpoint requires from `offset` on."""
        assert self._known, offset
        while self._known and self._known[-1][1] <= offset:
            self._least_epoch = max(self._least_epoch, self._known.pop()[0])
        self._next_known = self._known[-1][1] if self._known else Offset(1 << 63)

    def _check_place(self, position: int, base_offset: int, epoch: int) -> None:
        """Check the fields that the CRC does not cover: base offset and leader epoch."""
        assert position >= 0, position
        expected = self.expected
        if base_offset < expected or (self._is_contiguous and base_offset > expected):
            reason = f"base offset is {base_offset}, expected {expected}"
        elif epoch < self._least_epoch:
            reason = f"leader epoch {epoch} after {self._least_epoch}"
        else:
            return
        # A valid CRC after a wrong head: only a torn write across a sector border causes that.
        is_torn = position % _SECTOR_BYTES > _SECTOR_BYTES - _UNCHECKED_BYTES
        raise BadBatch(position, reason, is_damage=not is_torn)


def right_batches(file: File, position: int, end_position: int) -> Iterator[VerifiedBatch]:
    """Yield the batches from `position` on, each with a valid CRC; the hot loop of recovery."""
    assert 0 <= position <= end_position, (position, end_position)
    unpack, checksum = _HEAD.unpack_from, crc32c
    view, start, filled = memoryview(b""), position, 0
    while position < end_position:
        at = position - start
        if at + HEADER_BYTES <= filled:
            base, length, epoch, magic, crc, _, delta, timestamp, producer_id = unpack(view, at)
            after = at + length + LOG_OVERHEAD_BYTES
            if (
                length >= _LENGTH_MIN
                and after <= filled
                and magic == MAGIC
                and delta >= 0
                and base >= 0
                and checksum(view[at + CHECKED_FROM : after]) == crc
            ):
                size = after - at
                yield position, size, base, base + delta, epoch, timestamp, producer_id, view, at
                position += size
                continue
        # Cut by the end of the chunk, or invalid: the slow check decides, with the reason.
        slow = checked_batch_at(file, position, end_position)
        size = slow.size_bytes
        data = file.pread(max(size, min(_CHUNK_BYTES, end_position - position)), position)
        view, start, filled = memoryview(data), position, len(data)
        yield (
            position,
            size,
            slow.base_offset,
            slow.last_offset,
            slow.partition_leader_epoch,
            slow.max_timestamp,
            slow.producer_id,
            view,
            0,
        )
        position += size
    assert position == end_position, (position, end_position)


def damage_behind(
    bad: BadBatch,
    segments: Sequence[VerifiableSegment],
    expected: Offset,
    recovery_point: Offset,
) -> str | None:
    """Return why the log must not be cut at a bad batch, None if it is a torn tail.

    A torn tail has no valid batch after it, and no part of it was known to be durable.
    `segments[0]` has the bad batch.
    """
    assert segments, bad
    if bad.is_damage:
        return bad.reason
    if expected < recovery_point:
        return f"{bad.reason}; offsets below {recovery_point} were durable"
    for index, segment in enumerate(segments):
        start = 0 if index else bad.position + 1
        found = find_batch_after(segment.file, start, segment.size_bytes, expected)
        if found >= 0:
            return f"{bad.reason}; a valid batch follows at {segment.path} position {found}"
    return None
