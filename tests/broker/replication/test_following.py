"""What a leader's answers do to a follower's log (KIP-101, KIP-279, KIP-320)."""

from contextlib import suppress

import pytest

from kraft_wire.model import FsyncFailed, LeaderEpoch, Offset, StorageError, TopicPartition
from kraft_wire.sim.disk.files import DiskFault
from kraft_wire.storage.directory.checkpoints import RECOVERY_POINTS, read_offsets
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.producer_state import SequenceVerdict
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.replication.followers import (
    BACKOFF_MS,
    BROKER_EPOCH,
    REPLICA,
    WALL_MS,
    Follower,
    content,
    data,
)
from tests.storage.making import append, batch_bytes

NAME = TopicPartition("t", 0)


def position(follower: Follower) -> tuple[int, int, int]:
    """Fetch offset, epoch of the record before it, and leader epoch of the request sent now."""
    follower.request()
    asked = follower.remembered[NAME]
    return asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch


def test_a_request_says_who_asks_and_where_its_log_ends() -> None:
    """KIP-903 (broker epoch), KIP-320 (current leader epoch), KIP-595 (last fetched epoch)."""
    follower = Follower()
    follower.make(batches=[batch_bytes(0, count=3, epoch=2), batch_bytes(3, epoch=4)])
    follower.follow(epoch=5)
    request = follower.request()
    assert request.replica_state is not None
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (
        REPLICA,
        BROKER_EPOCH,
    )
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10_485_760)
    asked = follower.remembered[NAME]
    assert (asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch) == (4, 4, 5)
    assert (asked.log_start_offset, asked.partition_max_bytes) == (0, 1_048_576)
    assert request.isolation_level == 0


@pytest.mark.parametrize("codec", list(Compression))
def test_records_are_written_as_they_came(codec: Compression) -> None:
    follower = Follower()
    log = follower.make()
    follower.follow()
    follower.request()
    sent = [
        batch_bytes(0, count=5, epoch=3, compression=codec),
        batch_bytes(5, count=2, epoch=5, compression=codec),
    ]
    follower.answer(data(*sent, high_watermark=6))
    assert content(log) == b"".join(sent)
    assert log.epochs.entries == [(3, 0), (5, 5)]
    assert log.high_watermark == 6
    assert position(follower) == (7, 5, 5)


def test_the_high_watermark_is_the_leader_s_as_far_as_the_log_reaches() -> None:
    follower = Follower()
    log = follower.make()
    follower.follow()
    follower.request()
    follower.answer(data(batch_bytes(0, count=5, epoch=5), high_watermark=100))
    assert log.high_watermark == 5
    follower.request()
    follower.answer(data(high_watermark=3))
    assert log.high_watermark == 5
    follower.request()
    follower.answer(data(high_watermark=-1))
    assert log.high_watermark == 5


def test_the_leader_s_log_start_is_followed_up_to_the_high_watermark() -> None:
    follower = Follower()
    log = follower.make()
    follower.follow()
    follower.request()
    follower.answer(data(batch_bytes(0, count=9, epoch=5), high_watermark=6, log_start_offset=4))
    assert log.log_start_offset == 4
    follower.request()
    assert follower.remembered[NAME].log_start_offset == 4
    follower.answer(data(high_watermark=6, log_start_offset=8))
    assert log.log_start_offset == 4


def test_a_batch_that_the_answer_cuts_is_fetched_again() -> None:
    follower = Follower()
    log = follower.make()
    follower.follow()
    follower.request()
    whole, cut = batch_bytes(0, count=2, epoch=5), batch_bytes(2, count=2, epoch=5)
    follower.answer(data(whole, cut[:-1]))
    assert content(log) == whole
    assert position(follower)[0] == 2


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


