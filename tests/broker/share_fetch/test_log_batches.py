"""The batches of a read: which are whole, what their headers have, how much of a file is read."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.share_fetch.log_batches import LogBatch, read_batches, size_of, sliced
from kraft_wire.model import FileSlice
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.storage.making import batch_bytes, marker_bytes
from tests.wire.odd_batches import old_message

PRODUCER = 7


class CountedFile:
    """A file in memory that notes its reads: size and position."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def pread(self, size_bytes: int, position: int) -> bytes:
        self.reads.append((size_bytes, position))
        return self.data[position : position + size_bytes]


def slice_of(data: bytes, position: int = 0) -> tuple[FileSlice, CountedFile]:
    """A part of a file, behind `position` other bytes and before others."""
    file = CountedFile(b"\xff" * position + data + b"\xff" * 99)
    given: Any = file
    return FileSlice(given, position, len(data)), file


def read_all(records: FileSlice | bytes, *, finds_markers: bool = False) -> list[LogBatch]:
    return read_batches(records, 0, -1, 1_000, finds_markers=finds_markers)


def in_transaction(offset: int, count: int) -> bytes:
    return batch_bytes(offset, count=count, producer_id=PRODUCER, sequence=0, transactional=True)


@pytest.mark.parametrize("finds_markers", [False, True])
def test_header_has_all_that_is_known_of_a_batch(finds_markers: bool) -> None:
    """Markers are read only where transactions were aborted."""
    odd = build_batch(
        [Record(b"", b"")],
        base_offset=9,
        partition_leader_epoch=0,
        producer_id=PRODUCER,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    parts = [
        batch_bytes(2, count=3),
        in_transaction(5, 2),
        marker_bytes(7, producer_id=PRODUCER, abort=True),
        marker_bytes(8, producer_id=PRODUCER, abort=False),
        bytes(odd),
        old_message(10, 1, 0, b"k", b"v"),
    ]
    sizes = [len(part) for part in parts]
    expected = [
        LogBatch(2, 4, sizes[0], -1, False, False),
        LogBatch(5, 6, sizes[1], PRODUCER, True, False),
        LogBatch(7, 7, sizes[2], PRODUCER, True, finds_markers),
        LogBatch(8, 8, sizes[3], PRODUCER, True, False),
        LogBatch(9, 9, sizes[4], PRODUCER, True, False),
        LogBatch(10, 10, sizes[5], -1, False, False),
    ]
    data = b"".join(parts)
    assert read_all(data, finds_markers=finds_markers) == expected
    assert read_all(slice_of(data, 50)[0], finds_markers=finds_markers) == expected


@pytest.mark.parametrize(
    "parts",
    [
        (batch_bytes(0, size=9), batch_bytes(1)),
        (old_message(0, 1, 0, b"k", b"v"), old_message(1, 0, 0, b"key", b"value")),
        (old_message(0, 0, 0, None, None), batch_bytes(1, size=1)),
    ],
)
def test_batch_that_is_cut_anywhere_is_left_out(parts: tuple[bytes, bytes]) -> None:
    data, first = b"".join(parts), len(parts[0])
    whole = [LogBatch(0, 0, first), LogBatch(1, 1, len(parts[1]))]
    for size in range(len(data) + 1):
        count = (size >= first) + (size == len(data))
        assert read_all(data[:size]) == whole[:count], size
        records = FileSlice(slice_of(data, 3)[0].file, 3, size)
        assert read_all(records) == whole[:count], size


@pytest.mark.parametrize(
    ("end_offset", "max_records", "bases"),
    [
        (-1, 5, [50, 55, 60]),
        (48, 4, [50, 55]),
        (49, 4, [50, 55]),
        (49, 5, [50, 55, 60]),
        (49, 9, [50, 55, 60]),
        (49, 10, [50, 55, 60, 65]),
        (54, 4, [50, 55, 60]),
        (54, 5, [50, 55, 60, 65]),
        (49, 1_000, [50, 55, 60, 65, 70, 75]),
    ],
)
def test_search_ends_one_batch_behind_what_one_member_may_have(
    end_offset: int, max_records: int, bases: list[int]
) -> None:
    """From the first read offset or behind the end, whichever is later."""
    data = b"".join(batch_bytes(offset, count=5) for offset in range(50, 80, 5))
    found = read_batches(data, 50, end_offset, max_records, finds_markers=False)
    assert [each.base_offset for each in found] == bases


def test_old_message_begins_behind_the_one_before_but_not_behind_its_own_offset() -> None:
    """A fetch may begin within a compressed one, and offsets that fall are left to their reader."""
    data = b"".join(old_message(offset, 1, 0, b"k", b"v") for offset in (5, 9, 3))
    for fetch_offset, expected in (
        (2, [(2, 5), (6, 9), (3, 3)]),
        (5, [(5, 5), (6, 9), (3, 3)]),
        (7, [(5, 5), (6, 9), (3, 3)]),
    ):
        found = read_batches(data, fetch_offset, -1, 1_000, finds_markers=False)
        assert [each[:2] for each in found] == expected


def test_file_is_read_in_windows_of_4096_bytes() -> None:
    """A header that is whole in a window needs no other read; the last one is shorter."""
    header, window, behind = 61, 4_096, 1_000
    first = batch_bytes(0, size=window - header - len(batch_bytes(0, size=1_000)) + 1_000)
    assert len(first) == window - header
    data = first + batch_bytes(1, size=200) + batch_bytes(2)
    records, file = slice_of(data, behind)
    assert [each.base_offset for each in read_all(records)] == [0, 1, 2]
    third = len(data) - len(batch_bytes(2))
    assert file.reads == [(window, behind), (len(data) - third, behind + third)]
    later = batch_bytes(0, size=window - header - len(batch_bytes(0, size=1_000)) + 1_001)
    data = later + batch_bytes(1)
    records, file = slice_of(data, behind)
    assert [each.base_offset for each in read_all(records)] == [0, 1]
    assert file.reads == [(window, behind), (len(data) - len(later), behind + len(later))]


def test_part_of_an_answer_begins_at_or_before_the_first_offset() -> None:
    """`maybeSliceFetchRecords`: an offset between batches belongs to the one before."""
    spans = [(10, 12), (13, 13), (17, 19), (30, 31)]
    parts = [batch_bytes(first, count=last - first + 1) for first, last in spans]
    data = b"".join(parts)
    batches = read_batches(data, 10, -1, 1_000, finds_markers=False)
    records, _ = slice_of(data, 77)
    for first in range(8, 33):
        for last in range(first, 33):
            begun = [number for number, (base, _) in enumerate(spans) if base <= first]
            reached = [number for number, (base, _) in enumerate(spans) if base <= last]
            low, high = max(begun, default=0), max(reached, default=0)
            start = sum(map(len, parts[:low]))
            size = sum(map(len, parts[low : high + 1]))
            found = sliced(records, batches, first, last)
            assert found == FileSlice(records.file, 77 + start, size), (first, last)
            assert sliced(data, batches, first, last) == data[start : start + size]


def test_read_with_one_whole_batch_is_given_as_it_is() -> None:
    data = batch_bytes(0, count=4) + batch_bytes(4)[:30]
    records, _ = slice_of(data)
    for given in (data, records):
        assert sliced(given, read_all(given), 1, 2) is given
        assert size_of(given) == len(data)
