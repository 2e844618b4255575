"""DescribeTopicPartitions: pages, cursors, errors (KIP-966)."""

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.describe_topic_partitions import handle
from kraft_wire.wire.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import (
    broker_image,
    context,
    id_of,
    image_of,
    partition_image,
    small_broker,
)

Page = list[tuple[str, list[int]]]


@pytest.fixture
def broker() -> Broker:
    return small_broker(
        image_of(
            {
                "b": [partition_image(index) for index in range(3)],
                "a": [partition_image(index) for index in range(2)],
                "__consumer_offsets": [partition_image(0)],
            }
        ),
        max_request_partition_size_limit=4,
    )


def ask(
    broker: Broker,
    names: list[str],
    *,
    limit: int = 2_000,
    cursor: tuple[str, int] | None = None,
    listener: str = "PLAINTEXT",
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return handle(broker, context(0, listener=listener), request)


def page_of(response: DescribeTopicPartitionsResponse) -> Page:
    """Topics with the numbers of their partitions."""
    return [
        (topic.name or "", [each.partition_index for each in topic.partitions])
        for topic in response.topics
    ]


def cursor_of(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    """Where the next page begins."""
    following = response.next_cursor
    return None if following is None else (following.topic_name, following.partition_index)


def test_no_names_mean_all_topics_in_name_order_up_to_the_brokers_limit(broker: Broker) -> None:
    response = ask(broker, [])
    assert page_of(response) == [("__consumer_offsets", [0]), ("a", [0, 1]), ("b", [0])]
    assert cursor_of(response) == ("b", 1)


def test_pages_follow_the_cursor_to_the_end(broker: Broker) -> None:
    pages, cursor = [], None
    while True:
        response = ask(broker, ["b", "a"], limit=2, cursor=cursor)
        pages.append(page_of(response))
        cursor = cursor_of(response)
        if cursor is None:
            break
    assert pages == [[("a", [0, 1])], [("b", [0, 1])], [("b", [2])]]


@pytest.mark.parametrize("limit", range(1, 12))
@pytest.mark.parametrize("first", [("a", 0), ("a", 1), ("b", 0), ("b", 2), ("c", 1), ("d", 0)])
def test_pages_of_any_size_from_anywhere_are_full_and_show_each_partition_once(
    limit: int, first: tuple[str, int]
) -> None:
    counts = {"a": 2, "b": 3, "c": 2, "d": 1}
    topics = {name: [partition_image(at) for at in range(count)] for name, count in counts.items()}
    broker = small_broker(image_of(topics))
    shown: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = first
    while cursor is not None:
        response = ask(broker, [], limit=limit, cursor=cursor)
        page = [(name, at) for name, numbers in page_of(response) for at in numbers]
        shown += page
        cursor = cursor_of(response)
        assert len(page) == limit or cursor is None
    assert shown == [
        each for name in counts for at in range(counts[name]) if (each := (name, at)) >= first
    ]


def test_page_that_ends_with_a_topic_points_to_the_next_ones_beginning(broker: Broker) -> None:
    assert cursor_of(ask(broker, ["a", "b"], limit=2)) == ("b", 0)


@pytest.mark.parametrize("limit", [0, -5, 1])
def test_limit_is_at_least_one_partition(broker: Broker, limit: int) -> None:
    assert page_of(ask(broker, ["b"], limit=limit)) == [("b", [0])]


def test_topic_of_the_cursor_may_be_gone_when_all_are_asked_for(broker: Broker) -> None:
    assert page_of(ask(broker, [], cursor=("ab", 7)))[0] == ("b", [0, 1, 2])


def test_named_topic_that_does_not_exist_is_listed_with_its_error(broker: Broker) -> None:
    response = ask(broker, ["nope", "a b", "a"])
    errors = {topic.name: ErrorCode(topic.error_code) for topic in response.topics}
    assert errors == {
        "a": ErrorCode.NONE,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("cursor", [("zzz", 0), ("a", -1)])
def test_cursor_outside_the_list_or_negative_is_refused(
    broker: Broker, cursor: tuple[str, int]
) -> None:
    response = ask(broker, ["a", "b"], cursor=cursor)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST] * 2
    assert response.next_cursor is None


def test_cursor_before_every_named_topic_is_refused(broker: Broker) -> None:
    response = ask(broker, ["b"], cursor=("a", 0))
    assert response.topics[0].error_code == ErrorCode.INVALID_REQUEST


def test_topic_carries_id_internality_and_operations(broker: Broker) -> None:
    offsets, plain, _ = ask(broker, []).topics
    assert (offsets.is_internal, plain.is_internal) == (True, False)
    assert plain.topic_id == id_of("a")
    assert plain.topic_authorized_operations == 3576


def test_partition_carries_replicas_and_never_a_null_list() -> None:
    partition = partition_image(
        0, leader=2, leader_epoch=6, replicas=(2, 1, 3), isr=(2, 1), last_known_elr=(3,)
    )
    brokers = [broker_image(1), broker_image(2), broker_image(3, fenced=True)]
    broker = small_broker(image_of({"a": [partition]}, brokers))
    (found,) = ask(broker, ["a"]).topics[0].partitions
    assert (found.leader_id, found.leader_epoch) == (2, 6)
    assert (found.replica_nodes, found.isr_nodes) == ([2, 1, 3], [2, 1])
    assert (found.eligible_leader_replicas, found.last_known_elr) == ([], [3])
    assert found.offline_replicas == [3]


@pytest.mark.parametrize(
    ("leader", "listener"), [(-1, "PLAINTEXT"), (9, "PLAINTEXT"), (1, "OTHER")]
)
def test_leader_that_cannot_be_reached_is_left_out_without_an_error(
    leader: int, listener: str
) -> None:
    """4.3.1's `KRaftMetadataCache.partitionMetadataForDescribeTopicResponse` sets no error."""
    broker = small_broker(image_of({"a": [partition_image(0, leader=leader, replicas=(1,))]}))
    (found,) = ask(broker, ["a"], listener=listener).topics[0].partitions
    assert (found.error_code, found.leader_id) == (ErrorCode.NONE, -1)
