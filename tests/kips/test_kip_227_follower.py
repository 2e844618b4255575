"""KIP-227 on the client's side: what a follower sends its leader, sentence by sentence.

The leader is either scripted or the session cache that `test_kip_227.py` holds against the KIP.
"""

import pytest

from kraft_wire.broker.replication.fetch_session_handler import FetchPosition, FetchSessionHandler
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchableTopicResponse, FetchRequest, FetchResponse
from tests.broker.fetch_client import IDS_VERSION, FakeBroker, topic_id
from tests.broker.replication.followers import (
    BACKOFF_MS,
    Follower,
    asked_names,
    data,
    forgotten_names,
    id_of,
)
from tests.storage.making import batch_bytes

A, B, C = ("a", 0), ("b", 0), ("b", 1)
SESSION = 9
INT32_MAX = (1 << 31) - 1


def following(*names: tuple[str, int]) -> Follower:
    """A follower of partitions, which has sent nothing yet."""
    follower = Follower()
    for name in names:
        follower.make(name)
    follower.follow(*names)
    return follower


def in_session(*names: tuple[str, int]) -> Follower:
    """A follower that has a session over partitions."""
    follower = following(*names)
    follower.request()
    follower.answer_with(full_answer(*names))
    return follower


def full_answer(*names: tuple[str, int], session_id: int = SESSION) -> FetchResponse:
    """An answer with each partition, and nothing in it."""
    response = FetchResponse(session_id=session_id)
    for topic, partition in names:
        response.responses.append(answered(topic, partition))
    return response


def answered(topic: str, partition: int, *batches: bytes) -> FetchableTopicResponse:
    return FetchableTopicResponse(
        topic_id=id_of(topic), partitions=[data(*batches, partition=partition)]
    )


def meta(request: FetchRequest) -> tuple[int, int]:
    """Session id and epoch."""
    return request.session_id, request.session_epoch


def test_the_first_request_is_full_and_asks_for_a_session() -> None:
    """227-REQ-04, 227-REQ-12, 227-ID-02."""
    request = following(A, B, C).request()
    assert meta(request) == (0, 0)
    assert asked_names(request) == [A, B, C]
    assert forgotten_names(request) == []


def test_requests_are_incremental_once_the_leader_named_a_session() -> None:
    """227-REQ-06, 227-REQ-10, 227-RESP-04, 227-RESP-08, 227-EPOCH-08: its first epoch is 1."""
    follower = in_session(A, B, C)
    assert meta(follower.request()) == (SESSION, 1)


def test_requests_stay_full_while_no_session_is_named() -> None:
    """227-RESP-03, 227-RESP-07, 227-REQ-10."""
    follower = following(A, B)
    for _ in range(3):
        request = follower.request()
        assert meta(request) == (0, 0)
        assert asked_names(request) == [A, B]
        follower.answer_with(full_answer(A, B, session_id=0))


def test_the_epoch_rises_by_one_with_each_request() -> None:
    """227-EPOCH-03, 227-RESP-05: no answer says it, the client counts."""
    follower = in_session(A)
    for epoch in range(1, 6):
        assert meta(follower.request()) == (SESSION, epoch)
        follower.answer(session_id=SESSION)


def test_after_the_largest_epoch_comes_one() -> None:
    """227-EPOCH-04."""
    follower = in_session(A)
    follower.fetcher._session.epoch = INT32_MAX
    assert meta(follower.request()) == (SESSION, INT32_MAX)
    follower.answer(session_id=SESSION)
    assert meta(follower.request()) == (SESSION, 1)


def test_a_request_without_changes_lists_no_partitions() -> None:
    """227-INC-04, 227-RESP-13: and an answer without partitions changes nothing."""
    follower = in_session(A, B, C)
    for _ in range(3):
        request = follower.request()
        assert (asked_names(request), forgotten_names(request)) == ([], [])
        follower.answer(session_id=SESSION)


def test_a_partition_is_listed_when_its_position_changes() -> None:
    """227-INC-01, 227-INC-06: fetch offset, log start offset, and both epochs."""
    follower = in_session(A, B)
    follower.request()
    follower.answer_with(
        FetchResponse(session_id=SESSION, responses=[answered("b", 0, batch_bytes(0, epoch=5))])
    )
    request = follower.request()
    assert asked_names(request) == [B]
    (asked,) = request.topics[0].partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (1, 5)
    follower.answer(session_id=SESSION)
    follower.follow(A, epoch=6)
    request = follower.request()
    assert asked_names(request) == [A]
    assert request.topics[0].partitions[0].current_leader_epoch == 6


