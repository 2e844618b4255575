"""When a follower asks, what it asks then, and which answers it takes."""

import pytest

from kraft_wire.broker.partition import Partition
from kraft_wire.model import LeaderEpoch, Offset, TopicPartition
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchableTopicResponse, FetchResponse
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from tests.broker.replication.followers import (
    BACKOFF_MS,
    BROKER_EPOCH,
    WALL_MS,
    Follower,
    asked_names,
    content,
    data,
    forgotten_names,
    id_of,
)
from tests.storage.making import batch_bytes

A, B = ("a", 0), ("b", 0)
WAITS_FOR_METADATA = [
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
]
OTHERS = [
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    4_711,
]


def two() -> Follower:
    """A follower of two partitions that has a session."""
    follower = Follower()
    follower.make(A)
    follower.make(B)
    follower.follow(A, B)
    follower.request()
    answer(follower, "a", "b")
    return follower


def answer(follower: Follower, *topics: str, error: int = 0, records: bytes = b"") -> None:
    found = [data(records, error=error)]
    responses = [
        FetchableTopicResponse(topic_id=id_of(topic), partitions=found) for topic in topics
    ]
    follower.answer_with(FetchResponse(session_id=9, responses=responses))


def test_one_request_is_under_way_at_a_time() -> None:
    follower = two()
    follower.request()
    follower.make(("c", 0))
    follower.follow(("c", 0))
    follower.now_ms += 60_000
    assert follower.asks_nothing()
    assert follower.fetcher.deadline_ms() is None
    answer(follower)
    assert asked_names(follower.request()) == [("c", 0)]


@pytest.mark.parametrize("error", [*WAITS_FOR_METADATA, *OTHERS])
def test_a_partition_that_is_refused_rests_and_the_others_go_on(error: int) -> None:
    """`replica.fetch.backoff.ms`, meanwhile it is out of the session, as Kafka has it."""
    follower = two()
    follower.request()
    answer(follower, "a", error=error)
    request = follower.request()
    assert (asked_names(request), forgotten_names(request)) == ([], [A])
    answer(follower, "b", records=batch_bytes(0, epoch=5))
    follower.now_ms += BACKOFF_MS - 1
    assert asked_names(follower.request()) == [B]
    answer(follower)
    follower.now_ms += 1
    assert asked_names(follower.request()) == [A]
    assert follower.said() == ([] if error in WAITS_FOR_METADATA else ["replica_partition_refused"])


