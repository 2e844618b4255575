"""Internal topics that a heartbeat lacks: what the controller is asked, what the member is told.

As `createStreamsInternalTopics` of 4.3.1's `DefaultAutoTopicCreationManager` does it, and the end
of `KafkaApis.handleStreamsGroupHeartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraft_wire.broker.groups.streams.topology.failures import GroupStatus
from kraft_wire.broker.groups.streams.topology.internal_topics import (
    InternalTopicCreation,
    create_internal_topics,
)
from kraft_wire.broker.metadata.topic_creation import ANSWER_WITHIN_MS
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse
from kraft_wire.wire.message import Message

KEPT_MS = 10_000
MISSING = "Internal topics are missing: a, b"


class Heartbeats:
    """The topic creation of one broker; its controller answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Callable[[Message, int], None]]] = []
        self.creation = InternalTopicCreation(lambda *each: self.asked.append(each))

    def beat(
        self,
        *names: str,
        now_ms: int = 0,
        may_create: Callable[[str], bool] | None = None,
        status: int = GroupStatus.MISSING_INTERNAL_TOPICS,
    ) -> list[tuple[int, str]]:
        """Let a member's heartbeat lack topics; return the status that it is told."""
        told = Status(status_code=status, status_detail=MISSING)
        response = StreamsGroupHeartbeatResponse(status=[told])
        create_internal_topics(
            response,
            {name: CreatableTopic(name=name, num_partitions=3) for name in names},
            may_create=may_create,
            creation=self.creation,
            errors_kept_ms=KEPT_MS,
            now_ms=now_ms,
        )
        return [(each.status_code, each.status_detail) for each in response.status or ()]

    def names(self) -> list[list[str]]:
        return [[topic.name for topic in request.topics] for request, _ in self.asked]

    def answer(self, number: int, now_ms: int, **errors: str | None) -> None:
        """Let the controller answer a request: topics with these messages have failed."""
        request, answered = self.asked[number]
        results = [
            CreatableTopicResult(
                name=topic.name,
                error_code=ErrorCode.INVALID_REPLICATION_FACTOR if topic.name in errors else 0,
                error_message=errors.get(topic.name),
            )
            for topic in request.topics
        ]
        answered(CreateTopicsResponse(topics=results), now_ms)


def test_topics_are_requested_as_the_topology_wants_them() -> None:
    beats = Heartbeats()
    assert beats.beat("a", "b") == [(3, MISSING)]
    ((request, _),) = beats.asked
    assert [(each.name, each.num_partitions) for each in request.topics] == [("a", 3), ("b", 3)]
    assert request.timeout_ms == 30_000


def test_topics_are_requested_once_at_a_time() -> None:
    beats = Heartbeats()
    beats.beat("a")
    beats.beat("a", "b", now_ms=1)
    assert beats.names() == [["a"], ["b"]]
    beats.answer(0, 3)
    beats.beat("a", now_ms=4)
    assert beats.names() == [["a"], ["b"], ["a"]]


def test_an_error_is_told_and_holds_back_the_next_request_for_two_heartbeats() -> None:
    beats = Heartbeats()
    beats.beat("a", "b")
    beats.answer(0, 100, a="Too many.")
    told = [(3, f"{MISSING}; Creation failed: a (Too many.).")]
    assert beats.beat("a", "b", now_ms=101) == told
    assert beats.names() == [["a", "b"], ["b"]]
    assert beats.beat("a", now_ms=100 + KEPT_MS - 1) == told
    assert beats.beat("a", now_ms=100 + KEPT_MS) == [(3, MISSING)]
    assert beats.names() == [["a", "b"], ["b"], ["a"]]


@pytest.mark.parametrize("message", [None, ""])
def test_an_error_without_words_has_kafkas_own(message: str | None) -> None:
    """As `AutoTopicCreationManager.cacheTopicCreationErrorsFromResponse` of 4.3.1."""
    beats = Heartbeats()
    beats.beat("a")
    beats.answer(0, 0, a=message)
    ((_, detail),) = beats.beat("a")
    assert detail == (
        f"{MISSING}; Creation failed: a (Replication factor is below 1 or larger than the number of"
        " available brokers.)."
    )


def test_three_errors_are_shown_and_the_others_counted() -> None:
    beats = Heartbeats()
    beats.beat(*"abcde")
    beats.answer(0, 0, a="1", b="2", c="3", d="4", e="5")
    ((_, detail),) = beats.beat(*"abcde")
    assert detail == f"{MISSING}; Creation failed: a (1), b (2), c (3) and 2 more."


