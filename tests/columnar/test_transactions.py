"""Who sees which batches under read_committed: by a log's own markers and by a fetch's list."""

from __future__ import annotations

import random

from kraft_wire.columnar import (
    AbortedRange,
    TransactionScan,
    batch_columns,
    committed_rows,
    fetched_ranges,
    read_records,
    window_of,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType, control_key, end_txn_marker
from kraft_wire.wire.records.record import Record

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def data(offset: int, producer_id: int, count: int = 2, *, transactional: bool = True) -> bytes:
    records = [Record(None, b"%d" % at, at) for at in range(offset, offset + count)]
    return bytes(
        build_batch(
            records,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=transactional,
        )
    )


def marker(offset: int, producer_id: int, kind: ControlRecordType) -> bytes:
    record = Record(control_key(kind), end_txn_marker(0), offset)
    return bytes(
        build_batch(
            [record],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )


LOG = [
    data(0, -1, transactional=False),
    data(2, 7),
    data(4, 8),
    data(6, 7),
    marker(8, 7, ABORT),
    data(9, 7),
    marker(11, 8, COMMIT),
    marker(12, 7, COMMIT),
    data(13, 9),
    data(15, -1, transactional=False),
]
COMMITTED = [0, 1, 4, 5, 9, 10]


def scanned(parts: list[bytes]) -> TransactionScan:
    scan = TransactionScan()
    for part in parts:
        scan.add(batch_columns(window_of(part)))
    return scan


def test_markers_of_a_log_tell_aborted_ranges_and_the_last_stable_offset() -> None:
    for parts in ([b"".join(LOG)], LOG):
        scan = scanned(parts)
        assert scan.aborted == [AbortedRange(7, 2, 8)]
        assert scan.last_stable_offset == 13
    assert scanned(LOG[:8]).last_stable_offset == 13
    assert scanned([]).last_stable_offset == 0


def offsets(parts: list[bytes], aborted: list[AbortedRange], stable: int | None) -> list[int]:
    window = window_of(b"".join(parts))
    columns = batch_columns(window)
    chosen = committed_rows(columns, aborted, stable)
    found = read_records(window, columns, chosen, content=())
    return [offset for records in found for offset in records.offset.tolist()]


def test_only_committed_records_below_the_last_stable_offset_are_read() -> None:
    scan = scanned(LOG)
    assert offsets(LOG, scan.aborted, scan.last_stable_offset) == COMMITTED
    assert offsets(LOG[3:], scan.aborted, scan.last_stable_offset) == [9, 10]


def test_markers_are_no_records_for_anybody() -> None:
    everything = offsets(LOG, [], None)
    assert not {8, 11, 12} & set(everything)
    assert len(everything) == 14


def test_list_of_a_fetch_hides_what_the_markers_hide() -> None:
    for first in range(4):
        columns = batch_columns(window_of(b"".join(LOG[first:8])))
        ranges = fetched_ranges(columns, [(7, 2)])
        assert ranges == [AbortedRange(7, 2, 8)]
    cut = batch_columns(window_of(b"".join(LOG[1:4])))
    assert fetched_ranges(cut, [(7, 2)]) == [AbortedRange(7, 2, 7)]
    assert fetched_ranges(batch_columns(window_of(b"")), [(7, 2)]) == [AbortedRange(7, 2, 2)]


def test_damaged_marker_ends_nothing_and_is_no_record() -> None:
    bad = bytearray(LOG[4])
    bad[-1] ^= 1
    scan = scanned([*LOG[:4], bytes(bad), *LOG[5:]])
    assert scan.aborted == []
    assert scan.last_stable_offset == 13


def test_transaction_whose_marker_is_gone_is_hidden_to_its_last_record() -> None:
    columns = batch_columns(window_of(b"".join([data(0, 7), data(2, 7, count=1)])))
    scan = TransactionScan()
    scan.add(columns)
    scan.settle({})
    assert scan.aborted == [AbortedRange(7, 0, 2)]
    assert not committed_rows(columns, scan.aborted).any()


def test_random_histories_are_read_as_a_consumer_that_buffers_reads_them() -> None:
    for seed in range(30):
        parts, wanted = _history(random.Random(seed))
        scan = scanned(parts)
        assert offsets(parts, scan.aborted, scan.last_stable_offset) == wanted


def _history(random_source: random.Random) -> tuple[list[bytes], list[int]]:
    """A log and what is committed in it, told by holding records back until their marker."""
    parts: list[bytes] = []
    held: dict[int, list[int]] = {}
    seen: list[int] = []
    offset = 0
    for _ in range(60):
        producer = random_source.randrange(4)
        if producer in held and random_source.random() < 0.4:
            kind = random_source.choice([ABORT, COMMIT])
            parts.append(marker(offset, producer, kind))
            seen += held.pop(producer) if kind is COMMIT else held.pop(producer)[:0]
            offset += 1
            continue
        count = random_source.randrange(1, 4)
        is_plain = producer == 0
        parts.append(data(offset, producer, count, transactional=not is_plain))
        target = seen if is_plain else held.setdefault(producer, [])
        target += range(offset, offset + count)
        offset += count
    stable = min((offsets[0] for offsets in held.values()), default=offset)
    return parts, sorted(each for each in seen if each < stable)
