"""Epochs whose first batches compaction has removed: the leader is asked where they began."""

from __future__ import annotations

from contextlib import suppress

import pytest

from kraft_wire.broker.replication.gap_epochs import GapEpochs, count_before_gap
from kraft_wire.model import FsyncFailed, Offset
from kraft_wire.sim.disk.files import DiskFault
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchableTopicResponse, FetchResponse
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches
from tests.broker.replication.followers import (
    BACKOFF_MS,
    REPLICA,
    WALL_MS,
    Follower,
    asked_names,
    content,
    data,
    id_of,
)
from tests.broker.replication.test_following import NAME, position
from tests.storage.making import batch_bytes

KEPT = batch_bytes(0, count=37, epoch=0)
BEHIND = batch_bytes(41, count=2, epoch=1)


def parsed(*batches: bytes) -> list[RecordBatch]:
    return list(parse_batches(bytearray(b"".join(batches))))


@pytest.mark.parametrize(
    ("sent", "end", "latest", "count"),
    [
        ([batch_bytes(37, epoch=1), batch_bytes(41, epoch=1)], 37, 0, 2),
        ([batch_bytes(41, epoch=1)], 37, 1, 1),
        ([batch_bytes(41, epoch=1)], 37, 0, 0),
        ([batch_bytes(41, epoch=1)], 37, -1, 0),
        ([batch_bytes(41, epoch=0)], 37, -1, 1),
        ([batch_bytes(37, epoch=1), batch_bytes(39, epoch=2)], 37, 1, 1),
        ([batch_bytes(38, epoch=1), batch_bytes(39, epoch=2)], 37, 1, 2),
        ([batch_bytes(38, epoch=1), batch_bytes(39, epoch=2), batch_bytes(42, epoch=4)], 37, 1, 2),
    ],
)
def test_batches_that_need_no_question_come_before_the_first_epoch_behind_a_gap(
    sent: list[bytes], end: int, latest: int, count: int
) -> None:
    assert count_before_gap(parsed(*sent), end, latest) == count


@pytest.mark.parametrize(
    ("latest", "epoch", "answers", "begins"),
    [
        (0, 1, [(0, 37)], [(1, 37)]),
        (0, 1, [(0, 41)], [(1, 41)]),
        (0, 1, [(0, 12)], [(1, 30)]),
        (0, 1, [(-1, -1)], [(1, 41)]),
        (0, 4, [(2, 40), (1, 38), (0, 33)], [(1, 33), (2, 38), (4, 40)]),
        (0, 4, [(3, 40), (1, 38), (0, 30)], [(1, 30), (3, 38), (4, 40)]),
        (0, 4, [(3, 40), (1, 30)], [(3, 30), (4, 40)]),
        (0, 4, [(3, 40), (2, 40)], [(4, 40)]),
        (0, 4, [(3, 40), (-1, -1)], [(4, 40)]),
        (0, 4, [(3, 41)], [(4, 41)]),
        (-1, 4, [(3, 35), (2, 35)], [(4, 35)]),
        (3, 4, [(3, 40)], [(4, 40)]),
        (0, 4, [(4, 40)], [(4, 40)]),
    ],
    ids=[
        "where the epoch before ended",
        "at its first batch",
        "not before our end",
        "unknown to the leader",
        "several epochs in the gap, none next to another",
        "the oldest begins at our end",
        "the gap begins within an epoch that we lack",
        "the leader's log begins later",
        "an epoch of which only the end is known",
        "the first batch is left",
        "no epoch of ours, and a leader whose log begins later",
        "the epoch before is ours",
        "a leader that names a newer epoch than asked",
    ],
)
def test_epochs_in_a_gap_begin_where_the_leader_says(
    latest: int, epoch: int, answers: list[tuple[int, int]], begins: list[tuple[int, int]]
) -> None:
    """Our log ends at 30, and the batch behind the gap begins at 41."""
    (batch,) = parsed(batch_bytes(41, epoch=epoch))
    gap = GapEpochs(Offset(30), latest, batch)
    asked = epoch - 1
    for each in answers:
        assert not gap.is_known
        assert gap.asked_epoch == asked
        gap.take(*each)
        asked = each[0] - 1
    assert gap.is_known
    assert [(found.epoch, found.offset) for found in gap.begins] == begins


def test_no_more_than_a_thousand_epochs_of_a_gap_are_asked_for() -> None:
    (batch,) = parsed(batch_bytes(1 << 20, epoch=1 << 20))
    gap = GapEpochs(Offset(0), 0, batch)
    questions = 0
    while not gap.is_known:
        gap.take(gap.asked_epoch, gap.begins[0].offset - 1)
        questions += 1
    assert (questions, len(gap.begins)) == (1_000, 1_000)


def asked_epoch(follower: Follower) -> int:
    """The epoch whose end is asked for now."""
    return int(follower.epoch_request().topics[0].partitions[0].leader_epoch)


def asking() -> tuple[Follower, Log]:
    """A follower whose log ends at 37, and whose leader has sent the batch at 41."""
    follower = Follower()
    log = follower.make(batches=[KEPT])
    follower.follow(epoch=5)
    follower.request()
    follower.answer(data(BEHIND, high_watermark=43))
    assert content(log) == KEPT
    return follower, log


