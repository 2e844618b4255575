"""Batches of format 2: the header, patching in place, and the builder against Apache's bytes."""

from __future__ import annotations

import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.batch_builder import BatchBuilder, build_batch
from kraft_wire.wire.records.corruption import (
    CorruptRecordBatch,
    DecompressedTooLarge,
    InvalidRecord,
)
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import (
    parse_batches,
    patch_create_time,
    patch_log_append_time,
    peek_header,
)
from tests.wire.plain_batches import plain_batches

RECORDS = [Record(b"k", b"v", timestamp=100), Record(None, None, timestamp=90)]


def test_builder_writes_the_bytes_that_apaches_builder_wrote() -> None:
    batches = [batch for batch in plain_batches() if not batch.is_log_append_time]
    assert len(batches) > 30
    for batch in batches:
        rebuilt = build_batch(
            batch.records(),
            base_offset=batch.base_offset,
            partition_leader_epoch=batch.partition_leader_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            delete_horizon_ms=batch.delete_horizon_ms,
            last_offset=batch.last_offset,
            max_timestamp=batch.max_timestamp,
        )
        assert rebuilt == batch.view


def test_values_alone_are_those_of_the_records_that_apache_wrote() -> None:
    batches = plain_batches()
    assert any(not batch.records_count for batch in batches), "an emptied one is among them"
    for batch in batches:
        assert batch.values() == [record.value for record in batch.records()]


def test_checksum_is_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"6789"), crc32c(b"12345")) == 0xE3069283


