"""Every golden, odd and random batch: columns hold what the straight decoder reads."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.columnar import Status, batch_columns, window_of
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.record import Record
from tests.columnar.by_wire import assert_read_alike, whole_batches
from tests.golden.vectors import CORPUS, read_vectors
from tests.wire.odd_batches import VECTORS, checked, odd_batches, old_message
from tests.wire.plain_batches import VECTORS as PLAIN

GOLDEN = [
    bytes.fromhex(vector.hex)
    for path in (VECTORS, PLAIN, CORPUS / "records" / "MemoryRecords.jsonl")
    for vector in read_vectors(path)
]


def test_golden_bytes_are_read_as_the_straight_decoder_reads_them() -> None:
    assert len(GOLDEN) > 1000
    for data in GOLDEN:
        status = window_of(data).status
        if Status.GARBAGE not in status and Status.CRC not in status:
            assert_read_alike(data)


def test_all_odd_batches_in_one_file_are_read_one_by_one_and_together() -> None:
    cases = [data for data in odd_batches() if _is_one_whole_batch(data)]
    assert len(cases) > 500
    for data in cases:
        assert_read_alike(data)
    assert_read_alike(b"".join(cases))


def test_odd_batches_that_are_read_in_place_end_where_they_end() -> None:
    """A window of uncompressed batches alone is read without copies, one behind the other."""
    cases = [data for data in odd_batches() if _is_one_whole_batch(data)]
    plain = [data for data in cases if data[16] == 2 and not data[22] & 7]
    assert len(plain) > 100
    for start in range(0, len(plain), 10):
        assert_read_alike(b"".join([*PLAIN_BATCHES, *plain[start : start + 10]]))


def test_batch_that_promises_many_more_records_than_it_has_is_read_alike() -> None:
    for count in (6, 200, 100_000):
        data = build_batch([Record(b"k", b"v")] * 5)
        struct.pack_into(">i", data, 57, count)
        wrong = bytes(checked(data))
        assert_read_alike(wrong)
        assert_read_alike(b"".join([*PLAIN_BATCHES, wrong]))


def _is_one_whole_batch(data: bytes) -> bool:
    batches = whole_batches(data)
    return (
        len(batches) == 1
        and batches[0][1].size_bytes == len(data)
        and (batches[0][1].crc_is_valid())
    )


PLAIN_BATCHES = [bytes(build_batch([Record(b"k", bytes(200), n)], base_offset=n)) for n in range(5)]
BLOBS = st.none() | st.binary(max_size=40) | st.binary(min_size=120, max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=4)
TIMES = st.integers(0, 2000) | st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """One batch of format 2 with any fields."""
    gaps = draw(st.lists(st.integers(1, 300), max_size=12))
    offset = draw(st.integers(0, 1 << 40))
    records = []
    for gap in gaps:
        offset += gap
        records.append(Record(draw(BLOBS), draw(BLOBS), offset, draw(TIMES), headers=draw(HEADERS)))
    producer = draw(st.integers(-1, 1 << 40))
    return bytes(
        build_batch(
            records,
            base_offset=records[0].offset - 1 if records else offset,
            last_offset=offset + draw(st.integers(0, 3)) if records else offset,
            partition_leader_epoch=draw(st.integers(-1, 1000)),
            compression=draw(st.sampled_from(Compression)),
            log_append_time=draw(st.none() | st.integers(0, 1 << 50)),
            producer_id=producer,
            producer_epoch=draw(st.integers(-1, 100)),
            base_sequence=draw(st.integers(-1, (1 << 31) - 1)),
            is_transactional=producer >= 0 and draw(st.booleans()),
        )
    )


@st.composite
def old_messages(draw: st.DrawFn) -> bytes:
    """One message of format 0 or 1."""
    magic, offset = draw(st.integers(0, 1)), draw(st.integers(0, 1 << 40))
    return old_message(offset, magic, draw(st.sampled_from([0, 8])), draw(BLOBS), draw(BLOBS))


@settings(max_examples=150, deadline=None)
@given(st.lists(batches() | old_messages(), max_size=9))
def test_random_batches_are_read_as_the_straight_decoder_reads_them(parts: list[bytes]) -> None:
    data = b"".join(parts)
    assert_read_alike(data)
    assert_headers_alike(data)


def assert_headers_alike(data: bytes) -> None:
    """Each field of each header is that of the straight decoder."""
    columns = batch_columns(window_of(data))
    found = whole_batches(data)
    assert columns.status.tolist() == [Status.OK] * len(found)
    for row, (position, batch) in enumerate(found):
        assert columns.position[row] == position
        assert columns.size_bytes[row] == batch.size_bytes
        assert columns.crc[row] == batch.crc
        assert columns.magic[row] == batch.magic
        assert columns.codec[row] == batch.compression
        assert columns.last_offset[row] == batch.last_offset
        if isinstance(batch, LegacyBatch):
            assert columns.base_offset[row] == batch.records()[0].offset
            own = (columns.leader_epoch, columns.producer_id, columns.producer_epoch)
            assert [each[row] for each in (*own, columns.base_sequence)] == [-1] * 4
            continue
        assert columns.base_offset[row] == batch.base_offset
        assert columns.count[row] == batch.records_count
        assert columns.leader_epoch[row] == batch.partition_leader_epoch
        assert columns.base_timestamp[row] == batch.base_timestamp
        assert columns.max_timestamp[row] == batch.max_timestamp
        assert columns.producer_id[row] == batch.producer_id
        assert columns.producer_epoch[row] == batch.producer_epoch
        assert columns.base_sequence[row] == batch.base_sequence
        assert columns.is_control[row] == batch.is_control
        assert columns.is_transactional[row] == batch.is_transactional


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_spoiled_body_behind_a_right_checksum_is_judged_alike(data: st.DataObject) -> None:
    records = [Record(b"key%d" % at, b"v" * 9 * at, timestamp=at) for at in range(6)]
    records[2].headers = [("name", b"x"), ("other", None)]
    parts = []
    for _ in range(4):
        batch = bytearray(build_batch(records, compression=data.draw(st.sampled_from(Compression))))
        for _ in range(data.draw(st.integers(0, 3))):
            batch[data.draw(st.integers(57, len(batch) - 1))] = data.draw(st.integers(0, 255))
        parts.append(checked(batch))
    assert_read_alike(b"".join(parts))


@pytest.mark.parametrize("count", [0, 1, 5, 7, -1, -(1 << 31), (1 << 31) - 1])
def test_count_that_lies_is_refused_as_the_straight_decoder_refuses_it(count: int) -> None:
    batch = bytearray(build_batch([Record(b"k", b"v")] * 6))
    struct.pack_into(">i", batch, 57, count)
    assert_read_alike(checked(batch))


def test_many_batches_in_step_and_few_large_ones_are_read_alike() -> None:
    small = [
        build_batch([Record(b"%d" % at, b"x" * (at % 200), at, at) for at in range(n, 2 * n)])
        for n in range(1, 300)
    ]
    assert_read_alike(b"".join(small))
    large = [
        Record(None, b"y" * (at % 150), at, at, [("h", b"1")] * (at % 3)) for at in range(9000)
    ]
    assert_read_alike(bytes(build_batch(large)))


def test_record_with_very_many_headers_is_read() -> None:
    record = Record(b"k", b"v", headers=[(f"h{at}", None) for at in range(100)])
    assert_read_alike(bytes(build_batch([Record(), record, Record()])))