def test_a_log_start_that_our_own_retention_moved_is_told() -> None:
    """227-INC-01."""
    follower = in_session(A, B)
    follower.request()
    follower.answer_with(
        FetchResponse(
            session_id=SESSION, responses=[answered("a", 0, batch_bytes(0, count=4, epoch=5))]
        )
    )
    follower.request()
    follower.answer(session_id=SESSION)
    log = follower.logs[next(iter(follower.logs))]
    log.high_watermark = log.log_end_offset
    log.advance_log_start_offset(log.log_end_offset)
    follower.now_ms += 1_000
    request = follower.request()
    assert asked_names(request) == [A]
    assert request.topics[0].partitions[0].log_start_offset == 4


def test_a_new_partition_is_listed_and_a_dropped_one_forgotten() -> None:
    """227-INC-02, 227-INC-03, 227-INC-05 (maxBytes 0: superseded)."""
    follower = in_session(A, B)
    follower.make(C)
    follower.follow(C)
    follower.fetchers.forget(follower.partitions[next(iter(follower.partitions))])
    request = follower.request()
    assert (asked_names(request), forgotten_names(request)) == ([C], [A])
    follower.answer(data(partition=1), topic="b", session_id=SESSION)
    request = follower.request()
    assert (asked_names(request), forgotten_names(request)) == ([], [])


def test_a_partition_that_was_dropped_and_is_back_before_it_was_told_stays() -> None:
    """227-INC-09: listed and forgotten at once it would end up forgotten."""
    follower = in_session(A, B)
    partition = follower.partitions[next(iter(follower.partitions))]
    follower.fetchers.forget(partition)
    follower.follow(A)
    request = follower.request()
    assert (asked_names(request), forgotten_names(request)) == ([], [])


def test_a_session_whose_last_partition_goes_is_told_so_and_then_nothing_is_asked() -> None:
    """227-INC-07: the leader closes it and says so with session id 0."""
    follower = in_session(A)
    follower.fetchers.forget(follower.partitions[next(iter(follower.partitions))])
    request = follower.request()
    assert (meta(request), forgotten_names(request)) == ((SESSION, 1), [A])
    follower.answer(session_id=0)
    assert follower.asks_nothing()
    assert follower.fetcher.deadline_ms() is None
    follower.follow(A)
    assert meta(follower.request()) == (0, 0)


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, SESSION),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, SESSION),
    ],
)
def test_after_an_error_of_the_session_a_full_request_follows(error: ErrorCode, named: int) -> None:
    """227-ERR-01, 227-ERR-02, 227-ERR-03, 227-ERR-05, 227-REQ-05, 227-REQ-11.

    It names the session that the leader may still have, which closes it.
    """
    follower = in_session(A, B)
    follower.request()
    follower.answer_with(FetchResponse(error_code=error))
    if error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
        assert follower.asks_nothing()  # as Kafka: it is an error of every partition
        follower.now_ms += BACKOFF_MS
    request = follower.request()
    assert (meta(request), asked_names(request)) == ((named, 0), [A, B])


def test_a_session_error_that_comes_again_costs_a_rest() -> None:
    """227-RESP-01: a leader that answers nothing else is not asked without end."""
    follower = in_session(A)
    error = FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    follower.request()
    follower.answer_with(error)
    follower.request()
    follower.answer_with(error)
    assert follower.asks_nothing()
    assert follower.fetcher.deadline_ms() == follower.now_ms + BACKOFF_MS
    follower.now_ms += BACKOFF_MS
    assert meta(follower.request()) == (SESSION, 0)


@pytest.mark.parametrize(
    "error", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNSUPPORTED_VERSION, 4_711]
)
def test_any_other_error_of_the_whole_is_one_of_every_partition(error: int) -> None:
    """227-RESP-01, 227-RESP-02."""
    follower = in_session(A, B)
    follower.request()
    follower.answer_with(FetchResponse(error_code=error))
    assert follower.asks_nothing()
    follower.now_ms += BACKOFF_MS
    assert asked_names(follower.request()) == [A, B]


