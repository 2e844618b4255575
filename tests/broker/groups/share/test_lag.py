"""The lag of share partitions, whatever becomes of the question to their leader."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.broker.end_offsets import EndOffsets
from kraft_wire.broker.inter_broker import BrokerRequests
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionState
from kraft_wire.metadata.image import TopicImage
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraft_wire.wire.json_form import message_to_json
from tests.broker.groups.harness import CountingChance, Harness, image_of, partition_led
from tests.broker.groups.harness import topic_id_of as id_of
from tests.broker.groups.share.lag_questions import (
    SEEDS,
    Answer,
    Question,
    ask_apache,
    question,
    recorded,
)
from tests.broker.groups.test_describe_share_group_offsets import describing
from tests.broker.groups.test_share_group_heartbeat import with_topic

LEADER = 1
NOBODY = -1


def ours(asked: Question) -> Answer:
    """Our broker's pauses and response."""
    harness = with_topic(len(asked["states"]))
    ends = EndOffsets(lambda: harness.image, CountingChance())
    harness.share_states = SimpleNamespace(end_offsets=ends)
    leave_without_leader(harness, asked["leaderless"])
    numbers = list(range(len(asked["states"])))
    reply = harness.send(describing({"topic": numbers}), 1)
    states = [
        PersisterResult(E(error), None, SharePartitionState(1, leader_epoch, start, count))
        for start, count, error, leader_epoch in asked["states"]
    ]
    harness.share_persister.take().answer_each(lambda key: states[key.partition])
    pauses_ms = []
    leader = ends.client().destinations().get(LEADER)
    if leader is not None:
        pauses_ms = played(leader, asked["outcomes"])
    return {"pauses_ms": pauses_ms, "response": message_to_json(reply.response, 1)}


def leave_without_leader(harness: Harness, leaderless: list[int]) -> None:
    """Make an image in which some partitions of the topic have no leader."""
    topic = harness.image.topics_by_name["topic"]
    led = {
        number: partition_led(number, NOBODY if number in leaderless else LEADER)
        for number in topic.partitions
    }
    topics = {**harness.image.topics_by_name, "topic": TopicImage("topic", id_of("topic"), led)}
    harness.publish(replace(image_of(topics), offset=harness.image.offset + 1))


def played(leader: BrokerRequests, outcomes: list[Any]) -> list[int]:
    """Let the outcomes happen to the requests; return the pauses between them."""
    now_ms, pauses_ms = 1_000, []
    for outcome in outcomes:
        assert leader.request(5, now_ms) is not None
        if isinstance(outcome, list):
            leader.answered(response_of(outcome), now_ms, now_ms)
            continue
        leader.failed(now_ms, now_ms)
        due_ms = leader.deadline_ms()
        if due_ms is not None:
            pauses_ms.append(due_ms - now_ms)
            now_ms = due_ms
    assert leader.request(5, now_ms) is None
    return pauses_ms


def response_of(ends: list[tuple[int, int, int]]) -> ListOffsetsResponse:
    parts = [
        ListOffsetsPartitionResponse(partition_index=number, error_code=error, offset=offset)
        for number, error, offset in ends
    ]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="topic", partitions=parts)])


def check(asked: Question, theirs: Answer) -> None:
    """Compare; both draw a fifth more or less for each pause."""
    mine = ours(asked)
    for shown in (mine, theirs):
        for topic in shown["response"]["groups"][0]["topics"]:
            topic.pop("topicId")
    assert mine["response"] == theirs["response"], asked
    assert len(mine["pauses_ms"]) == len(theirs["pauses_ms"]), asked
    for my_ms, their_ms in zip(mine["pauses_ms"], theirs["pauses_ms"], strict=True):
        assert 0.8 / 1.2 <= my_ms / their_ms <= 1.2 / 0.8, asked


@pytest.mark.parametrize("number", SEEDS)
def test_the_lag_is_that_of_apaches_coordinator(number: int) -> None:
    """932-ADMIN-04: offsets, errors in words, and pauses, as recorded."""
    asked, theirs = recorded()[number]
    assert asked == question(number), "record again"
    check(asked, theirs)


@pytest.mark.java
@pytest.mark.slow
def test_the_lag_is_that_of_apaches_coordinator_for_more_questions() -> None:
    """932-ADMIN-04: as above, asked now."""
    asked = [question(seed) for seed in range(1_000, 1_300)]
    for each, theirs in zip(asked, ask_apache(asked), strict=True):
        check(each, theirs)