def test_a_partition_alone_is_asked_for_again_when_it_has_rested() -> None:
    follower = Follower(replica_fetch_backoff_ms=50)
    follower.make(A)
    follower.follow(A)
    follower.request()
    answer(follower, "a", error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    follower.request()
    follower.answer_with(FetchResponse())
    assert follower.fetcher.deadline_ms() == follower.now_ms + 50
    follower.now_ms += 50
    assert asked_names(follower.request()) == [A]


def test_a_rest_lasts_although_the_log_start_moves() -> None:
    """Our retention moved it: that is told when the partition has rested."""
    follower = Follower()
    follower.make(A, [batch_bytes(0, count=5, epoch=1)], high_watermark=5)
    follower.make(B)
    follower.follow(A, B)
    follower.request()
    answer(follower, "a", "b")
    follower.now_ms += 60_000
    follower.request()
    follower.now_ms += BACKOFF_MS // 2
    answer(follower, "a", error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    follower.logs[TopicPartition(*A)].advance_log_start_offset(Offset(2))
    follower.now_ms += BACKOFF_MS - 1
    request = follower.request()
    assert (asked_names(request), forgotten_names(request)) == ([], [A])
    answer(follower)
    follower.now_ms += 1
    request = follower.request()
    assert asked_names(request) == [A]
    assert request.topics[0].partitions[0].log_start_offset == 2


def test_a_leader_that_rests_longer_than_its_partitions_is_waited_for() -> None:
    """A node that calls at the told time has something to send."""
    follower = two()
    follower.request()
    answer(follower, "a", error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    follower.request()
    follower.now_ms += BACKOFF_MS // 2
    follower.fetcher.failed(follower.now_ms, WALL_MS)
    follower.fetcher.forget((id_of("b"), 0))
    due_ms = follower.fetcher.deadline_ms()
    assert due_ms == follower.now_ms + BACKOFF_MS
    follower.now_ms = due_ms
    assert asked_names(follower.request()) == [A]


@pytest.mark.parametrize(("throttle_ms", "reason"), [(0, "missing_partition"), (5, "throttled")])
def test_a_full_answer_without_partitions_is_a_mistake_unless_it_is_throttled(
    throttle_ms: int, reason: str
) -> None:
    follower = Follower()
    follower.make(A)
    follower.follow(A)
    follower.request()
    follower.answer_with(FetchResponse(session_id=9, throttle_time_ms=throttle_ms))
    assert [fields["reason"] for _, fields in follower.lines] == [reason]
    assert follower.asks_nothing()


def test_new_metadata_ends_a_rest() -> None:
    follower = two()
    follower.request()
    answer(follower, "a", error=ErrorCode.FENCED_LEADER_EPOCH)
    follower.follow(A, epoch=6)
    request = follower.request()
    assert asked_names(request) == [A]
    assert request.topics[0].partitions[0].current_leader_epoch == 6


def test_one_leader_s_mistakes_fill_no_log() -> None:
    follower = Follower(replica_fetch_backoff_ms=0)
    names = [("t", number) for number in range(50)]
    for name in names:
        follower.make(name)
    follower.follow(*names)
    for _ in range(20):
        follower.request()
        refused = [data(error=ErrorCode.UNKNOWN_SERVER_ERROR, partition=at) for _, at in names]
        follower.answer(*refused)
    assert follower.said() == ["replica_partition_refused"]


@pytest.mark.parametrize(("passed_ms", "count"), [(999, 1), (1_000, 2)])
def test_answer_that_is_refused_as_a_whole_is_logged_once_a_second(
    passed_ms: int, count: int
) -> None:
    follower = Follower(replica_fetch_backoff_ms=0)
    follower.make(A)
    follower.follow(A)
    errors = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)
    for error in errors:
        follower.request()
        follower.answer_with(FetchResponse(error_code=error))
        follower.now_ms += passed_ms
    lines = [("replica_fetch_refused", {"leader": 2, "reason": each.name}) for each in errors]
    assert follower.lines == lines[:count]


@pytest.mark.parametrize(
    "error", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH]
)
def test_session_that_ends_is_logged_only_if_the_next_one_is_refused_too(error: ErrorCode) -> None:
    """The leader may evict a session at any time, also the one after a good answer."""
    follower = two()
    for _ in range(2):
        follower.request()
        follower.answer_with(FetchResponse(error_code=error))
        assert follower.lines == []
        follower.request()
        answer(follower, "a", "b")
    for _ in range(2):
        assert follower.lines == []
        follower.request()
        follower.answer_with(FetchResponse(error_code=error))
    assert follower.lines == [("replica_fetch_refused", {"leader": 2, "reason": error.name})]


def test_an_answer_to_a_question_of_an_older_epoch_is_not_taken() -> None:
    """The leader has been elected again meanwhile: what it said may be gone from its log."""
    follower = two()
    follower.request()
    follower.follow(A, epoch=6)
    answer(follower, "a", "b", records=batch_bytes(0, epoch=5))
    assert content(follower.logs[TopicPartition(*A)]) == b""
    assert content(follower.logs[TopicPartition(*B)]) != b""
    request = follower.request()
    assert (request.session_id, request.session_epoch) == (9, 0)
    assert [
        (
            name,
            follower.remembered[name].fetch_offset,
            follower.remembered[name].current_leader_epoch,
        )
        for name in asked_names(request)
    ] == [(B, 1, 5), (A, 0, 6)]


def test_an_answer_for_another_end_of_the_log_is_not_taken() -> None:
    follower = Follower()
    log = follower.make(A, [batch_bytes(0, count=4, epoch=5)])
    follower.follow(A)
    follower.request()
    log.truncate_to(Offset(0))
    answer(follower, "a", records=batch_bytes(4, epoch=5))
    assert content(log) == b""


def test_an_answer_about_what_is_not_followed_any_more_is_not_taken() -> None:
    follower = two()
    follower.request()
    follower.fetchers.forget(follower.partitions[TopicPartition(*A)])
    answer(follower, "a", records=batch_bytes(0, epoch=5))
    assert content(follower.logs[TopicPartition(*A)]) == b""
    assert forgotten_names(follower.request()) == [A]


def test_a_partition_that_is_deleted_before_its_flush_holds_up_no_other() -> None:
    """Its log is not flushed any more, and the others would wait for that without end."""
    follower = Follower()
    follower.make(A, config={"flush.messages": "1"})
    follower.make(B)
    follower.follow(A, B)
    follower.request()
    answer(follower, "a", "b", records=batch_bytes(0, epoch=5))
    assert follower.asks_nothing()
    follower.fetchers.forget(follower.partitions[TopicPartition(*A)])
    assert forgotten_names(follower.request()) == [A]
    answer(follower, "b")
    assert follower.fetcher.deadline_ms() is not None


def test_an_answer_about_a_topic_that_was_made_again_is_not_taken() -> None:
    follower = two()
    follower.request()
    log = follower.logs[TopicPartition(*A)]
    again = Partition("a", id_of("other"), 0, log, LeaderEpoch(5))
    follower.fetchers.follow(again, 2, follower.now_ms)
    answer(follower, "a", records=batch_bytes(0, epoch=5))
    assert content(log) == b""
    request = follower.request()
    assert (asked_names(request), forgotten_names(request)) == ([("other", 0)], [A])


def test_the_same_metadata_again_disturbs_nothing() -> None:
    follower = two()
    follower.request()
    follower.follow(A, B)
    answer(follower, "a", records=batch_bytes(0, epoch=5))
    assert follower.logs[TopicPartition(*A)].log_end_offset == 1


def test_a_partition_moves_to_another_leader() -> None:
    follower = two()
    follower.follow(A, epoch=6, leader=3)
    assert forgotten_names(follower.request()) == [A]
    other = follower.fetchers.by_leader[3].request(BROKER_EPOCH, follower.now_ms)
    assert asked_names(other) == [A]  # type: ignore[arg-type]  # a fetch


def test_idle_fetchers_of_brokers_that_are_gone_are_dropped() -> None:
    follower = two()
    follower.follow(A, B, epoch=6, leader=3)
    follower.fetchers.retain([3])
    assert list(follower.fetchers.by_leader) == [3]
    follower.fetchers.retain([])
    assert list(follower.fetchers.by_leader) == [3]


def test_a_stop_ends_everything() -> None:
    follower = two()
    follower.fetchers.stop()
    follower.fetchers.follow(follower.partitions[TopicPartition(*A)], 2, follower.now_ms)
    assert follower.fetchers.by_leader == {}


def test_places_that_were_asked_for_are_those_of_the_partition_that_asked() -> None:
    """A new epoch while ListOffsets is under way: its answer says nothing any more."""
    follower = Follower()
    log = follower.make(A, [batch_bytes(0, count=4, epoch=2)])
    follower.follow(A)
    follower.request()
    answer(follower, "a", error=ErrorCode.OFFSET_OUT_OF_RANGE)
    follower.offsets_request()
    follower.follow(A, epoch=6)
    follower.fetcher.answered(ListOffsetsResponse(), follower.now_ms, WALL_MS)
    assert log.log_end_offset == 4
    request = follower.request()
    assert request.topics[0].partitions[0].current_leader_epoch == 6


def test_what_list_offsets_does_not_answer_rests() -> None:
    follower = Follower()
    follower.make(A, [batch_bytes(0, count=4, epoch=2)])
    follower.follow(A)
    follower.request()
    answer(follower, "a", error=ErrorCode.OFFSET_OUT_OF_RANGE)
    follower.offsets_request()
    follower.fetcher.answered(ListOffsetsResponse(), follower.now_ms, WALL_MS)
    follower.request()
    assert follower.remembered == {}
    follower.answer_with(FetchResponse())
    follower.now_ms += BACKOFF_MS
    assert asked_names(follower.request()) == [A]


def test_an_unreachable_leader_is_asked_again_after_a_rest() -> None:
    follower = Follower()
    follower.make(A)
    follower.follow(A)
    follower.request()
    follower.fetcher.failed(follower.now_ms, WALL_MS)
    assert follower.asks_nothing()
    assert follower.fetcher.deadline_ms() == follower.now_ms + BACKOFF_MS
    follower.now_ms += BACKOFF_MS
    assert asked_names(follower.request()) == [A]


def test_an_unreachable_leader_is_not_asked_without_end_where_no_back_off_is_wanted() -> None:
    follower = Follower(replica_fetch_backoff_ms=0)
    follower.make(A)
    follower.follow(A)
    follower.request()
    follower.fetcher.failed(follower.now_ms, WALL_MS)
    assert follower.fetcher.deadline_ms() == follower.now_ms + 20


def test_the_cost_of_a_request_does_not_grow_with_idle_partitions() -> None:
    """KIP-227's purpose: 2,000 idle partitions cost an empty request and no look at each."""
    follower = Follower()
    names = [("t", number) for number in range(300)]
    for name in names:
        follower.make(name)
    follower.follow(*names)
    follower.request()
    follower.answer(*[data(partition=at) for _, at in names])
    follower.request()
    follower.answer(data(batch_bytes(0, epoch=5), partition=7))
    asked = follower.request()
    assert asked_names(asked) == [("t", 7)]
    assert len(asked.encode(17)) < 150


def test_records_are_appended_at_the_time_of_their_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flushes are due by the monotonic clock, new segments by that of the wall."""
    follower = two()
    follower.request()
    times: list[tuple[int, int]] = []
    append = Log.append

    def noted(log: Log, data: object, batches: object, now_ms: int, wall_ms: int) -> None:
        times.append((now_ms, wall_ms))
        append(log, data, batches, now_ms, wall_ms)  # type: ignore[arg-type]  # as they come

    monkeypatch.setattr(Log, "append", noted)
    follower.now_ms += 7
    answer(follower, "a", records=batch_bytes(0, epoch=5))
    assert times == [(follower.now_ms, WALL_MS)]
