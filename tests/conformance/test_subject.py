"""A case's access to a broker waits until the broker serves what the case is about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kraft_wire.conformance.reports.comparison import comparison_json
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.target import Target
from kraft_wire.conformance.verdict import Mismatch, NotSupported
from kraft_wire.wire.generated.create_topics import CreatableTopicResult, CreateTopicsResponse
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.init_producer_id import InitProducerIdResponse
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TARGET = Target(
    address=("127.0.0.1", 1),
    timeout_s=5.0,
    versions={},
    node_id=1,
    advertised=("127.0.0.1", 1),
    prefix="p-",
)


@dataclass
class Scripted:
    """Gives the answers of a script, one after the other, and checks that all are asked for."""

    answers: list[Any]

    def prepare(self, request: object, response: type, *, until: int | None = None) -> Any:
        answer = self.answers.pop(0)
        assert isinstance(answer, response), request
        return answer

    def subject(self) -> Subject:
        subject = Subject(TARGET, "row")
        subject.prepare = self.prepare  # type: ignore[method-assign]  # the script
        return subject


def metadata(leaders: Sequence[int]) -> MetadataResponse:
    partitions = [
        MetadataResponsePartition(partition_index=number, leader_id=leader)
        for number, leader in enumerate(leaders)
    ]
    return MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)])


def earliest(codes: Sequence[E]) -> ListOffsetsResponse:
    partitions = [
        ListOffsetsPartitionResponse(partition_index=number, error_code=code)
        for number, code in enumerate(codes)
    ]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=partitions)])


def test_producer_id_is_asked_for_until_there_is_one() -> None:
    refused = InitProducerIdResponse(error_code=E.COORDINATOR_LOAD_IN_PROGRESS, producer_id=-1)
    script = Scripted([refused, refused, InitProducerIdResponse(producer_id=7, producer_epoch=2)])
    assert script.subject().producer() == (7, 2)
    assert script.answers == []


def test_topic_is_served_once_every_partition_has_a_leader_that_answers() -> None:
    whole = metadata([1, 1])
    script = Scripted(
        [
            metadata([1]),
            metadata([1, -1]),
            metadata([1, 1]),
            earliest([E.NONE, E.NOT_LEADER_OR_FOLLOWER]),
            whole,
            earliest([E.NONE, E.NONE]),
        ]
    )
    assert script.subject()._served("t", 2) is whole.topics[0]
    assert script.answers == []


def test_topic_that_cannot_be_made_is_not_judged() -> None:
    refused = CreatableTopicResult(name="t", error_code=E.POLICY_VIOLATION)
    with pytest.raises(NotSupported, match="t failed with error 44"):
        Scripted([CreateTopicsResponse(topics=[refused])]).subject().topic(name="t")


def test_first_attempt_is_made_also_without_time() -> None:
    """A broker that answers is not slow for a client whose time is over."""
    late = Subject(replace(TARGET, timeout_s=-1.0), "row").attempts("a wonder")
    next(late)
    with pytest.raises(Mismatch) as found:
        next(late)
    assert (found.value.expected, found.value.seen) == (
        "a wonder",
        "nothing of the kind within -1 s",
    )


def test_comparison_names_both_brokers() -> None:
    written = json.loads(comparison_json([], "left:1", "right:2"))
    assert written == {"left": "left:1", "right": "right:2", "differences": []}
