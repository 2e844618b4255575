"""Idempotent and transactional producers: verdicts, the table, Kafka's snapshot file."""

import struct
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.producer_state import (
    CorruptSnapshot,
    ProducerStates,
    SequenceVerdict,
    read_marker,
)
from kraft_wire.storage.producers.replay import ProducerReplay
from kraft_wire.storage.producers.snapshots import load_producers, snapshot_offsets
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.storage.making import (
    DIRECTORY,
    append,
    batch_bytes,
    contents,
    marker_bytes,
    open_at,
    parsed,
)

OK = SequenceVerdict.OK
DUPLICATE = SequenceVerdict.DUPLICATE
OUT_OF_ORDER = SequenceVerdict.OUT_OF_ORDER_SEQUENCE_NUMBER
FENCED = SequenceVerdict.INVALID_PRODUCER_EPOCH
LAST = (1 << 31) - 1


def table(*batches: bytes) -> ProducerStates:
    states = ProducerStates()
    for data in batches:
        states.update(parsed(data))
    return states


def written(offset: int, sequence: int, *, count: int = 1, epoch: int = 0) -> bytes:
    return batch_bytes(offset, count=count, producer_id=7, producer_epoch=epoch, sequence=sequence)


def verdict(
    states: ProducerStates, sequence: int, *, count: int = 1, epoch: int = 0
) -> SequenceVerdict:
    return states.check(parsed(written(99, sequence, count=count, epoch=epoch))).verdict


def test_next_sequence_is_accepted_and_a_gap_is_not() -> None:
    states = table(written(0, 0, count=3))
    assert verdict(states, 3) is OK
    assert verdict(states, 4) is OUT_OF_ORDER
    assert verdict(states, 2) is OUT_OF_ORDER


def test_any_of_the_last_five_batches_is_a_duplicate_and_says_where_it_lies() -> None:
    states = table(*(written(10 + at, at) for at in range(7)))
    assert [verdict(states, at) for at in range(7)] == [OUT_OF_ORDER] * 2 + [DUPLICATE] * 5
    found = states.check(parsed(written(99, 4)))
    assert (found.base_offset, found.timestamp) == (14, 1014)
    assert verdict(states, 4, count=2) is OUT_OF_ORDER


def test_sequences_wrap_after_the_largest_int32() -> None:
    states = table(written(0, LAST - 1, count=4))
    (kept,) = states.get(7).batches  # type: ignore[union-attr]  # it is known
    assert (kept.base_sequence, kept.last_sequence) == (LAST - 1, 1)
    assert verdict(states, LAST - 1, count=4) is DUPLICATE
    assert verdict(states, 2) is OK
    assert verdict(table(written(0, LAST)), 0) is OK
    assert verdict(table(written(0, LAST)), 1) is OUT_OF_ORDER
    assert verdict(table(written(0, LAST - 1)), 0) is OUT_OF_ORDER


def test_epochs_fence_and_begin_at_sequence_zero() -> None:
    states = table(written(0, 5, epoch=2))
    assert verdict(states, 6, epoch=1) is FENCED
    assert verdict(states, 5, epoch=3) is OUT_OF_ORDER
    assert verdict(states, 0, epoch=3) is OK
    states.update(parsed(written(1, 0, epoch=3)))
    assert len(states.get(7).batches) == 1  # type: ignore[union-attr]  # it is known


def test_unknown_producer_may_begin_anywhere_as_its_state_may_have_expired() -> None:
    assert verdict(ProducerStates(), 41) is OK


def test_idle_producers_expire_but_not_within_a_transaction() -> None:
    states = table(
        batch_bytes(0, timestamp=100, producer_id=1, sequence=0),
        batch_bytes(1, timestamp=900, producer_id=2, sequence=0),
        batch_bytes(2, timestamp=100, producer_id=3, sequence=0, transactional=True),
    )
    assert states.expire(1000, 500) == 1
    assert [state.producer_id for state in states.active_producers()] == [2, 3]
    assert len(states) == 2
    assert states.get(1) is None


def test_plain_batches_leave_only_their_end() -> None:
    states = table(batch_bytes(4))
    assert (len(states), states.map_end_offset) == (0, 5)


def test_marker_ends_the_transaction_and_keeps_the_sequence() -> None:
    states = table(batch_bytes(0, producer_id=7, sequence=0, transactional=True))
    assert states.first_unstable_offset(Offset(1)) == 0
    assert states.update(parsed(marker_bytes(1, producer_id=7, abort=False))) is None
    state = states.get(7)
    assert state is not None
    assert (state.coordinator_epoch, state.last_sequence, state.last_offset) == (3, 0, 0)
    assert states.first_unstable_offset(Offset(1)) == 0
    assert states.first_unstable_offset(Offset(2)) is None


