"""Damaged, cut and hostile bytes: each stretch is reported once, and what is whole is read."""

from __future__ import annotations

import random
import struct
import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kraft_wire.columnar import (
    MemoryFile,
    Status,
    batch_columns,
    batches_table,
    read_records,
    read_windows,
    window_of,
)
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.columnar.by_wire import PLACE, assert_read_alike, read_by_columns
from tests.wire.odd_batches import old_message

BATCHES = [
    bytes(build_batch([Record(b"k%d" % at, b"v" * (40 + 30 * at))], base_offset=at))
    for at in range(6)
]
OK, CRC, TORN, GARBAGE = Status.OK, Status.CRC, Status.TORN, Status.GARBAGE


def stretches(data: bytes) -> list[tuple[int, int, Status]]:
    """Position, size and status of every row."""
    window = window_of(data)
    rows = zip(window.starts.tolist(), window.sizes.tolist(), window.status.tolist(), strict=True)
    return [(start, size, Status(status)) for start, size, status in rows]


def statuses(data: bytes) -> list[Status]:
    found = stretches(data)
    position = 0
    for start, size, _ in found:
        assert start == position
        assert size > 0
        position += size
    assert position == len(data)
    return [status for _, _, status in found]


def with_bytes(batch: bytes, at: int, new: bytes) -> bytes:
    return batch[:at] + new + batch[at + len(new) :]


def test_turned_bit_makes_one_batch_a_wrong_checksum() -> None:
    bad = with_bytes(BATCHES[2], 70, bytes([BATCHES[2][70] ^ 4]))
    data = b"".join([*BATCHES[:2], bad, *BATCHES[3:]])
    assert statuses(data) == [OK, OK, CRC, OK, OK, OK]
    assert [row[0] for row in read_by_columns(window_of(data)).rows] == [0, 1, 3, 4, 5]
    assert statuses(b"".join([*BATCHES[:5], bad])) == [*[OK] * 5, CRC]


@pytest.mark.parametrize("length", [-1, 0, 13, 48, 49, 60, 200, 10_000, (1 << 31) - 1])
def test_wrong_length_costs_one_batch_and_the_next_is_found(length: int) -> None:
    bad = with_bytes(BATCHES[2], 8, struct.pack(">i", length))
    data = b"".join([*BATCHES[:2], bad, *BATCHES[3:]])
    assert statuses(data) == [OK, OK, GARBAGE, OK, OK, OK]
    assert stretches(data)[2][1] == len(bad)


def test_length_that_points_to_a_later_batch_does_not_swallow_those_between() -> None:
    for last in (4, 5, 6):
        size = sum(map(len, BATCHES[2:last]))
        bad = with_bytes(BATCHES[2], 8, struct.pack(">i", size - 12))
        data = b"".join([*BATCHES[:2], bad, *BATCHES[3:]])
        assert statuses(data) == [OK, OK, GARBAGE, OK, OK, OK]


def test_batch_inside_a_value_of_a_damaged_batch_is_not_taken_for_one_of_the_log() -> None:
    inner = bytes(build_batch([Record(b"a", b"b")], base_offset=900))
    outer = bytearray(build_batch([Record(b"k", inner)], base_offset=2))
    outer[-1] ^= 1
    assert statuses(b"".join([*BATCHES[:2], bytes(outer), *BATCHES[3:]])) == [
        OK,
        OK,
        CRC,
        *[OK] * 3,
    ]


def test_stray_byte_costs_no_batch_even_if_the_wrong_length_points_to_a_batch_in_a_value() -> None:
    """The byte shifts the length by 8 bits, and the low byte of the leader epoch to the magic."""
    inner = bytes(build_batch([Record(b"a", b"b")], base_offset=900))
    for filler in range(100):
        value = bytes(filler) + inner + bytes(16_000)
        outer = bytes(build_batch([Record(None, value)], base_offset=0, partition_leader_epoch=0))
        (length,) = struct.unpack_from(">i", outer, 8)
        if outer.index(inner) + 1 == (length >> 8) + 12:
            break
    else:
        raise AssertionError("no filler puts the inner batch there")
    data = b"\0" + outer + BATCHES[1]
    assert stretches(data)[:2] == [(0, 1, GARBAGE), (1, len(outer), OK)]


@pytest.mark.parametrize("magic", [0, 1, 3, 127, 255])
def test_wrong_magic_costs_one_batch(magic: int) -> None:
    bad = with_bytes(BATCHES[2], 16, bytes([magic]))
    found = statuses(b"".join([*BATCHES[:2], bad, *BATCHES[3:]]))
    assert found == [OK, OK, CRC if magic < 2 else GARBAGE, OK, OK, OK]


def test_what_follows_the_last_whole_batch_is_torn() -> None:
    data = b"".join(BATCHES)
    for cut in range(1, len(BATCHES[5])):
        assert statuses(data[:-cut]) == [OK] * 5 + [TORN]
    for rest in (b"\0", bytes(5000), b"\xff" * 100, bytes(70) + b"x"):
        assert statuses(data + rest) == [OK] * 6 + [TORN]
    assert statuses(bytes(300)) == [TORN]
    assert statuses(b"") == []


def test_stretch_before_the_first_batch_and_between_others_is_garbage() -> None:
    data = b"noise" * 9 + BATCHES[0] + bytes(100) + BATCHES[1]
    assert statuses(data) == [GARBAGE, OK, GARBAGE, OK]


def test_old_messages_are_found_again_after_damage() -> None:
    for magic in (0, 1):
        old = [old_message(at, magic, 0, b"key", b"value" * at) for at in range(5)]
        bad = with_bytes(old[1], 8, b"\x7f\0\0\0")
        assert statuses(old[0] + bad + b"".join(old[2:])) == [OK, GARBAGE, OK, OK, OK]