@pytest.mark.parametrize("names", [[A], [A, B, C], [A, A], []])
def test_a_full_answer_about_other_partitions_is_not_taken(names: list[tuple[str, int]]) -> None:
    """227-REQ-12, 227-REQ-13: a full answer has each partition of its request, once."""
    follower = following(A, B)
    follower.request()
    follower.answer_with(full_answer(*names))
    assert follower.asks_nothing()
    follower.now_ms += BACKOFF_MS
    assert meta(follower.request()) == (0, 0)


@pytest.mark.parametrize("name", [C, ("c", 0)])
def test_an_incremental_answer_about_a_stranger_ends_the_session(name: tuple[str, int]) -> None:
    """227-REQ-13: nothing of such an answer is believed."""
    follower = in_session(A, B)
    follower.request()
    response = full_answer(name, session_id=SESSION)
    response.responses.append(answered("b", 0, batch_bytes(0, epoch=5)))
    follower.answer_with(response)
    assert all(log.log_end_offset == 0 for log in follower.logs.values())
    follower.now_ms += BACKOFF_MS
    assert meta(follower.request()) == (SESSION, 0)


def test_an_answer_of_another_session_ends_the_session() -> None:
    """227-ID-01: the id names the session that the request was in."""
    follower = in_session(A)
    follower.request()
    follower.answer(session_id=SESSION + 1)
    follower.now_ms += BACKOFF_MS
    assert meta(follower.request()) == (SESSION, 0)


def test_a_session_that_the_leader_ends_is_asked_for_again() -> None:
    """227-RESP-03: session id 0 in an incremental answer."""
    follower = in_session(A)
    follower.request()
    follower.answer(data(batch_bytes(0, epoch=5)), topic="a", session_id=0)
    request = follower.request()
    assert meta(request) == (0, 0)
    assert request.topics[0].partitions[0].fetch_offset == 1


def test_a_throttled_full_answer_is_no_answer() -> None:
    """227-RESP-15."""
    follower = following(A)
    follower.request()
    follower.answer_with(FetchResponse(throttle_time_ms=100))
    follower.now_ms += BACKOFF_MS
    assert meta(follower.request()) == (0, 0)


def test_a_lost_answer_ends_the_session() -> None:
    """227-EPOCH-05: whether the leader counted the request is not known."""
    follower = in_session(A, B)
    follower.request()
    follower.fetcher.failed(follower.now_ms, 0)
    assert follower.asks_nothing()
    follower.now_ms += BACKOFF_MS
    request = follower.request()
    assert (meta(request), asked_names(request)) == ((SESSION, 0), [A, B])


def test_client_and_cache_agree_for_a_long_time() -> None:
    """227-INC-01, 227-INC-02, 227-INC-03, 227-EPOCH-03: what was told is what is remembered."""
    names = [("t", number) for number in range(20)]
    broker, client = FakeBroker(names), FetchSessionHandler()
    for partition in broker.partitions.values():
        partition.high_watermark = 1_000_000
    for step in range(400):
        name = names[step * 7 % 20]
        key = (topic_id(name[0]), name[1])
        if step % 5 == 4:
            client.drop(key)
        else:
            client.want(key, FetchPosition("t", step, 0, 5, 5, 1 << 20))
        request = FetchRequest()
        client.fill(request)
        context = broker.begin(request, IDS_VERSION, now_ms=step, follower=True)
        assert not isinstance(context, ErrorCode), step
        known = {each.key: each.params.fetch_offset for each in context.to_read()}
        assert known == {
            each: told.fetch_offset for each, told in client.session_partitions.items()
        }
        assert client.take(context.finish(broker.read(context, 100), step)) is None
    assert client.epoch == 400


@pytest.mark.parametrize(
    ("throttle_ms", "names", "reason"),
    [
        (0, (), "missing_partition"),
        (5, (), "throttled"),
        (5, (A,), "missing_partition"),
        (5, (A, B), None),
        (0, (A, B), None),
        (0, (A, B, C), "unexpected_partition"),
        (0, (A, B, B), "unexpected_partition"),
    ],
)
def test_full_answer_has_each_partition_once(
    throttle_ms: int, names: tuple[tuple[str, int], ...], reason: str | None
) -> None:
    """227-RESP: a throttled answer without any partition is no answer (KIP-219)."""
    follower = following(A, B)
    follower.request()
    answer = full_answer(*names)
    answer.throttle_time_ms = throttle_ms
    assert follower.fetcher._session._wrong_set(answer) == reason