def test_header_fields_are_those_that_were_built() -> None:
    data = build_batch(
        RECORDS,
        base_offset=40,
        partition_leader_epoch=3,
        compression=Compression.LZ4,
        producer_id=9,
        producer_epoch=1,
        base_sequence=2147483647,
        is_transactional=True,
        is_control=True,
    )
    [batch] = parse_batches(data)
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (40, 41, 42)
    assert (batch.partition_leader_epoch, batch.magic, batch.records_count) == (3, 2, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (100, 100)
    assert (batch.producer_id, batch.producer_epoch, batch.last_sequence) == (9, 1, 0)
    assert (batch.is_transactional, batch.is_control, batch.has_producer_id) == (True,) * 3
    assert (batch.is_compressed, batch.compression) == (True, Compression.LZ4)
    assert not batch.is_log_append_time
    assert batch.delete_horizon_ms is None
    assert batch.size_bytes == len(data) == len(batch.view)
    assert batch.crc_is_valid()
    assert "offsets 40..41" in repr(batch)
    assert [record.sequence for record in batch.records()] == [2147483647, 0]


def test_batch_without_producer_has_no_sequences() -> None:
    [batch] = parse_batches(build_batch(RECORDS))
    assert (batch.has_producer_id, batch.last_sequence) == (False, -1)
    assert batch.check_records() is None


def test_delete_horizon_stands_in_the_base_timestamp() -> None:
    [batch] = parse_batches(build_batch(RECORDS, delete_horizon_ms=95))
    assert batch.delete_horizon_ms == batch.base_timestamp == 95
    assert [record.timestamp for record in batch.records()] == [100, 90]


def test_several_batches_are_cut_at_their_lengths() -> None:
    first, second = build_batch(RECORDS), build_batch(RECORDS, base_offset=2)
    batches = parse_batches(memoryview(first + second))
    assert [batch.base_offset for batch in batches] == [0, 2]
    assert [bytes(batch.view) for batch in batches] == [first, second]
    assert parse_batches(b"") == []


def test_what_is_no_whole_batch_is_refused_with_its_position() -> None:
    good = bytes(build_batch(RECORDS))
    cases = {
        b"\0" * 5: "5 bytes are not a batch header",
        good[:60]: "60 bytes are not a batch header",
        good[:-1]: "is cut",
        good[:16] + b"\1" + good[17:]: "magic is 1, not 2",
        good[:8] + b"\0\0\0\x30" + good[12:]: "declares a length of 48",
        good[:8] + b"\xff\xff\xff\xff" + good[12:]: "declares a length of -1",
    }
    for bad, reason in cases.items():
        with pytest.raises(CorruptRecordBatch, match=reason) as raised:
            parse_batches(good + bad)
        assert raised.value.position == len(good)


def test_header_is_peeked_without_the_body() -> None:
    data = bytes(build_batch(RECORDS, base_offset=7))
    assert peek_header(b"xx" + data[:61], 2).base_offset == 7
    assert bytes(peek_header(data + data).view) == data


def test_assigning_offset_and_epoch_keeps_the_checksum() -> None:
    data = build_batch(RECORDS)
    [parsed] = parse_batches(data)
    parsed.assign(1000, 12)
    [batch] = parse_batches(data)
    for each in (parsed, batch):
        assert (each.base_offset, each.partition_leader_epoch) == (1000, 12)
    assert batch.crc_is_valid()
    assert [record.offset for record in batch.records()] == [1000, 1001]


def test_patching_the_append_time_renews_the_checksum() -> None:
    data = build_batch(RECORDS)
    patch_log_append_time(memoryview(data), 5000)
    [batch] = parse_batches(data)
    assert batch.is_log_append_time
    assert batch.crc_is_valid()
    assert [record.timestamp for record in batch.records()] == [5000, 5000]
    assert data == build_batch(RECORDS, log_append_time=5000)


def test_patching_the_create_time_gives_the_records_their_own_times_back() -> None:
    data = build_batch(RECORDS, log_append_time=5000)
    patch_create_time(memoryview(data), 100)
    [batch] = parse_batches(data)
    assert not batch.is_log_append_time
    assert batch.crc_is_valid()
    assert batch.max_timestamp == 100
    assert [record.timestamp for record in batch.records()] == [100, 90]
    assert data == build_batch(RECORDS)


def test_turned_bit_behind_the_checksum_is_noticed() -> None:
    data = build_batch(RECORDS)
    data[-1] ^= 1
    assert not parse_batches(data)[0].crc_is_valid()


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_refused_when_the_records_are_read(codec: int) -> None:
    data = build_batch(RECORDS)
    data[22] |= codec
    [batch] = parse_batches(data)
    with pytest.raises(CorruptRecordBatch, match=f"codec {codec}"):
        batch.records()


def test_records_above_the_limit_and_wrong_counts_are_declared_errors() -> None:
    data = build_batch([Record(None, bytes(70 << 20))], compression=Compression.ZSTD)
    with pytest.raises(DecompressedTooLarge):
        parse_batches(data)[0].records()
    data = build_batch(RECORDS)
    data[60] = 3
    with pytest.raises(InvalidRecord):
        parse_batches(data)[0].check_records()


def test_builder_counts_size_and_offsets_and_keeps_gaps() -> None:
    builder = BatchBuilder(base_offset=10)
    assert (builder.next_offset, builder.size_bytes) == (10, 61)
    builder.append(5, b"a", b"b", offset=12)
    builder.append(6, b"a", b"b")
    assert builder.next_offset == 14
    [batch] = parse_batches(builder.build(last_offset=20))
    assert [record.offset for record in batch.records()] == [12, 13]
    assert batch.last_offset == 20
    assert builder.size_bytes == batch.size_bytes


def test_builder_takes_values_in_a_row_as_it_takes_them_one_by_one() -> None:
    together, one_by_one = BatchBuilder(base_offset=7), BatchBuilder(base_offset=7)
    for values in ([b"a", b""], [b"c" * 200]):
        together.append_values(5, values)
        for value in values:
            one_by_one.append(5, None, value)
    assert (together.next_offset, together.records_count) == (10, 3)
    assert together.build() == one_by_one.build()
    with pytest.raises(AssertionError):
        together.append_values(6, [b"of another time"])


def test_builder_refuses_offsets_that_go_back() -> None:
    builder = BatchBuilder()
    builder.append(0, None, None, offset=3)
    with pytest.raises(AssertionError):
        builder.append(0, None, None, offset=3)
    with pytest.raises(AssertionError):
        builder.build(last_offset=2)


def test_emptied_batch_is_a_header_alone() -> None:
    data = build_batch(
        [], base_offset=5, last_offset=9, max_timestamp=77, compression=Compression.GZIP
    )
    [batch] = parse_batches(data)
    assert (batch.size_bytes, batch.records(), batch.last_offset) == (61, [], 9)
    assert (batch.base_timestamp, batch.max_timestamp) == (-1, 77)
    assert batch.check_records() is None


@given(st.binary(max_size=200))
def test_any_bytes_are_batches_or_the_declared_error(data: bytes) -> None:
    try:
        for batch in parse_batches(data):
            batch.records()
    except CorruptRecordBatch:
        return


@given(st.data())
def test_spoiled_batches_give_records_or_the_declared_error(data: st.DataObject) -> None:
    codec = data.draw(st.sampled_from(Compression))
    batch = build_batch([Record(b"key", b"value" * 20)] * 3, compression=codec)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(12, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        for parsed in parse_batches(batch):
            parsed.records()
    except CorruptRecordBatch:
        return


def test_checksum_is_the_same_where_only_the_whole_package_can_be_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NothingFound:
        find_spec = staticmethod(lambda *names: None)

    module = importlib.import_module("kraft_wire.wire.crc32c")
    monkeypatch.setattr(module, "PathFinder", NothingFound)
    assert module._native()(b"123456789") == crc32c(b"123456789")


@pytest.mark.parametrize(("first", "second"), [(-(1 << 63), 1), ((1 << 63) - 1, -2)])
def test_times_that_are_more_than_64_bits_apart_are_read_as_they_were(
    first: int, second: int
) -> None:
    """`DefaultRecord.readFrom` adds the delta to the base time as a long, which wraps."""
    (batch,) = parse_batches(
        build_batch([Record(None, b"v", timestamp=t) for t in (first, second)])
    )
    assert [record.timestamp for record in batch.records()] == [first, second]
