"""Transactions in a partition's files (KIP-98, KIP-534): kept, rebuilt, cut, compacted.

Ids are those of docs/KIPS.md.
"""

import random
import struct
from dataclasses import replace

import pytest

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.storage.producers.snapshots import snapshot_path
from tests.storage.making import (
    DIRECTORY,
    append,
    batch_bytes,
    contents,
    marker_bytes,
    open_at,
    parsed,
)
from tests.storage.scanned_transactions import scan

CONFIG = LogConfig(segment_bytes=1_000, index_interval_bytes=100)
COMPACTED = replace(CONFIG, cleanup_policy=("compact",), delete_retention_ms=1_000)
_ENTRY = struct.Struct(">qhiqiqiq")


def data(
    log: Log, producer_id: int, sequence: int = 0, *, key: bytes = b"k", epoch: int = 0
) -> None:
    append(
        log,
        batch_bytes(
            log.log_end_offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            sequence=sequence,
            transactional=True,
            key=key,
        ),
    )


def mark(log: Log, producer_id: int, *, abort: bool) -> None:
    append(log, marker_bytes(log.log_end_offset, producer_id=producer_id, abort=abort))


def check(log: Log) -> None:
    """What the log remembers is what its bytes say (T07, T15)."""
    found = scan(log)
    states = {
        each.producer_id: (each.producer_epoch, each.last_sequence, each.coordinator_epoch)
        for each in log.producer_states.active_producers()
    }
    opened = {
        each.producer_id: each.transaction_first_offset
        for each in log.producer_states.active_producers()
        if each.transaction_first_offset is not None
    }
    assert states == found.producers
    assert opened == found.open
    assert log.aborted_transactions(Offset(0), log.log_end_offset) == found.aborted
    assert log.last_stable_offset == found.last_stable_offset(log.high_watermark)


@pytest.mark.parametrize("seed", range(40))
def test_memory_and_indexes_are_what_the_bytes_say_after_any_story(seed: int) -> None:
    """TXN-PART-01, TXN-PART-02, TXN-PART-05, TXN-PART-06: appends, rolls, cuts, crashes, restarts.

    The high watermark stays behind; a restart is given it, as the checkpoint has it.
    """
    chance = random.Random(seed)
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    sequences = dict.fromkeys(range(3), 0)
    for _ in range(60):
        producer_id = chance.randrange(3)
        match chance.randrange(10):
            case 0 | 1 | 2 | 3:
                data(log, producer_id, sequences[producer_id])
                sequences[producer_id] += 1
            case 4 | 5 | 6:
                mark(log, producer_id, abort=chance.random() < 0.5)
            case 7:
                log.update_high_watermark(
                    Offset(chance.randint(log.high_watermark, log.log_end_offset))
                )
            case 8:
                log.truncate_to(Offset(chance.randint(log.high_watermark, log.log_end_offset)))
                sequences = {each: 100 + value for each, value in sequences.items()}
            case 9:
                high_watermark = log.high_watermark
                is_clean = chance.random() < 0.5
                if is_clean:
                    log.close()
                log = open_at(
                    fs,
                    CONFIG,
                    is_clean=is_clean,
                    recovery_point=0 if is_clean else log.recovery_point,
                )
                log.update_high_watermark(high_watermark)
        check(log)


def test_a_snapshot_carries_what_a_transaction_needs() -> None:
    """TXN-PART-04: epoch, last batch, coordinator epoch, first offset of what is open."""
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    data(log, 7, 4, epoch=2)
    mark(log, 8, abort=False)
    log.roll(1)
    content = fs.read(snapshot_path(DIRECTORY, Offset(2)))
    assert content[:2] == b"\x00\x01"
    assert struct.unpack_from(">i", content, 6) == (2,)
    entries = list(_ENTRY.iter_unpack(content[10:]))
    assert entries == [(7, 2, 4, 0, 0, 1000, -1, 0), (8, 0, -1, -1, 0, 5000, 3, -1)]


def test_recovery_of_a_segment_knows_the_transactions_before_it() -> None:
    """TXN-PART-05: the snapshot at the segment's base has what was open."""
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    data(log, 7)
    log.roll(1)
    log.flush()
    base = log.log_end_offset
    mark(log, 7, abort=True)
    log.flush()
    assert not fs.exists(f"{DIRECTORY}/{base:020}.txnindex"), "the crash comes before it is saved"
    again = open_at(fs, CONFIG, recovery_point=base)
    assert again.aborted_transactions(Offset(0), Offset(9)) == [(7, 0, 1, 2)]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("spoilt", [bytes(33), b"\xa5" * 34, struct.pack(">hqqqq", 0, 7, 0, 1, 2)])
