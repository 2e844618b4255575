"""Aborted transactions, offsets that the log has lost, and the batches of a read."""

from typing import Any

import pytest

from kraft_wire.broker.share_fetch.log_batches import LogBatch, read_batches, sliced
from kraft_wire.model import FileSlice, Offset
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.record_batch import HEADER_BYTES, parse_batches
from tests.broker.share_fetch.sharing import Sharing
from tests.broker.test_share_fetch import OTHER
from tests.storage.making import batch_bytes, marker_bytes
from tests.wire.odd_batches import old_message

COMMITTED = {"share.isolation.level": "read_committed"}
PRODUCER = 7


def append(sharing: Sharing, data: bytes) -> None:
    """Write to the log behind the broker's back."""
    partition = sharing.partition()
    log = partition.log
    assert isinstance(log, Log)
    log.append(data, parse_batches(memoryview(bytearray(data))), 0, 0)
    log.high_watermark = log.log_end_offset
    sharing.broker.fetch_purgatory.wake(partition)


def write(sharing: Sharing, count: int, *, sequence: int | None = None) -> None:
    """Append records, of a transaction if they have a sequence."""
    offset = sharing.partition().log_end_offset
    if sequence is None:
        append(sharing, batch_bytes(offset, count=count))
        return
    data = batch_bytes(
        offset,
        count=count,
        producer_id=PRODUCER,
        producer_epoch=0,
        sequence=sequence,
        transactional=True,
    )
    append(sharing, data)


def end(sharing: Sharing, *, abort: bool) -> None:
    offset = sharing.partition().log_end_offset
    append(sharing, marker_bytes(offset, producer_id=PRODUCER, abort=abort))


def test_read_committed_gets_no_records_of_aborted_transactions() -> None:
    """932-REC-11: they are archived at once, and the start moves over them."""
    sharing = Sharing(group_config=COMMITTED)
    write(sharing, 2)
    write(sharing, 3, sequence=0)
    end(sharing, abort=True)
    write(sharing, 2, sequence=3)
    end(sharing, abort=False)
    answer = sharing.ask(0, 0)
    assert answer.acquired() == [(0, 1, 1), (5, 8, 1)]
    assert answer.batches()[0] == (0, 1)
    assert sharing.acknowledge(1, (0, 1, [1]), (5, 8, [1])).result == (ErrorCode.NONE, None)
    assert sharing.share().start_offset == 9


def test_read_committed_waits_for_the_end_of_an_open_transaction() -> None:
    """932-REC-11: records behind the last stable offset are not read; others get them."""
    sharing = Sharing(group_config=COMMITTED)
    write(sharing, 1)
    write(sharing, 2, sequence=0)
    assert sharing.ask(0, 0).acquired() == [(0, 0, 1)]
    waiting = sharing.ask(1, max_wait_ms=1_000)
    assert waiting.is_parked
    end(sharing, abort=False)
    assert waiting.acquired() == [(1, 3, 1)]
    uncommitted = Sharing()
    write(uncommitted, 2, sequence=0)
    assert uncommitted.ask(0, 0).acquired() == [(0, 1, 1)]


def test_released_records_that_were_compacted_away_are_archived() -> None:
    """932-REC-10: when the next read begins behind them."""
    sharing = Sharing()
    for _ in range(3):
        write(sharing, 2)
    sharing.ask(0, 0, batch_size=2)
    sharing.acknowledge(1, (0, 3, [2]))
    log = sharing.partition().log
    read = log.read

    def compacted(offset: int, *args: Any, **more: Any) -> Any:
        return read(Offset(max(offset, 4)), *args, **more)

    reading: Any = _Reading(log, compacted)
    sharing.partition().log = reading
    assert sharing.ask(2).acquired() == []
    assert sharing.share().delivery_complete_count == 4
    sharing.acknowledge(3, (4, 5, [1]))
    assert sharing.share().start_offset == 6


class _Reading:
    """A log of which one method is replaced."""

    def __init__(self, log: object, read: object) -> None:
        self._log = log
        self.read = read

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