def test_old_message_whose_value_reaches_into_the_next_one_says_nothing_of_it() -> None:
    for magic in (0, 1):
        short = old_message(0, magic, 0, b"key", b"value")
        at = len(short) - len(b"value") - 4
        body = short[16:at] + struct.pack(">i", 30) + b"value"
        short = short[:12] + struct.pack(">I", zlib.crc32(body)) + body
        columns = batch_columns(window_of(short + old_message(1, magic, 0, b"k", b"v" * 40)))
        assert columns.max_timestamp.tolist() == [-1, 77 if magic else -1]
        assert_read_alike(short + old_message(1, magic, 0, b"k", b"v" * 40))


def test_two_damaged_batches_next_to_each_other_are_found() -> None:
    bad = [with_bytes(BATCHES[at], 8, b"\0\1\0\0") for at in (2, 3)]
    assert statuses(b"".join([*BATCHES[:2], *bad, *BATCHES[4:]])) == [OK, OK, GARBAGE, OK, OK]


SPOILED = b"".join(
    [
        *BATCHES[:3],
        with_bytes(BATCHES[3], 66, b"?"),
        with_bytes(BATCHES[4], 8, b"\0\0\0\x7f"),
        *BATCHES[4:],
        bytes(build_batch([Record(None, b"w" * 5000, 6)], compression=Compression.LZ4)),
        bytes(build_batch([Record(None, bytes(range(256)) * 9, 7)], base_offset=7)),
        BATCHES[0][:50],
    ]
)


@pytest.mark.parametrize("window_bytes", [1, 61, 64, 100, 129, 500, 1000, 3000, 100_000])
def test_any_window_gives_the_same_rows(window_bytes: int) -> None:
    rows = []
    for window in read_windows(MemoryFile(SPOILED), len(SPOILED), window_bytes=window_bytes):
        starts = (window.position + window.starts).tolist()
        rows += zip(starts, window.sizes.tolist(), window.status.tolist(), strict=True)
        assert len(read_by_columns(window).rows) == (window.status == OK).sum()
    assert rows == stretches(SPOILED)


def test_walk_from_the_middle_of_a_file_covers_the_rest() -> None:
    data = b"".join(BATCHES)
    start = len(BATCHES[0]) + len(BATCHES[1])
    (window,) = read_windows(MemoryFile(data), len(data), start)
    assert batch_columns(window).base_offset.tolist() == [2, 3, 4, 5]
    assert batch_columns(window).position[0] == start


@pytest.mark.parametrize("torn", [0, 1, 40, 90])
def test_file_that_became_shorter_ends_where_it_ends(torn: int) -> None:
    data = b"".join([*BATCHES, BATCHES[0][:torn]])
    windows = list(read_windows(MemoryFile(data), 10 * len(data), window_bytes=300))
    assert sum(window.size_bytes for window in windows) == len(data)
    assert list(read_windows(MemoryFile(b""), 1000)) == []


def test_batch_beyond_the_memory_allowed_is_checked_but_not_read() -> None:
    large = bytes(build_batch([Record(None, bytes(9000))], base_offset=6))
    bad = with_bytes(large, 500, b"x")
    data = b"".join([*BATCHES[:2], large, bad, *BATCHES[2:]])
    status: list[int] = []
    reasons: list[str] = []
    offsets: list[int] = []
    for window in read_windows(
        MemoryFile(data), len(data), window_bytes=1000, batch_bytes_max=8000
    ):
        assert window.held_bytes <= 8000
        status += window.status.tolist()
        for records in read_records(window, batch_columns(window)):
            reasons += [each.reason for each in records.unreadable]
            offsets += records.offset.tolist()
    assert status == [OK, OK, OK, CRC, OK, OK, OK, OK]
    assert reasons == [f"batch of {len(large)} bytes is larger than the window"]
    assert offsets == list(range(6))


def test_unknown_fields_of_what_is_no_batch_are_null() -> None:
    window = window_of(b"".join([BATCHES[0], b"junk" * 30, BATCHES[1], bytes(70)]))
    table = batches_table(batch_columns(window), PLACE)
    table.validate(full=True)
    assert table["status"].to_pylist() == ["ok", "garbage", "ok", "torn"]
    assert table["crcValid"].to_pylist() == [True, False, True, False]
    assert table["baseOffset"].to_pylist() == [0, None, 1, None]
    assert table["compression"].to_pylist() == ["none", None, "none", None]
    assert table["sizeInBytes"].to_pylist() == [len(BATCHES[0]), 120, len(BATCHES[1]), 70]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=90) | st.sampled_from(BATCHES), max_size=6))
def test_any_bytes_become_rows_that_cover_them(parts: list[bytes]) -> None:
    data = b"".join(parts)
    statuses(data)
    window = window_of(data)
    batches_table(batch_columns(window), PLACE).validate(full=True)
    read_by_columns(window)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 62), st.integers(1, 4))
@example(3085, 2)  # a length that points into a batch, to bytes that look like the beginning of one
def test_turned_bits_anywhere_leave_every_other_batch_readable(seed: int, flips: int) -> None:
    random_source = random.Random(seed)
    sizes = [len(batch) for batch in BATCHES]
    data = bytearray(b"".join(BATCHES))
    touched = set()
    for _ in range(flips):
        at = random_source.randrange(len(data))
        data[at] ^= 1 << random_source.randrange(8)
        touched.add(next(n for n in range(6) if at < sum(sizes[: n + 1])))
    found = {start for start, _, status in stretches(bytes(data)) if status == OK}
    assert found >= {sum(sizes[:n]) for n in range(6) if n not in touched}