CONTROL_BYTES = bytes(
    build_batch(
        [Record(b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", timestamp=1)],
        base_offset=4,
        partition_leader_epoch=5,
        producer_id=8,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
)


def without_records(batch: bytes) -> bytes:
    """The batch without its body, with a right checksum: what it declares is not there."""
    from kraft_wire.wire.crc32c import crc32c

    head = bytearray(batch[:61])
    head[8:12] = (61 - 12).to_bytes(4, "big")
    head[17:21] = crc32c(bytes(head[21:])).to_bytes(4, "big")
    return bytes(head)


@pytest.mark.parametrize(
    "refused",
    [
        damaged(batch_bytes(4, epoch=5)),
        batch_bytes(3, count=2, epoch=5),
        batch_bytes(0, epoch=5),
        batch_bytes(4, epoch=2),
        batch_bytes(4, epoch=5)[:40],
        b"\x00" * 100,
        batch_bytes(4, epoch=5) + damaged(batch_bytes(5, epoch=5)),
        without_records(CONTROL_BYTES),
        batch_bytes((1 << 63) - 1, count=3, epoch=5, timestamp=0),
    ],
    ids=[
        "checksum",
        "overlaps",
        "before the end",
        "older epoch",
        "no whole batch",
        "no batch",
        "second one",
        "marker",
        "overflow",
    ],
)
def test_what_cannot_follow_the_log_is_not_written_and_asked_for_again(refused: bytes) -> None:
    """As Kafka's follower: CorruptRecordException and out-of-order offsets cost a back-off."""
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=4, epoch=3)], high_watermark=2)
    before = content(log)
    follower.follow()
    follower.request()
    follower.answer(data(refused, high_watermark=4))
    assert content(log) == before
    assert (log.log_end_offset, log.high_watermark) == (4, 2)
    assert follower.said() == ["replica_records_refused"]
    follower.now_ms += BACKOFF_MS - 1
    follower.request()
    assert follower.remembered == {}
    follower.answer(session_id=0)
    follower.now_ms += 1
    assert position(follower) == (4, 3, 5)


def test_records_of_a_later_epoch_than_asked_are_left() -> None:
    """KAFKA-18723: written when this leader was none any more, they may be gone already."""
    follower = Follower()
    log = follower.make()
    follower.follow(epoch=5)
    follower.request()
    kept = batch_bytes(0, count=2, epoch=5)
    follower.answer(data(kept, batch_bytes(2, epoch=6), high_watermark=3))
    assert content(log) == kept
    follower.request()
    follower.answer(data(batch_bytes(2, epoch=6), high_watermark=3))
    assert content(log) == kept


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_gaps_are_written_and_are_no_damage_after_a_crash(policy: str) -> None:
    """A leader's log was compacted once; after the crash, or before, the topic is not any more."""
    follower = Follower()
    log = follower.make(config={"cleanup.policy": policy})
    follower.follow()
    follower.request()
    sent = [batch_bytes(0, epoch=5), batch_bytes(9, count=2, epoch=5)]
    follower.answer(data(*sent, high_watermark=11))
    assert content(log) == b"".join(sent)
    log.flush()
    crashed = follower.fs.crashed([])
    again = LogDirectory.open(crashed, "/disk")
    again.load_logs(lambda topic: LogConfig(), WALL_MS)
    assert not again.damaged
    assert again.logs[NAME].log_end_offset == 11


def test_records_larger_than_a_segment_are_divided_between_segments() -> None:
    follower = Follower()
    log = follower.make(config={"segment.bytes": "1048576"})
    follower.follow()
    follower.request()
    sent = [batch_bytes(at, size=400_000, epoch=5) for at in range(5)]
    follower.answer(data(*sent))
    assert content(log) == b"".join(sent)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


