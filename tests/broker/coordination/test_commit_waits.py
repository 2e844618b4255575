"""What waits for a commit: until when, for which offset, and what it hears with which error."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.coordination.append_errors import coordinator_error
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.topic import CoordinatorTopic
from kraft_wire.broker.purgatory import DelayedOperation
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.heartbeat import HeartbeatResponse
from tests.broker.small_broker import context

UNAVAILABLE = {E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_ENOUGH_REPLICAS, E.REQUEST_TIMED_OUT}
UNAVAILABLE |= {E.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
ELSEWHERE = {E.NOT_LEADER_OR_FOLLOWER, E.KAFKA_STORAGE_ERROR}
INTERNAL = {E.MESSAGE_TOO_LARGE, E.RECORD_LIST_TOO_LARGE, E.INVALID_FETCH_SIZE}


class Waiting:
    """Waits over a purgatory that keeps what is parked."""

    def __init__(self) -> None:
        self.parked: list[DelayedOperation] = []
        self.completed: list[Any] = []
        self.now_ms = 0
        topic = CoordinatorTopic("__state", lambda: 5, lambda: 700, lambda: 1)
        self.waits = CommitWaits(
            topic,
            self,  # type: ignore[arg-type]  # the two methods that are called
            lambda reply_to, message: self.completed.append((reply_to, message)),
            lambda: self.now_ms,
        )
        self.ids = 0

    def new_internal_id(self) -> int:
        self.ids -= 1
        return self.ids

    def park(self, operation: DelayedOperation) -> None:
        self.parked.append(operation)


@pytest.mark.parametrize(("timeout_ms", "deadline_ms"), [(None, 800), (60, 160), (9_000, 9_100)])
def test_step_waits_as_long_as_it_says_or_the_topic(
    timeout_ms: int | None, deadline_ms: int
) -> None:
    waiting = Waiting()
    waiting.waits.await_commit(3, 42, ClockReading(100, 5_000), print, timeout_ms)
    waiting.waits.await_commit(3, 43, ClockReading(100, 5_000), print)
    first, second = waiting.parked
    assert (first.deadline_ms, second.deadline_ms) == (deadline_ms, 800)
    assert first.required == {TopicPartition("__state", 3): 42}
    ids = [each.reply_to.connection_id for each in waiting.parked]
    assert ids == [-1, -2], "no connection's end ends the wait"


@pytest.mark.parametrize(("now_ms", "then_ms"), [(90, 100), (100, 100), (750, 750)])
def test_step_hears_at_the_time_of_the_commit(now_ms: int, then_ms: int) -> None:
    """Never before it began to wait: its timers are set from this time on."""
    waiting = Waiting()
    heard: list[tuple[E, ClockReading]] = []
    waiting.waits.await_commit(3, 42, ClockReading(100, 5_000), lambda *each: heard.append(each))
    waiting.now_ms = now_ms
    waiting.parked[0].finish({})
    assert heard == [(E.NONE, ClockReading(then_ms, 5_000))]


@pytest.mark.parametrize("error", list(E))
def test_errors_are_those_of_apaches_coordinators(error: E) -> None:
    """`CoordinatorOperationExceptionHelper` and `TransactionStateManager` of 4.3.1."""
    expected = error
    if error in UNAVAILABLE:
        expected = E.COORDINATOR_NOT_AVAILABLE
    elif error in ELSEWHERE:
        expected = E.NOT_COORDINATOR
    elif error in INTERNAL:
        expected = E.UNKNOWN_SERVER_ERROR
    assert coordinator_error(error) is expected
    waiting = Waiting()
    heard: list[E] = []
    waiting.waits.await_commit(3, 42, ClockReading(0, 0), lambda error, _: heard.append(error))
    waiting.parked[0].finish({TopicPartition("__state", 3): error})
    assert heard == [expected]


def test_client_is_answered_with_the_errors_of_its_partitions() -> None:
    waiting = Waiting()
    asked = context(4, now_ms=300)
    given: list[dict[int, E]] = []

    def answer(failed: Any) -> HeartbeatResponse:
        given.append(dict(failed))
        return HeartbeatResponse()

    assert waiting.waits.answer_when_committed(asked, {1: 10, 4: 20}, answer) is PARKED
    (operation,) = waiting.parked
    places = {TopicPartition("__state", 1): 10, TopicPartition("__state", 4): 20}
    assert (operation.reply_to, operation.deadline_ms) == (asked.reply_to, 1_000)
    assert operation.required == places
    operation.finish({TopicPartition("__state", 4): E.NOT_LEADER_OR_FOLLOWER})
    assert given == [{4: E.NOT_COORDINATOR}]
    assert waiting.completed == [(asked.reply_to, HeartbeatResponse())]