def test_a_transaction_index_that_cannot_be_right_is_rebuilt(spoilt: bytes, is_clean: bool) -> None:
    """As in Kafka, the segment is recovered: the index has no checksum, and no other copy."""
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    data(log, 7)
    mark(log, 7, abort=True)
    log.roll(1)
    data(log, 7)
    mark(log, 7, abort=True)
    log.roll(1)
    log.flush()
    log.close()
    end = log.log_end_offset
    right = fs.read(f"{DIRECTORY}/{2:020}.txnindex")
    replace_file(fs, f"{DIRECTORY}/{2:020}.txnindex", spoilt)
    again = open_at(fs, CONFIG, is_clean=is_clean, recovery_point=end)
    assert again.aborted_transactions(Offset(0), end) == [(7, 0, 1, 2), (7, 2, 3, 4)]
    assert fs.read(f"{DIRECTORY}/{2:020}.txnindex") == right
    check(again)


def test_followers_take_what_a_leader_wrote() -> None:
    """TXN-PART-07: nothing is refused, no matter which epochs and sequences."""
    leader, follower = (open_at(SimFileSystem(), CONFIG) for _ in range(2))
    for log in (leader, follower):
        data(log, 7, 3, epoch=5)
        data(log, 7, 9, epoch=5)
        data(log, 7, 0, epoch=4)
        mark(log, 7, abort=True)
        check(log)
    assert contents(leader) == contents(follower)


def test_producers_with_an_open_transaction_do_not_expire() -> None:
    """TXN-PART-09."""
    log = open_at(SimFileSystem(), CONFIG)
    data(log, 7)
    data(log, 8)
    mark(log, 8, abort=False)
    assert log.producer_states.expire(10**9, 1_000) == 1
    assert [each.producer_id for each in log.producer_states.active_producers()] == [7]


def test_a_marker_forgets_the_batches_of_an_older_epoch() -> None:
    """TXN-PART-08: then only sequence 0 follows."""
    states = ProducerStates()
    for each in (
        batch_bytes(0, producer_id=7, sequence=0, transactional=True, producer_epoch=0),
        marker_bytes(1, producer_id=7, abort=False),
    ):
        states.update(parsed(each))
    state = states.get(7)
    assert state is not None
    assert state.last_sequence == 0


def sealed(log: Log) -> None:
    log.roll(1)
    log.update_high_watermark(log.log_end_offset)


def test_compaction_stays_below_the_oldest_open_transaction() -> None:
    """TXN-PART-11: and removes aborted data at once, whatever the keys."""
    fs = SimFileSystem()
    log = open_at(fs, COMPACTED)
    data(log, 7, key=b"a")
    mark(log, 7, abort=True)
    data(log, 7, 1, key=b"z")
    mark(log, 7, abort=False)
    sealed(log)
    data(log, 8, key=b"b")
    sealed(log)
    append(log, batch_bytes(log.log_end_offset, key=b"z"))
    sealed(log)
    result = compact(fs, log, Offset(0), 5_000)
    assert result.next_dirty_offset == 4, "the open transaction begins there"
    assert [parsed(each).base_offset for each in contents(log)] == [1, 2, 3, 4, 5]


def test_a_marker_outlives_its_data_by_the_retention_of_deletes() -> None:
    """TXN-PART-12: a pass that finds no data stamps the horizon, a pass behind it drops."""
    fs = SimFileSystem()
    log = open_at(fs, COMPACTED)
    data(log, 7, key=b"a")
    mark(log, 7, abort=True)
    data(log, 7, 1, key=b"z")
    mark(log, 7, abort=False)
    sealed(log)
    compact(fs, log, Offset(0), 5_000)
    assert log.aborted_transactions(Offset(0), Offset(9)) == [(7, 0, 1, 2)], "data of it was seen"
    compact(fs, log, Offset(0), 5_100)
    assert log.aborted_transactions(Offset(0), Offset(9)) == []
    assert parsed(contents(log)[0]).delete_horizon_ms == 6_100
    compact(fs, log, Offset(0), 6_100)
    assert [parsed(each).base_offset for each in contents(log)] == [1, 2, 3]
    compact(fs, log, Offset(0), 6_101)
    assert [parsed(each).base_offset for each in contents(log)] == [2, 3]


def test_the_last_batch_of_an_active_producer_stays_emptied() -> None:
    """TXN-PART-13: the data batch; a marker only for a producer without any."""
    fs = SimFileSystem()
    log = open_at(fs, COMPACTED)
    data(log, 7, key=b"a")
    mark(log, 7, abort=True)
    mark(log, 8, abort=True)
    sealed(log)
    for wall_ms in range(5_000, 12_000, 700):
        compact(fs, log, Offset(0), wall_ms)
    left = [parsed(each) for each in contents(log)]
    found = [(each.base_offset, each.records_count, each.is_control) for each in left]
    assert (0, 0, False) in found, "its sequence is remembered by this batch"
    assert (2, 0, True) in found, "only the marker has the epoch"