@pytest.mark.parametrize("start", [0, 1 << 31])
def test_records_that_fit_into_one_segment_are_not_divided(start: int) -> None:
    """`UnifiedLog.append` of 4.3.1 makes room for all records of an answer at once."""
    follower = Follower()
    log = follower.make(config={"segment.bytes": "1048576"})
    log.truncate_fully_and_start_at(Offset(start))
    append(log, batch_bytes(start, size=500_000))
    follower.follow()
    follower.request()
    first = batch_bytes(start + 1, size=500_000, epoch=5)
    second = batch_bytes(start + 2, size=548_000, epoch=5)
    spare = 1_048_576 - len(first + second)
    exact = batch_bytes(start + 2, size=548_000 + spare, epoch=5)
    assert len(first + exact) == 1_048_576
    follower.answer(data(first, exact))
    assert [segment.base_offset for segment in log.segments] == [start, start + 1]


def test_gaps_wider_than_a_segment_are_written() -> None:
    """Indexes count an offset from their segment's first, in 32 bits."""
    follower = Follower()
    log = follower.make(config={"cleanup.policy": "compact"})
    follower.follow()
    follower.request()
    far = 5 << 31
    sent = [batch_bytes(0, epoch=5, timestamp=1), batch_bytes(far, epoch=5, timestamp=1)]
    follower.answer(data(*sent))
    assert content(log) == b"".join(sent)
    assert [segment.base_offset for segment in log.segments] == [0, far]
    assert position(follower)[0] == far + 1


def test_a_log_without_records_may_begin_with_a_batch_around_its_start() -> None:
    """DeleteRecords put the leader's start into the middle of a batch."""
    follower = Follower()
    log = follower.make()
    log.truncate_fully_and_start_at(Offset(3))
    follower.follow()
    assert position(follower)[0] == 3
    sent = batch_bytes(0, count=5, epoch=5)
    follower.answer(data(sent, high_watermark=5, log_start_offset=3))
    assert content(log) == sent
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (3, 5, 5)


def test_producers_are_known_to_the_follower() -> None:
    """What a new leader needs to recognise a retry."""
    follower = Follower()
    log = follower.make()
    follower.follow()
    follower.request()
    sent = [
        batch_bytes(0, count=2, epoch=5, producer_id=7, sequence=0),
        batch_bytes(2, count=3, epoch=5, producer_id=7, sequence=2),
    ]
    follower.answer(data(*sent))
    (retry,) = parse_batches(bytearray(sent[1]))
    check = log.producer_states.check(retry)
    assert (check.verdict, check.base_offset) == (SequenceVerdict.DUPLICATE, 2)
    follower.request()
    follower.answer(data(diverging=(5, 2)))
    assert log.producer_states.check(retry).verdict is SequenceVerdict.OK


# ---- divergence ------------------------------------------------------------------------------


def test_a_diverging_log_is_cut_where_the_epoch_ended_at_the_leader() -> None:
    """KIP-101: the follower has records of epoch 2 that its leader never had."""
    follower = Follower()
    kept = batch_bytes(0, count=3, epoch=2)
    log = follower.make(batches=[kept, batch_bytes(3, count=4, epoch=2)], high_watermark=3)
    follower.follow(epoch=5)
    assert position(follower) == (7, 2, 5)
    follower.answer(data(diverging=(2, 3)))
    assert content(log) == kept
    assert position(follower) == (3, 2, 5)
    assert follower.lines == []


def test_the_high_watermark_of_an_answer_that_cuts_is_taken_with_the_cut() -> None:
    """Incremental sessions say it once (KIP-227), and nothing more may ever be written."""
    follower = Follower()
    kept = batch_bytes(0, count=3, epoch=2)
    log = follower.make(batches=[kept, batch_bytes(3, count=4, epoch=2)], high_watermark=2)
    follower.follow(epoch=5)
    follower.request()
    follower.answer(data(diverging=(2, 3), high_watermark=3))
    assert content(log) == kept
    assert log.high_watermark == 3