def test_an_epoch_begins_where_the_leader_says_the_one_before_ended() -> None:
    """It is asked before the batch is appended, which is then fetched again."""
    follower, log = asking()
    request = follower.epoch_request()
    assert request.replica_id == REPLICA
    (topic,) = request.topics
    (asked,) = topic.partitions
    assert (topic.topic, asked.partition, asked.current_leader_epoch) == ("t", 0, 5)
    assert asked.leader_epoch == 0
    follower.answer_epoch(0, 37)
    assert position(follower) == (37, 0, 5)
    more = batch_bytes(43, epoch=1)
    follower.answer(data(BEHIND, more, high_watermark=44))
    assert content(log) == KEPT + BEHIND + more
    assert log.epochs.entries == [(0, 0), (1, 37)]
    assert log.end_offset_for_epoch(0) == (37, 0)
    assert position(follower) == (44, 1, 5)


def test_batches_before_the_gap_are_appended_at_once() -> None:
    follower = Follower()
    log = follower.make()
    follower.follow(epoch=5)
    follower.request()
    follower.answer(data(KEPT, BEHIND, high_watermark=43))
    assert (content(log), log.high_watermark) == (KEPT, 37)
    follower.epoch_request()
    follower.answer_epoch(0, 40)
    assert position(follower) == (37, 0, 5)
    second = batch_bytes(50, epoch=3)
    follower.answer(data(BEHIND, second, high_watermark=51))
    assert content(log) == KEPT + BEHIND
    assert asked_epoch(follower) == 2
    follower.answer_epoch(2, 46)
    assert asked_epoch(follower) == 1
    follower.answer_epoch(1, 44)
    assert position(follower) == (43, 1, 5)
    follower.answer(data(second, high_watermark=51))
    assert log.epochs.entries == [(0, 0), (1, 40), (2, 44), (3, 46)]


def test_a_gap_that_another_compaction_widens_is_asked_about_again() -> None:
    follower, log = asking()
    follower.epoch_request()
    follower.answer_epoch(0, 39)
    follower.request()
    later = batch_bytes(60, epoch=2)
    follower.answer(data(later))
    assert content(log) == KEPT
    assert asked_epoch(follower) == 1
    follower.answer_epoch(1, 50)
    follower.epoch_request()
    follower.answer_epoch(0, 39)
    follower.request()
    follower.answer(data(later))
    assert log.epochs.entries == [(0, 0), (1, 39), (2, 50)]


def test_a_batch_before_the_epochs_begin_is_asked_about_again() -> None:
    """A leader contradicts its answer; this must not end the process."""
    follower, log = asking()
    follower.epoch_request()
    follower.answer_epoch(0, 40)
    follower.request()
    earlier = batch_bytes(39, epoch=1)
    follower.answer(data(earlier))
    assert content(log) == KEPT
    follower.epoch_request()
    follower.answer_epoch(0, 40)
    follower.request()
    follower.answer(data(earlier))
    assert log.epochs.entries == [(0, 0), (1, 39)]


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_a_question_that_is_refused_is_asked_again_after_a_rest(error: int) -> None:
    follower, log = asking()
    follower.epoch_request()
    follower.answer_epoch(-1, -1, error=error)
    assert content(log) == KEPT
    follower.request()
    assert NAME not in follower.remembered
    follower.answer()
    follower.now_ms += BACKOFF_MS
    assert position(follower) == (37, 0, 5)
    follower.answer(data(BEHIND))
    assert asked_epoch(follower) == 0


def test_questions_of_both_kinds_are_asked_one_kind_after_the_other() -> None:
    follower = Follower()
    for name in ("a", "b"):
        follower.make((name, 0), [KEPT])
    follower.follow(("a", 0), ("b", 0), epoch=5)
    follower.request()
    answers = {"a": data(BEHIND), "b": data(error=ErrorCode.OFFSET_OUT_OF_RANGE)}
    responses = [
        FetchableTopicResponse(topic_id=id_of(name), partitions=[each])
        for name, each in answers.items()
    ]
    follower.answer_with(FetchResponse(session_id=9, responses=responses))
    assert [each.topic for each in follower.epoch_request().topics] == ["a"]
    assert follower.asks_nothing()
    follower.answer_epoch(0, 37, name="a")
    assert [each.name for each in follower.offsets_request().topics] == ["b"]
    follower.answer_offset(20, name="b")
    assert asked_names(follower.request()) == [("b", 0)]
    assert sorted(follower.remembered) == [("a", 0), ("b", 0)]


def test_what_is_noted_is_durable_before_the_batch() -> None:
    """A crash keeps what was flushed: recovery must not take the batch for the epoch's begin."""
    follower, log = asking()
    follower.epoch_request()
    follower.answer_epoch(0, 38)
    follower.request()
    follower.answer(data(BEHIND, high_watermark=43))
    log.flush()
    again = LogDirectory.open(follower.fs.crashed([]), "/disk")
    again.load_logs(lambda topic: LogConfig(), WALL_MS)
    assert not again.damaged
    assert again.logs[NAME].epochs.entries == [(0, 0), (1, 38)]


def test_a_full_disk_leaves_no_epoch_of_a_batch_that_was_not_written() -> None:
    for call in range(1, 99):
        follower, log = asking()
        follower.epoch_request()
        follower.answer_epoch(0, 38)
        follower.request()
        follower.fs.fault = (follower.fs.calls_count + call, DiskFault.ENOSPC)
        with suppress(FsyncFailed):
            follower.answer(data(BEHIND))
        follower.fs.fault = None
        if follower.fs.failed_operation == "fsync":
            continue  # which ends the process
        has_batch = content(log) == KEPT + BEHIND
        assert log.epochs.entries == ([(0, 0), (1, 38)] if has_batch else [(0, 0)]), call
        if follower.fs.failed_operation is None:
            assert has_batch
            return
    raise AssertionError("the fault was always met")