def stored(*counts: int) -> tuple[Sharing, FileSlice]:
    """A log of batches and the slice that has them all."""
    sharing = Sharing()
    for count in counts:
        write(sharing, count)
    log = sharing.partition().log
    found = log.read(
        log.log_start_offset, 1 << 20, upper_bound=log.log_end_offset, min_one_batch=True
    )
    assert isinstance(found.records, FileSlice)
    return sharing, found.records


@pytest.mark.parametrize("as_bytes", [False, True])
def test_batches_of_a_read_are_known_by_their_headers(as_bytes: bool) -> None:
    """932-FETCH-07: all whole ones; one that is cut is left out."""
    _, records = stored(3, 1, 200)
    raw = records.read()
    expected = [
        (each.base_offset, each.last_offset, each.size_bytes) for each in parse_batches(raw)
    ]
    given = raw if as_bytes else records
    found = read_batches(given, 0, -1, 1_000, finds_markers=False)
    assert [each[:3] for each in found] == expected
    cut = raw[:-1] if as_bytes else FileSlice(records.file, records.position, len(raw) - 1)
    assert len(read_batches(cut, 0, -1, 1_000, finds_markers=False)) == 2


def test_search_ends_one_batch_behind_what_may_be_acquired() -> None:
    _, records = stored(*(5 for _ in range(20)))
    found = read_batches(records, 0, -1, 8, finds_markers=False)
    assert [each.base_offset for each in found] == [0, 5, 10]
    found = read_batches(records, 0, 30, 8, finds_markers=False)
    assert found[-1].base_offset == 40


def test_messages_of_old_formats_are_known_by_their_last_offsets() -> None:
    """A compressed one has all records since the one before; the last may be short, or cut."""
    plain = [old_message(offset, 1, 0, b"k", b"v") for offset in (5, 6, 11)]
    wrapper = old_message(9, 1, 1, None, b"\0" * 70)
    raw = b"".join((plain[0], plain[1], wrapper, plain[2]))
    expected = [(5, 5), (6, 6), (7, 9), (10, 11)]
    assert len(plain[0]) < HEADER_BYTES
    for size, count in ((len(raw), 4), (len(raw) - 1, 3), (len(raw) - len(plain[2]) + 17, 3)):
        found = read_batches(raw[:size], 5, -1, 1_000, finds_markers=False)
        assert [(each.base_offset, each.last_offset) for each in found] == expected[:count]
    assert [each.size_bytes for each in found] == [36, 36, len(wrapper)]
    assert sliced(raw, read_batches(raw, 5, -1, 9, finds_markers=False), 7, 9) == wrapper


def test_slice_of_bytes_has_the_batches_around_what_was_acquired() -> None:
    """As of a part of a file."""
    _, records = stored(2, 2, 2, 2)
    raw = records.read()
    batches = read_batches(raw, 0, -1, 100, finds_markers=False)
    for first, last, bases in ((3, 4, [2, 4]), (0, 1, [0]), (6, 7, [6]), (1, 6, [0, 2, 4, 6])):
        part = sliced(raw, batches, first, last)
        assert isinstance(part, bytes)
        assert [each.base_offset for each in parse_batches(part)] == bases


def test_slice_has_the_batches_around_what_was_acquired() -> None:
    """932-FETCH-07: from that of the first acquired offset to that of the last."""
    _, records = stored(2, 2, 2, 2)
    batches = read_batches(records, 0, -1, 100, finds_markers=False)
    part = sliced(records, batches, 3, 4)
    assert isinstance(part, FileSlice)
    assert [each.base_offset for each in parse_batches(part.read())] == [2, 4]
    assert sliced(records, batches, 0, 7) == records
    one = [LogBatch(0, 1, 10)]
    assert sliced(records, one, 0, 0) is records


def test_lock_of_a_member_ends_for_each_piece() -> None:
    """932-REC-03: one write for each lock, and the state changes even if the write fails."""
    sharing = Sharing()
    write(sharing, 2)
    write(sharing, 2)
    sharing.ask(0, 0, batch_size=2)
    sharing.persister.next_error = ErrorCode.NOT_COORDINATOR
    sharing.pass_time(30_000)
    assert [len(write.batches) for _, write in sharing.persister.writes] == [1, 1]
    assert sharing.ask(0, 0, member=OTHER).acquired() == [(0, 1, 2), (2, 3, 2)]