def test_the_high_watermark_of_an_answer_that_does_not_find_the_epoch_waits() -> None:
    """What is left may still be another than the leader's: the next answer says."""
    follower = Follower()
    first = [batch_bytes(0, count=2, epoch=1), batch_bytes(2, count=2, epoch=2)]
    log = follower.make(batches=[*first, batch_bytes(4, epoch=5)], high_watermark=1)
    follower.follow(epoch=6)
    follower.request()
    follower.answer(data(diverging=(3, 5), high_watermark=4))
    assert (log.log_end_offset, log.high_watermark) == (4, 1)


def test_the_high_watermark_waits_where_the_leaders_log_begins_later() -> None:
    """The leader has deleted epoch 2, and names its start as the end of that: 4.3.1 only truncates.

    What is left here may be records that were never committed (sim seed 6000126).
    """
    follower = Follower()
    first = [batch_bytes(0, count=2, epoch=2), batch_bytes(2, count=3, epoch=2)]
    log = follower.make(batches=[*first, batch_bytes(5, count=4, epoch=2)], high_watermark=0)
    follower.follow(epoch=5)
    follower.request()
    follower.answer(data(diverging=(2, 6), high_watermark=40, log_start_offset=6))
    assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (5, 0, 0)


def test_an_empty_log_of_the_leader_is_taken_with_the_cut() -> None:
    """All that is left here is below its start, and goes."""
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=2, epoch=2), batch_bytes(2, epoch=2)])
    follower.follow(epoch=5)
    follower.request()
    follower.answer(data(diverging=(2, 2), high_watermark=2, log_start_offset=2))
    assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (2, 2, 2)


def test_an_epoch_that_the_follower_lacks_is_looked_for_further_down() -> None:
    """KIP-279: ours are 1, 2, 5; the leader's 1, 3: it names 3, which we lack."""
    follower = Follower()
    kept = [batch_bytes(0, count=2, epoch=1), batch_bytes(2, count=2, epoch=2)]
    log = follower.make(batches=[*kept, batch_bytes(4, epoch=5), batch_bytes(5, epoch=5)])
    follower.follow(epoch=6)
    assert position(follower) == (6, 5, 6)
    follower.answer(data(diverging=(3, 5)))
    assert content(log) == b"".join(kept)
    assert position(follower) == (4, 2, 6)
    follower.answer(data(diverging=(1, 2)))
    assert content(log) == kept[0]
    assert position(follower) == (2, 1, 6)


def test_an_epoch_that_was_announced_and_has_no_record_is_forgotten() -> None:
    """This broker led under epoch 4 and wrote nothing; nobody else knows of it."""
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=3, epoch=2)], high_watermark=3)
    log.epochs.announce(LeaderEpoch(4), log.log_end_offset)
    follower.follow(epoch=5)
    assert position(follower) == (3, 4, 5)
    follower.answer(data(diverging=(2, 3)))
    assert log.log_end_offset == 3
    assert log.epochs.entries == [(2, 0)]
    assert position(follower) == (3, 2, 5)


def test_a_cut_below_the_high_watermark_is_told() -> None:
    """After an unclean election: what was committed is lost, and Kafka warns of it too."""
    follower = Follower()
    log = follower.make(
        batches=[batch_bytes(0, epoch=1), batch_bytes(1, count=4, epoch=2)], high_watermark=5
    )
    follower.follow(epoch=5)
    follower.request()
    follower.answer(data(diverging=(1, 1)))
    assert (log.log_end_offset, log.high_watermark) == (1, 1)
    ((name, fields),) = follower.lines
    assert name == "replica_truncated_below_high_watermark"
    assert (fields["offset"], fields["high_watermark"], fields["log_end_offset"]) == (1, 5, 5)


@pytest.mark.parametrize("diverging", [(2, 5), (2, -1), (7, 9), (2, 1 << 40)])
def test_a_leader_that_names_no_place_to_cut_at_is_not_asked_at_once_again(
    diverging: tuple[int, int],
) -> None:
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=5, epoch=2)])
    follower.follow(epoch=5)
    follower.request()
    follower.answer(data(diverging=diverging))
    assert log.log_end_offset == 5
    follower.now_ms += BACKOFF_MS
    assert position(follower) == (5, 2, 5)


