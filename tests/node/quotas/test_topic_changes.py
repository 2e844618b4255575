"""The quota on created and deleted partitions: strict for new versions, permissive for old ones."""

from typing import Any

from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import MetadataRequest
from tests.node.quotas.throttled_node import ThrottledDoor

RATE = "controller_mutation_rate"
EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
CLIENT = 4


def create(
    node: ThrottledDoor, version: int, *topics: tuple[str, int], check: bool = False
) -> tuple[Any, list[int]]:
    """Create topics of so many partitions; return the answer and its errors."""
    wanted = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in topics
    ]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=1, validate_only=check)
    answer = node.send(request, version, connection=CLIENT).response
    return answer, [each.error_code for each in answer.topics]


def node_with_quota(rate: float = 1) -> ThrottledDoor:
    node = ThrottledDoor()
    node.set_quota(RATE, rate, client="client")
    return node


def test_bucket_begins_full_and_may_be_overdrawn_once() -> None:
    """SEC-QUOTA-15: rate 1 has 11 tokens; the topic that finds it overdrawn is refused."""
    node = node_with_quota()
    answer, errors = create(node, 6, ("a", 10), ("b", 10), ("c", 1))
    assert errors == [0, 0, EXCEEDED]
    assert answer.throttle_time_ms == 9_000
    assert answer.topics[2].error_message is None
    topics = node.node.broker.image.topics_by_name
    assert {"a", "b"} <= set(topics)
    assert "c" not in topics
    assert CLIENT in node.muted


def test_refused_changes_take_no_tokens_and_are_done_when_the_time_is_over() -> None:
    """SEC-QUOTA-15: the answered time is exact."""
    node = node_with_quota()
    assert create(node, 7, ("a", 20))[0].throttle_time_ms == 0
    refused, errors = create(node, 7, ("b", 1))
    assert errors == [EXCEEDED]
    node.advance(refused.throttle_time_ms - 1)
    node.close(CLIENT)
    late, errors = create(node, 7, ("b", 1))
    assert (late.throttle_time_ms, errors) == (1, [EXCEEDED])
    node.advance(1)
    assert create(node, 7, ("b", 1))[1] == [0]


def test_request_that_only_validates_takes_tokens() -> None:
    """SEC-QUOTA-15: as in 4.3.1."""
    node = node_with_quota()
    assert create(node, 6, ("a", 20), check=True)[1] == [0]
    assert create(node, 6, ("a", 1))[1] == [EXCEEDED]


def test_refused_topic_for_another_reason_takes_no_tokens() -> None:
    node = node_with_quota()
    assert create(node, 6, ("t", 20))[1] == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert create(node, 6, ("a", 11), ("b", 1))[1] == [0, 0]


def test_older_version_is_done_and_told_the_time() -> None:
    """SEC-QUOTA-16: CreateTopics 5 makes the topics, and its client must wait."""
    node = node_with_quota()
    answer, errors = create(node, 5, ("a", 10), ("b", 10), ("c", 1))
    assert errors == [0, 0, 0]
    assert answer.throttle_time_ms == 10_000
    assert CLIENT in node.muted


def test_partitions_of_deleted_topics_count() -> None:
    """SEC-QUOTA-15, SEC-QUOTA-16: strict from version 5 of DeleteTopics on."""
    node = ThrottledDoor()
    create(node, 6, ("a", 20), ("b", 1), ("c", 1))
    node.set_quota(RATE, 1, client="client")

    def delete(version: int, *names: str) -> tuple[Any, list[int]]:
        states = [DeleteTopicState(name=name) for name in names]
        request = DeleteTopicsRequest(topics=states, timeout_ms=1)
        if version < 6:
            request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=1)
        answer = node.send(request, version, connection=CLIENT).response
        return answer, [each.error_code for each in answer.responses]

    answer, errors = delete(5, "a", "b")
    assert (answer.throttle_time_ms, errors) == (9_000, [0, EXCEEDED])
    node.close(CLIENT)
    answer, errors = delete(6, "b")
    assert (answer.throttle_time_ms, errors) == (9_000, [EXCEEDED])
    node.close(CLIENT)
    answer, errors = delete(4, "b", "c")
    assert (answer.throttle_time_ms, errors) == (11_000, [0, 0])


def test_added_partitions_count_not_the_present_ones() -> None:
    """SEC-QUOTA-15, SEC-QUOTA-16: strict from version 3 of CreatePartitions on."""
    node = node_with_quota()
    create(node, 6, ("a", 1))

    def grow(version: int, count: int) -> tuple[Any, int]:
        wanted = [CreatePartitionsTopic(name="a", count=count, assignments=None)]
        request = CreatePartitionsRequest(topics=wanted, timeout_ms=1)
        answer = node.send(request, version, connection=CLIENT).response
        return answer, answer.results[0].error_code

    assert grow(3, 21)[1] == 0
    answer, error = grow(3, 22)
    assert (answer.throttle_time_ms, error) == (10_000, EXCEEDED)
    node.close(CLIENT)
    answer, error = grow(2, 22)
    assert (answer.throttle_time_ms, error) == (11_000, 0)


def test_other_clients_and_the_nodes_own_requests_have_their_own_budget() -> None:
    node = node_with_quota()
    create(node, 6, ("a", 30))
    wanted = [CreatableTopic(name="b", num_partitions=30, replication_factor=1)]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=1)
    answer = node.send(request, 6, connection=5, client_id="other").response
    assert (answer.throttle_time_ms, answer.topics[0].error_code) == (0, 0)
    assert node.send(MetadataRequest(), 9, connection=CLIENT).response.throttle_time_ms == 0