def test_a_table_that_is_cleared_holds_no_reader_back() -> None:
    """Neither by an open transaction nor by one whose marker is not committed yet."""
    states = table(
        batch_bytes(0, producer_id=7, sequence=0, transactional=True),
        batch_bytes(1, producer_id=8, sequence=0, transactional=True),
        marker_bytes(2, producer_id=7, abort=True),
    )
    assert states.first_unstable_offset(Offset(0)) == 0
    states.clear(Offset(9))
    assert states.first_unstable_offset(Offset(0)) is None
    assert (len(states), states.map_end_offset) == (0, 9)


def test_abort_names_the_transaction_and_the_stable_offset_beside_another_open_one() -> None:
    states = table(
        batch_bytes(0, producer_id=7, sequence=0, transactional=True),
        batch_bytes(1, producer_id=8, sequence=0, transactional=True),
    )
    aborted = states.update(parsed(marker_bytes(2, producer_id=7, abort=True)))
    assert aborted == (7, 0, 2, 1)
    assert states.first_unstable_offset(Offset(3)) == 1
    states.forget_below(Offset(3))
    states.update(parsed(marker_bytes(3, producer_id=8, abort=True)))
    assert states.first_unstable_offset(Offset(3)) == 1


def test_marker_without_transaction_only_sets_the_epoch() -> None:
    states = table()
    assert states.update(parsed(marker_bytes(0, producer_id=9, abort=True))) is None
    state = states.get(9)
    assert state is not None
    assert (state.last_sequence, state.last_offset) == (-1, -1)
    assert verdict(table(), 0) is OK


@pytest.mark.parametrize(
    ("record", "marker"),
    [
        (Record(bytes([0, 0, 0, 2]), b"", timestamp=1), None),
        (Record(bytes([0, 0]), b"", timestamp=1), None),
        (Record(None, b"", timestamp=1), None),
        (Record(bytes([0, 0, 0, 0]), None, timestamp=1), (True, -1)),
        (Record(bytes([0, 0, 0, 1]), b"\0\0", timestamp=1), (False, -1)),
    ],
)
def test_other_control_records_are_no_markers(
    record: Record, marker: tuple[bool, int] | None
) -> None:
    batch = parsed(bytes(build_batch([record], producer_id=7, producer_epoch=0, is_control=True)))
    assert read_marker(batch) == marker
    states = ProducerStates()
    states.update(batch)
    assert (len(states) == 0) == (marker is None)


def test_control_batch_without_records_is_no_marker() -> None:
    empty = parsed(bytes(build_batch([], producer_id=7, is_control=True, last_offset=0)))
    assert read_marker(empty) is None


def test_an_emptied_marker_ends_what_is_open_as_aborted() -> None:
    """A replica that was away longer than delete.retention.ms has what its leader has cleaned.

    4.3.1 leaves the transaction open for ever (sim seed 6000360).
    """
    states = table(
        batch_bytes(0, producer_id=7, sequence=0, transactional=True),
        batch_bytes(1, producer_id=8, sequence=0, transactional=True),
    )
    emptied = build_batch([], base_offset=5, producer_id=7, is_control=True, last_offset=5)
    assert states.update(parsed(bytes(emptied))) == (7, 0, 5, 1)
    assert states.update(parsed(bytes(emptied))) is None
    states.forget_below(Offset(6))
    assert states.first_unstable_offset(Offset(6)) == 1


# -- snapshots -----------------------------------------------------------------------------------


def test_snapshot_has_kafkas_layout() -> None:
    """Version, CRC of the rest, count; per producer 46 bytes (ProducerSnapshot.json, version 1)."""
    data = table(written(4, 8, count=2)).snapshot()
    version, crc, count = struct.unpack_from(">hIi", data)
    assert (version, crc, count, len(data)) == (1, crc32c(data[6:]), 1, 10 + 46)
    assert struct.unpack_from(">qhiqiqiq", data, 10) == (7, 0, 9, 5, 1, 1005, -1, -1)
    assert len(ProducerStates().snapshot()) == 10


def test_snapshot_reads_back_with_the_last_batch_and_open_transactions() -> None:
    states = table(
        *(written(at, at) for at in range(3)),
        batch_bytes(3, producer_id=8, sequence=0, transactional=True),
        marker_bytes(4, producer_id=9, abort=True),
    )
    again = ProducerStates()
    again.load_snapshot(states.snapshot(), Offset(5))
    assert again.snapshot() == states.snapshot()
    assert again.map_end_offset == 5
    assert again.first_unstable_offset(Offset(5)) == 3
    assert [verdict(again, at) for at in (1, 2, 3)] == [OUT_OF_ORDER, DUPLICATE, OK]


def test_damaged_snapshot_is_refused() -> None:
    good = table(written(0, 0)).snapshot()
    wrong_count = struct.pack(">i", 2) + good[10:]
    odd = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 7, 0, 9, 5, 6, 1, -1, -1)
    cases = [struct.pack(">hI", 1, crc32c(odd)) + odd]
    cases += [good[:9], good[:-1], b"\0\2" + good[2:], bytes([good[0], good[1] ^ 4]) + good[2:]]
    cases += [good[:-1] + b"\1", struct.pack(">hI", 1, crc32c(wrong_count)) + wrong_count]
    for data in cases:
        with pytest.raises(CorruptSnapshot):
            ProducerStates().load_snapshot(data, Offset(1))