def test_a_log_without_epochs_goes_on_from_the_high_watermark() -> None:
    """KIP-101: there is no other way to know where it parts from the leader's."""
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, epoch=0), batch_bytes(1, epoch=0)])
    log.epochs.clear()
    log.high_watermark = Offset(1)
    follower.follow(epoch=5)
    assert (log.log_end_offset, log.epochs.latest) == (1, None)
    assert position(follower) == (1, -1, 5)


def uncut(follower: Follower) -> Log:
    """A log without epochs whose cut, at its high watermark, meets a full disk."""
    log = follower.make(batches=[batch_bytes(0, epoch=0), batch_bytes(1, epoch=0)])
    log.flush()
    log.epochs.clear()
    log.high_watermark = Offset(1)
    follower.fs.fault = (follower.fs.calls_count, DiskFault.ENOSPC)
    follower.follow(epoch=5)
    assert (len(follower.failures), log.log_end_offset) == (1, 2)
    return log


def test_a_log_without_epochs_is_cut_later_where_the_disk_was_full() -> None:
    """KIP-101: a leader that is told no epoch finds no divergence; nothing else would cut it."""
    follower = Follower()
    log = uncut(follower)
    follower.now_ms += BACKOFF_MS
    assert position(follower) == (1, -1, 5)
    assert log.log_end_offset == 1


def test_partitions_that_rest_are_lost_with_the_disk_that_fails_one_of_them() -> None:
    follower = Follower()
    uncut(follower)
    other = ("t", 1)
    follower.make(other)
    follower.follow(other)
    follower.request()
    follower.answer(data(partition=1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def disk_failed(error: StorageError) -> None:
        for partition in follower.partitions.values():
            partition.offline = True
            follower.fetchers.forget(partition)

    follower.partitions[NAME].failed = disk_failed
    follower.fs.fault = (follower.fs.calls_count, DiskFault.EIO)
    follower.now_ms += BACKOFF_MS
    follower.request()
    assert follower.remembered == {}
    assert follower.fetcher.followed == {}


NEEDS_ROOM = ("open", "write", "rename")
"""What a disk without room refuses; it cuts and reads as ever."""


def cut_on_a_full_disk(call: int) -> tuple[Follower, Log] | None:
    """A log with a producer's batches 0 to 2 is cut at 1, though its disk is full at a call.

    None where that call needs no room.
    """
    follower = Follower()
    batches = [batch_bytes(at, epoch=2 + at, producer_id=7, sequence=at) for at in range(3)]
    log = follower.make(batches=batches, high_watermark=1)
    log.flush()
    follower.directory.checkpoint()
    follower.follow(epoch=5)
    follower.request()
    follower.fs.fault = (follower.fs.calls_count + call, DiskFault.ENOSPC)
    with suppress(FsyncFailed):
        follower.answer(data(diverging=(2, 1)))
    if follower.fs.failed_operation not in NEEDS_ROOM:
        return None
    assert len(follower.failures) == 1
    assert not follower.partitions[NAME].offline
    follower.directory.space.is_full = False
    follower.now_ms += BACKOFF_MS
    if position(follower)[0] > 1:
        follower.answer(data(diverging=(2, 1)))
        position(follower)
    return follower, log


def test_a_log_that_was_cut_on_a_full_disk_takes_no_cut_batch_for_a_producer_s_last() -> None:
    """As a leader it would acknowledge that batch's retry, which is in no log, as a duplicate."""
    tried = 0
    for call in range(40):
        cut = cut_on_a_full_disk(call)
        if cut is None:
            continue
        follower, log = cut
        tried += 1
        (again,) = parse_batches(memoryview(batch_bytes(1, epoch=5, producer_id=7, sequence=1)))
        assert log.log_end_offset == 1
        assert log.producer_states.check(again).verdict is SequenceVerdict.OK
        points = read_offsets(follower.fs, f"/disk/{RECOVERY_POINTS}")
        assert points[NAME] <= 1, "what lies above is verified after a crash"
        follower.answer(data(batch_bytes(1, epoch=2)))
        epochs = LeaderEpochs(follower.fs, log.directory)
        epochs.load()
        assert epochs.entries == [(2, 0)]
    assert tried >= 6


# ---- out of range ----------------------------------------------------------------------------


def out_of_range(follower: Follower) -> None:
    follower.request()
    follower.answer(data(error=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=-1))


def test_a_log_that_is_longer_than_the_leader_s_is_cut_to_its_end() -> None:
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=3, epoch=2), batch_bytes(3, epoch=2)])
    follower.follow(epoch=5)
    out_of_range(follower)
    request = follower.offsets_request()
    assert request.replica_id == REPLICA
    (asked,) = request.topics[0].partitions
    assert (asked.timestamp, asked.current_leader_epoch) == (-1, 5)
    follower.answer_offset(3)
    assert log.log_end_offset == 3
    assert position(follower) == (3, 2, 5)


