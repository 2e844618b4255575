"""Message formats 0 and 1, and runs of batches of any format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.wire.compression.codecs import Compression, compress
from kraft_wire.wire.records import legacy_batch
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.corruption import (
    CorruptRecordBatch,
    DecompressedTooLarge,
    InvalidRecord,
)
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.memory_records import iter_batches, scan_batches
from kraft_wire.wire.records.record import Record
from tests.wire.odd_batches import old_message


def read(data: bytes) -> LegacyBatch:
    return LegacyBatch(memoryview(data))


def wrapper(magic: int, offset: int, inner: bytes, attributes: int = 1) -> LegacyBatch:
    value = compress(Compression.GZIP, inner)
    return read(old_message(offset, magic, attributes, None, value, timestamp=500))


def test_plain_message_is_its_own_record() -> None:
    message = read(old_message(7, 1, 0, b"k", b"v", timestamp=33))
    assert (message.offset, message.last_offset, message.size_bytes) == (7, 7, 36)
    assert message.crc_is_valid()
    assert message.inner_crcs_are_valid()
    assert message.records() == [Record(b"k", b"v", 7, 33)]
    assert read(old_message(7, 0, 0, None, b"")).records() == [Record(None, b"", 7, -1)]


def test_inner_offsets_of_format_0_are_absolute_and_of_format_1_relative() -> None:
    inner = old_message(0, 1, 0, b"a", None, timestamp=1) + old_message(2, 1, 0, b"b", None)
    assert [record.offset for record in wrapper(1, 12, inner).records()] == [10, 12]
    assert [record.offset for record in wrapper(1, 0, inner).records()] == [0, 2]
    inner = old_message(5, 0, 0, b"a", None) + old_message(9, 0, 0, b"b", None)
    assert [record.offset for record in wrapper(0, 12, inner).records()] == [5, 9]


def test_log_append_time_of_the_wrapper_is_that_of_every_record() -> None:
    inner = old_message(0, 1, 0, b"a", None, timestamp=1)
    assert [record.timestamp for record in wrapper(1, 0, inner).records()] == [1]
    stamped = wrapper(1, 0, inner, attributes=1 | 8)
    assert stamped.is_log_append_time
    assert [record.timestamp for record in stamped.records()] == [500]


def test_wrappers_that_do_not_hold_plain_messages_are_refused() -> None:
    inner = old_message(3, 1, 0, b"a", None)
    cases = {
        "below its last inner offset": wrapper(1, 2, inner),
        "holds no messages": wrapper(1, 2, inner[:-1]),
        "declares 5 bytes": wrapper(1, 2, inner[:8] + b"\0\0\0\5" + inner[12:]),
        "inside a compressed message": wrapper(1, 9, old_message(0, 1, 1, None, b"x")),
        "has no value": read(old_message(0, 1, 1, None, None)),
        "codec 4": read(old_message(0, 1, 4, None, b"")),
    }
    for reason, message in cases.items():
        with pytest.raises(CorruptRecordBatch, match=reason):
            message.records()


def test_wrong_inner_checksum_is_noticed_but_does_not_refuse() -> None:
    message = wrapper(1, 0, old_message(0, 1, 0, b"a", None, crc=1))
    assert not message.inner_crcs_are_valid()
    assert len(message.records()) == 1


def test_wrapper_of_too_many_messages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_batch, "_INNER_MESSAGES_MAX", 2)
    with pytest.raises(DecompressedTooLarge, match="more than 2"):
        wrapper(0, 0, old_message(0, 0, 0, None, None) * 3).records()


def test_message_whose_parts_do_not_fit_is_refused() -> None:
    with pytest.raises(CorruptRecordBatch, match="is cut"):
        read(old_message(0, 1, 0, None, None)[:-1])
    with pytest.raises(CorruptRecordBatch, match="key or value of"):
        read(old_message(0, 0, 0, None, b"abc")[:-1])


def test_scan_reads_formats_side_by_side_and_counts_the_rest() -> None:
    old, new = old_message(1, 1, 0, b"k", b"v"), bytes(build_batch([Record(b"k")], base_offset=2))
    batches, rest = scan_batches(old + new + new[:20])
    assert [type(batch).__name__ for batch in batches] == ["LegacyBatch", "RecordBatch"]
    assert rest == 20
    for cut in (0, 11, 16):
        assert scan_batches(new[:cut]) == ([], cut)


def test_scan_checks_length_before_magic_and_names_the_position() -> None:
    new = bytes(build_batch([Record(b"k")]))
    cases = {
        new[:8] + b"\0\0\0\x0d" + b"\xff" * 9: "length of 13",
        new[:16] + b"\3" + new[17:]: "magic is 3",
        new[:8] + b"\x7f\xff\xff\xff" + new[12:]: "length of 2147483647",
        new[:8] + b"\0\0\0\x30" + new[12:60]: "smaller than its header",
    }
    for bad, reason in cases.items():
        with pytest.raises(CorruptRecordBatch, match=reason) as raised:
            list(iter_batches(new + bad))
        assert raised.value.position == len(new)


@given(st.binary(max_size=120), st.sampled_from([0, 1]))
def test_any_bytes_behind_a_right_checksum_give_records_or_the_declared_error(
    value: bytes, magic: int
) -> None:
    for codec in range(8):
        data = old_message(0, magic, codec, None, value)
        try:
            read(data).records()
        except (CorruptRecordBatch, InvalidRecord):
            continue
