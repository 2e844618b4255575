"""The topic of a coordinator is asked for once at a time, and again after an answer or a while."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.broker.coordination.topic import CoordinatorTopicCreation
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.wire.generated.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.message import Message

Answered = Callable[[Message, int], None]


class Controller:
    """Keeps what it is asked; a test answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[CreateTopicsRequest, Answered]] = []
        self.creation = CoordinatorTopicCreation("__consumer_offsets", self.ask)

    def ask(self, request: Message, answered: Answered) -> None:
        assert isinstance(request, CreateTopicsRequest)
        self.asked.append((request, answered))

    def requests_until(self, now_ms: int) -> int:
        """Have the topic asked for at a time; return how often it was, in all."""
        self.creation.request(BrokerSettings(), now_ms)
        return len(self.asked)

    def answers(self, error: E, words: str | None = None) -> None:
        result = CreatableTopicResult(
            name="__consumer_offsets", error_code=error, error_message=words
        )
        self.asked[-1][1](CreateTopicsResponse(topics=[result]), 0)


def test_request_without_an_answer_is_sent_again_after_half_a_minute() -> None:
    controller = Controller()
    found = [controller.requests_until(now_ms) for now_ms in (100, 101, 30_099, 30_100, 60_099)]
    assert found == [1, 1, 1, 2, 2]
    request, _ = controller.asked[0]
    assert request.timeout_ms == 30_000
    assert [each.name for each in request.topics] == ["__consumer_offsets"]


@pytest.mark.parametrize("error", [E.NONE, E.INVALID_REPLICATION_FACTOR, E.TOPIC_ALREADY_EXISTS])
def test_request_that_was_answered_may_be_sent_again_at_once(error: E) -> None:
    controller = Controller()
    assert controller.requests_until(100) == 1
    controller.answers(error)
    assert controller.requests_until(101) == 2


def test_reason_of_a_failure_is_kept_until_the_topic_can_be_made() -> None:
    controller = Controller()
    assert controller.creation.failure is None
    controller.requests_until(1)
    controller.answers(E.INVALID_REPLICATION_FACTOR, "too few brokers")
    assert controller.creation.failure == "too few brokers"
    controller.requests_until(2)
    assert controller.creation.failure == "too few brokers", "not answered yet"
    controller.answers(E.NONE)
    assert controller.creation.failure is None