def test_a_log_that_ends_before_the_leader_s_begins_begins_anew_there() -> None:
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=3, epoch=2)], high_watermark=3)
    follower.follow(epoch=5)
    out_of_range(follower)
    follower.offsets_request()
    follower.answer_offset(900)
    assert follower.offsets_request().topics[0].partitions[0].timestamp == -2
    follower.answer_offset(500)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (500, 500, 500)
    assert log.epochs.entries == []
    assert follower.said() == ["replica_restarted_at_log_start"]
    assert position(follower) == (500, -1, 5)


def test_an_answer_about_partitions_that_nobody_asked_for_changes_nothing() -> None:
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=3, epoch=2)], high_watermark=3)
    follower.follow(epoch=5)
    out_of_range(follower)
    follower.offsets_request()
    follower.answer_offset(1, name="other")
    assert log.log_end_offset == 3
    follower.now_ms += BACKOFF_MS
    follower.request()
    assert follower.remembered["t", 0].fetch_offset == 3


@pytest.mark.parametrize("epoch", [5, 6])
def test_an_answer_for_a_partition_that_is_followed_anew_changes_nothing(epoch: int) -> None:
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=3, epoch=2)], high_watermark=3)
    follower.follow(epoch=5)
    out_of_range(follower)
    follower.offsets_request()
    follower.fetchers.forget(follower.partitions[TopicPartition("t", 0)])
    follower.follow(epoch=epoch)
    follower.answer_offset(1)
    assert log.log_end_offset == 3


def begin_anew(follower: Follower) -> None:
    """The leader's log is from 500 to 900."""
    out_of_range(follower)
    follower.offsets_request()
    follower.answer_offset(900)
    follower.offsets_request()
    follower.answer_offset(500)


def test_a_log_that_finds_no_room_to_begin_anew_does_so_later_or_is_out_of_use() -> None:
    """Between two first segments it has none: only the next start can go on from there."""
    outcomes = {True: 0, False: 0}
    for call in range(40):
        follower = Follower()
        log = follower.make(batches=[batch_bytes(0, count=3, epoch=2)], high_watermark=3)
        log.flush()
        follower.follow(epoch=5)
        follower.fs.fault = (follower.fs.calls_count + call, DiskFault.ENOSPC)
        with suppress(FsyncFailed):
            begin_anew(follower)
        if follower.fs.failed_operation not in NEEDS_ROOM:
            continue
        is_offline = follower.partitions[NAME].offline
        outcomes[is_offline] += 1
        if is_offline:
            assert follower.fetcher.followed == {}
            follower.directory.close()
            continue
        follower.directory.space.is_full = False
        follower.now_ms += BACKOFF_MS
        begin_anew(follower)
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (500, 500, 500)
    assert min(outcomes.values()) >= 3