def test_replay_stops_at_the_end_and_steps_over_segments_without_batches() -> None:
    fs = SimFileSystem()
    config = LogConfig(segment_bytes=400, cleanup_policy=("compact",))
    log = open_at(fs, config)
    for at in range(9):
        append(log, written(at, at))
    emptied = log.segments[1]
    emptied.cut(0, emptied.base_offset)
    end = Offset(log.active_segment.base_offset + 1)
    states = load_producers(fs, DIRECTORY, log.segments, end)
    state = states.get(7)
    assert state is not None
    assert (state.last_offset, states.map_end_offset) == (end - 1, end)
    assert len(load_producers(fs, DIRECTORY, log.segments, Offset(0))) == 0
    for offset in snapshot_offsets(fs, DIRECTORY):
        fs.unlink(f"{DIRECTORY}/{offset:020d}.snapshot")
    state = load_producers(fs, DIRECTORY, log.segments, end).get(7)
    assert state is not None
    assert state.last_offset == end - 1


@pytest.mark.parametrize("damage", [False, True])
def test_restart_restores_the_table_from_snapshot_or_log(damage: bool) -> None:
    fs = SimFileSystem()
    config = LogConfig(segment_bytes=400)
    log = open_at(fs, config)
    for at in range(9):
        append(log, written(at, at))
    table_before = log.producer_states.snapshot()
    log.close()
    assert snapshot_offsets(fs, DIRECTORY)[-1] == 9
    if damage:
        for offset in snapshot_offsets(fs, DIRECTORY):
            replace_file(fs, f"{DIRECTORY}/{offset:020d}.snapshot", b"?")
    for is_clean in (True, False):
        again = open_at(fs, config, is_clean=is_clean, recovery_point=9)
        assert again.producer_states.snapshot() == table_before
    again.truncate_to(Offset(6))
    assert snapshot_offsets(fs, DIRECTORY)[-1] <= 6
    assert verdict(again.producer_states, 6) is OK
    assert len(contents(again)) == 6


@given(
    st.lists(
        st.tuples(st.sampled_from([7, 8]), st.sampled_from(["plain", "settle", "txn", "commit"]))
    )
)
def test_a_long_log_leaves_the_same_table_as_batch_by_batch(
    steps: list[tuple[int, str]],
) -> None:
    one, other = ProducerStates(), ProducerStates()
    replay = ProducerReplay(other)
    sequences = {7: 0, 8: 0}
    for offset, (producer_id, what) in enumerate(steps):
        if what == "settle":
            replay.settle()
            continue
        if what == "commit":
            data = marker_bytes(offset, producer_id=producer_id, abort=False)
        else:
            data = batch_bytes(
                offset,
                producer_id=producer_id,
                sequence=sequences[producer_id],
                transactional=what == "txn",
            )
            sequences[producer_id] += 1
        one.update(parsed(data))
        replay.take(producer_id, memoryview(data), 0, len(data))
    replay.settle()
    for producer_id, sequence in sequences.items():
        for asked in range(max(sequence - 7, 0), sequence + 2):
            batch = parsed(batch_bytes(99, producer_id=producer_id, sequence=asked))
            assert one.check(batch) == other.check(batch)
    assert one.snapshot() == other.snapshot()


@pytest.mark.parametrize("seed", range(10))
def test_oldest_open_transaction_is_that_of_a_plain_table_also_behind_a_snapshot(
    seed: int,
) -> None:
    """The order of the snapshot is that of the producers, not that of their transactions."""
    chance, states = Random(seed), ProducerStates()
    opened: dict[int, int] = {}
    for offset in range(60):
        producer_id = chance.randrange(6)
        if producer_id in opened and chance.random() < 0.4:
            states.update(
                parsed(marker_bytes(offset, producer_id=producer_id, abort=bool(offset % 2)))
            )
            del opened[producer_id]
        else:
            begins = chance.random() < 0.5
            if begins:
                opened.setdefault(producer_id, offset)
            data = batch_bytes(
                offset,
                producer_id=producer_id,
                sequence=offset,
                transactional=producer_id in opened,
            )
            states.update(parsed(data))
        end = Offset(offset + 1)
        loaded = ProducerStates()
        loaded.load_snapshot(states.snapshot(), end)
        oldest = min(opened.values(), default=None)
        assert states.first_unstable_offset(end) == oldest
        assert loaded.first_unstable_offset(end) == oldest


@pytest.mark.parametrize("abort", [False, True])
def test_a_marker_counts_for_the_age_of_its_producer(abort: bool) -> None:
    """`ProducerAppendInfo.appendEndTxnMarker`: idle since the end of its last transaction."""
    data = batch_bytes(0, producer_id=7, sequence=0, transactional=True, timestamp=1_000)
    states = table(data, marker_bytes(1, producer_id=7, abort=abort, timestamp=5_000))
    assert states.expire(5_000 + 99, 100) == 0
    assert states.expire(5_000 + 100, 100) == 1
