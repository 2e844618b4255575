"""A case's access to a broker waits until the broker serves what the case is about."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kraft_wire.conformance.reports.comparison import comparison_json
from kraft_wire.conformance.share_states import coordinated
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.target import Target
from kraft_wire.conformance.transactions import await_end
from kraft_wire.conformance.verdict import Mismatch, NotSupported
from kraft_wire.model import Uuid
from kraft_wire.wire.generated import read_share_group_state_summary as summing
from kraft_wire.wire.generated.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.describe_transactions import (
    DescribeTransactionsResponse,
    TransactionState,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.init_producer_id import InitProducerIdResponse
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.wire.generated.offset_fetch import OffsetFetchResponse

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


class Named(Scripted):
    """Names brokers 9, then 0, then 1 as coordinators, one after the other; all serve at once."""

    def __init__(self, node_id: int) -> None:
        super().__init__([])
        self.node_id, self.brokers = node_id, iter((9, 0, 1))
        self.asked: list[Any] = []

    def prepare(self, request: object, response: type, *, until: int | None = None) -> Any:
        self.asked.append(request)
        if isinstance(request, FindCoordinatorRequest):
            found = next(self.brokers)
            return FindCoordinatorResponse(node_id=found, coordinators=[Coordinator(node_id=found)])
        if isinstance(request, CreateTopicsRequest):
            return CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])
        if isinstance(request, MetadataRequest):
            return metadata([1, 1])
        if isinstance(request, ListOffsetsRequest):
            return earliest([E.NONE, E.NONE])
        if isinstance(request, summing.ReadShareGroupStateSummaryRequest):
            state = summing.PartitionResult(partition=0)
            topic = summing.ReadStateSummaryResult(partitions=[state])
            return summing.ReadShareGroupStateSummaryResponse(results=[topic])
        return response()

    def subject(self) -> Subject:
        subject = super().subject()
        subject.target = replace(TARGET, node_id=self.node_id)
        return subject


@pytest.mark.parametrize(("node_id", "tried"), [(-1, 1), (0, 2), (1, 3)])
def test_names_are_those_that_the_broker_coordinates(node_id: int, tried: int) -> None:
    """0 is the id of a node like any other; -1 says that the id of the broker is not known."""

    def looked_for(make: Callable[[Subject], object]) -> int:
        named = Named(node_id)
        make(named.subject())
        return sum(isinstance(each, FindCoordinatorRequest) for each in named.asked)

    assert looked_for(lambda subject: subject.group()) == tried
    assert looked_for(lambda subject: subject.transactional_id()) == tried
    assert looked_for(lambda subject: coordinated(subject, Uuid(b"t" * 16))) == tried


@pytest.mark.parametrize("node_id", [-1, 0, 1])
def test_topic_is_led_by_the_broker_if_its_id_is_known(node_id: int) -> None:
    named = Named(node_id)
    named.subject().topic(2, name="t")
    (made,) = [each for each in named.asked if isinstance(each, CreateTopicsRequest)]
    (topic,) = made.topics
    places = [(each.partition_index, each.broker_ids) for each in topic.assignments]
    if node_id < 0:
        assert (topic.num_partitions, topic.replication_factor, places) == (2, 1, [])
    else:
        assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
        assert places == [(0, [node_id]), (1, [node_id])]


def test_topic_that_cannot_be_made_is_not_judged() -> None:
    refused = CreatableTopicResult(name="t", error_code=E.POLICY_VIOLATION)
    with pytest.raises(NotSupported, match="t failed with error 44"):
        Scripted([CreateTopicsResponse(topics=[refused])]).subject().topic(name="t")


def test_broker_without_a_topic_of_offsets_is_not_judged_by_it() -> None:
    absent = MetadataResponseTopic(error_code=E.UNKNOWN_TOPIC_OR_PARTITION)
    group = [FindCoordinatorResponse(node_id=1), OffsetFetchResponse()]
    script = Scripted([*group, MetadataResponse(topics=[absent])])
    with pytest.raises(NotSupported, match="has no topic __consumer_offsets"):
        script.subject().offsets_topic()


@pytest.mark.parametrize("ended", ["CompleteCommit", "Empty"])
def test_transaction_has_ended_whatever_its_broker_calls_that(ended: str) -> None:
    states = [
        TransactionState(transaction_state=each) for each in ("Ongoing", "PrepareAbort", ended)
    ]
    script = Scripted([DescribeTransactionsResponse(transaction_states=[each]) for each in states])
    await_end(script.subject(), "an-id")
    assert script.answers == []


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