def test_a_leader_s_log_that_begins_behind_its_end_costs_nothing() -> None:
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=3, epoch=2)], high_watermark=3)
    follower.follow(epoch=5)
    out_of_range(follower)
    follower.offsets_request()
    follower.answer_offset(900)
    follower.offsets_request()
    follower.answer_offset(1 << 62)
    assert (log.log_end_offset, follower.said()) == (3, [])


def test_an_offset_that_the_leader_has_after_all_is_fetched_after_a_rest() -> None:
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=3, epoch=2)])
    follower.follow(epoch=5)
    out_of_range(follower)
    follower.offsets_request()
    follower.answer_offset(900)
    follower.offsets_request()
    follower.answer_offset(1)
    assert (log.log_start_offset, log.log_end_offset) == (0, 3)
    follower.now_ms += BACKOFF_MS
    assert position(follower) == (3, 2, 5)


@pytest.mark.parametrize(("offset", "error"), [(-1, 0), (7, ErrorCode.FENCED_LEADER_EPOCH)])
def test_a_place_that_is_not_told_is_asked_for_by_another_fetch(offset: int, error: int) -> None:
    follower = Follower()
    log = follower.make(batches=[batch_bytes(0, count=3, epoch=2)])
    follower.follow(epoch=5)
    out_of_range(follower)
    follower.offsets_request()
    follower.answer_offset(offset, error)
    assert log.log_end_offset == 3
    follower.now_ms += BACKOFF_MS
    assert position(follower) == (3, 2, 5)


# ---- the disk --------------------------------------------------------------------------------


def test_a_disk_that_refuses_takes_the_partition_out_of_the_fetches() -> None:
    follower = Follower()
    follower.make()
    follower.follow()
    follower.request()
    follower.fs.fault = (follower.fs.calls_count, DiskFault.EIO)
    follower.answer(data(batch_bytes(0, epoch=5)))
    assert len(follower.failures) == 1
    follower.request()
    assert follower.remembered == {}
    follower.now_ms += BACKOFF_MS
    assert follower.asks_nothing()


def test_a_full_disk_is_tried_again_after_a_rest() -> None:
    follower = Follower()
    log = follower.make()
    follower.follow()
    follower.request()
    follower.directory.space.is_full = True
    sent = batch_bytes(0, epoch=5)
    follower.answer(data(sent))
    follower.directory.space.is_full = False
    follower.now_ms += BACKOFF_MS
    assert position(follower)[0] == 0
    follower.answer(data(sent))
    assert content(log) == sent


def test_what_must_survive_power_loss_is_on_the_disk_before_the_leader_counts_on_it() -> None:
    """`flush.messages`: Kafka's follower flushes in the append."""
    follower = Follower()
    log = follower.make(config={"flush.messages": "1"})
    follower.follow()
    follower.request()
    follower.answer(data(batch_bytes(0, epoch=5), high_watermark=1))
    assert [each.topic_partition for each in follower.to_flush] == [NAME]
    assert follower.asks_nothing()
    assert follower.fetcher.deadline_ms() is None
    log.flush()
    assert position(follower)[0] == 1


def test_a_new_leader_is_told_of_no_record_that_is_not_on_the_disk() -> None:
    """The old one died while the flush was under way; this one would commit what it hears of."""
    follower = Follower()
    log = follower.make(config={"flush.messages": "1"})
    follower.follow()
    follower.request()
    follower.answer(data(batch_bytes(0, epoch=5)))
    follower.to_flush.clear()
    follower.follow(epoch=6, leader=3)
    assert [each.topic_partition for each in follower.to_flush] == [NAME]
    other = follower.fetchers.by_leader[3]
    assert other.request(BROKER_EPOCH, follower.now_ms) is None
    log.flush()
    request = other.request(BROKER_EPOCH, follower.now_ms)
    assert isinstance(request, FetchRequest)
    assert request.topics[0].partitions[0].fetch_offset == 1
