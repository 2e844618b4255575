"""Partitions as a broker's answers have them, page by page, with the reassignments under way."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kraft_wire.cli.topics.partitions import DescribedPartition, described
from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kraft_wire.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kraft_wire.wire.message import Message


class Broker:
    """Answers as a broker with topics of some partitions, so many of them on a page."""

    def __init__(self, page: int, moves: Message | None, **sizes: int) -> None:
        self.page, self.moves = page, moves
        self.all = [(name, number) for name in sorted(sizes) for number in range(sizes[name])]
        self.asked: list[list[str]] = []

    def version_of(self, _: Message) -> int:
        return 0

    def wait_at_most(self, _: float) -> None:
        pass

    def send(self, request: Message, _: object) -> Any:
        if isinstance(request, ListPartitionReassignmentsRequest):
            if self.moves is None:
                raise BrokerConnectionError("no controller")
            return self.moves
        assert isinstance(request, DescribeTopicPartitionsRequest), request
        names = [each.name for each in request.topics]
        self.asked.append(names)
        after = request.cursor
        start = ("", 0) if after is None else (after.topic_name, after.partition_index)
        left = [each for each in self.all if each >= start and each[0] in names]
        response = DescribeTopicPartitionsResponse(topics=[])
        for name, number in left[: self.page]:
            if not response.topics or response.topics[-1].name != name:
                response.topics.append(
                    DescribeTopicPartitionsResponseTopic(
                        name=name, topic_id=ZERO_UUID, partitions=[]
                    )
                )
            response.topics[-1].partitions.append(partition(number))
        if len(left) > self.page:
            name, number = left[self.page]
            response.next_cursor = Cursor(topic_name=name, partition_index=number)
        return response


def partition(number: int) -> DescribeTopicPartitionsResponsePartition:
    """Each field has values of its own."""
    return DescribeTopicPartitionsResponsePartition(
        partition_index=number,
        leader_id=1,
        leader_epoch=20,
        replica_nodes=[1, 2, 3],
        isr_nodes=[1, 2],
        eligible_leader_replicas=[3],
        last_known_elr=[4],
        offline_replicas=[5],
    )


def moving(topic: str, number: int) -> ListPartitionReassignmentsResponse:
    each = OngoingPartitionReassignment(
        partition_index=number, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[2]
    )
    return ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment(name=topic, partitions=[each])]
    )


@pytest.mark.parametrize("page", [1, 2, 3, 4, 9])
def test_every_partition_of_every_page_is_there_once(page: int) -> None:
    """KIP-966: a topic may begin on one page and end on another."""
    broker = Broker(page, moving("u", 1), t=3, u=2, v=1)
    found = described(cast(BrokerConnection, broker), ["v", "t", "u"])
    assert [(topic.name, each.partition) for topic in found for each in topic.partitions] == (
        broker.all
    )
    assert broker.asked[0] == ["t", "u", "v"]


def test_fields_are_those_of_the_answer_and_moves_those_of_the_controller() -> None:
    broker = Broker(9, moving("u", 1), t=1, u=2)
    t, u = described(cast(BrokerConnection, broker), ["t", "u"])
    at_rest = DescribedPartition(0, 1, 20, [1, 2, 3], [1, 2], [3], [4], [5], None, [], [])
    assert t.partitions == [at_rest]
    assert u.partitions[0] == at_rest
    assert (u.partitions[1].adding, u.partitions[1].removing) == ([3], [2])
    assert [each.is_under_replicated for each in u.partitions] == [True, False]


def test_without_a_controller_nobody_knows_what_moves() -> None:
    (topic,) = described(cast(BrokerConnection, Broker(9, None, t=1)), ["t"])
    (found,) = topic.partitions
    assert (found.adding, found.removing, found.is_under_replicated) == (None, None, True)