@pytest.mark.parametrize(("names", "more"), [("abc", ""), ("abcd", " and 1 more")])
def test_others_are_counted_where_there_are_some(names: str, more: str) -> None:
    beats = Heartbeats()
    beats.beat(*names)
    beats.answer(0, 0, **dict.fromkeys(names, "no"))
    ((_, detail),) = beats.beat(*names)
    assert detail == f"{MISSING}; Creation failed: a (no), b (no), c (no){more}."


def test_errors_are_told_to_members_that_lack_topics_only() -> None:
    beats = Heartbeats()
    beats.beat("a")
    beats.answer(0, 0, a="no")
    assert beats.beat("a", status=GroupStatus.ASSIGNMENT_DELAYED) == [(5, MISSING)]


def test_an_answer_that_comes_late_is_an_answer_too() -> None:
    beats = Heartbeats()
    beats.beat("a")
    beats.beat("a", now_ms=60_000)
    beats.answer(0, 60_001, a="no")
    assert beats.beat("a", now_ms=60_002) == [(3, f"{MISSING}; Creation failed: a (no).")]


def test_a_controller_that_does_not_answer_counts_as_an_error_after_a_minute() -> None:
    beats = Heartbeats()
    beats.beat("a")
    assert beats.beat("a", now_ms=59_999) == [(3, MISSING)]
    ((_, detail),) = beats.beat("a", now_ms=60_000)
    assert detail == (
        f"{MISSING}; Creation failed: a (CreateTopicsRequest to controller timed out)."
    )
    assert beats.beat("a", now_ms=60_000 + KEPT_MS) == [(3, MISSING)]
    assert beats.names() == [["a"], ["a"]]


def test_an_error_that_nobody_asked_for_in_time_is_not_told() -> None:
    beats = Heartbeats()
    beats.beat("a")
    assert beats.beat("a", now_ms=60_000 + KEPT_MS) == [(3, MISSING)]


def test_a_client_without_the_right_creates_none_of_the_topics() -> None:
    beats = Heartbeats()
    told = beats.beat("a", "b", "c", may_create=lambda name: name == "b")
    assert told == [(3, f"{MISSING}; Unauthorized to CREATE on topics a, c.")]
    assert beats.names() == []


def test_a_missing_right_is_told_beside_another_status() -> None:
    beats = Heartbeats()
    told = beats.beat("a", may_create=lambda _: False, status=GroupStatus.ASSIGNMENT_DELAYED)
    assert told == [(5, MISSING), (3, "Unauthorized to CREATE on topics a.")]


def test_a_client_with_the_right_creates_them() -> None:
    beats = Heartbeats()
    assert beats.beat("a", may_create=lambda _: True) == [(3, MISSING)]
    assert beats.names() == [["a"]]


def test_a_heartbeat_that_lacks_nothing_asks_for_nothing() -> None:
    beats = Heartbeats()
    assert beats.beat(may_create=lambda _: False) == [(3, MISSING)]
    assert beats.names() == []


def test_a_thousand_errors_are_kept() -> None:
    beats = Heartbeats()
    names = [f"t{number}" for number in range(1_200)]
    for number, name in enumerate(names):
        beats.beat(name, now_ms=number)
        beats.answer(number, number, **{name: "no"})
    kept = beats.creation.errors(names, 1_200)
    assert list(kept) == names[200:]


def test_a_request_that_was_answered_is_not_told_to_have_timed_out() -> None:
    """Of two requests only the one without an answer is noted as failed."""
    beats = Heartbeats()
    beats.beat("a")
    beats.beat("b")
    beats.answer(0, 100)
    told = [(GroupStatus.MISSING_INTERNAL_TOPICS, MISSING)]
    assert beats.beat("a", now_ms=ANSWER_WITHIN_MS) == told
    ((_, detail),) = beats.beat("b", now_ms=ANSWER_WITHIN_MS)
    assert "CreateTopicsRequest to controller timed out" in detail


def test_errors_of_topics_that_no_member_lacks_any_more_are_forgotten() -> None:
    """`ExpiringErrorCache`: what is over is dropped when the next error comes."""
    beats = Heartbeats()
    beats.beat("a")
    beats.answer(0, 100, a="Too many.")
    beats.beat("b", now_ms=100 + KEPT_MS - 1)
    beats.answer(1, 100 + KEPT_MS - 1, b="Too few.")
    assert list(beats.creation._errors) == ["a", "b"]
    beats.beat("c", now_ms=100 + KEPT_MS)
    beats.answer(2, 100 + KEPT_MS, c="None.")
    assert list(beats.creation._errors) == ["b", "c"]
