"""DescribeTopicPartitions, API key 75: partitions page by page (KIP-966)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "KIP-966, DescribeTopicPartitions"


def _describe(
    broker: Subject,
    version: int,
    *names: str,
    limit: int = 2000,
    cursor: tuple[str, int] | None = None,
) -> DescribeTopicPartitionsResponse:
    place = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=each) for each in names],
        response_partition_limit=limit,
        cursor=place,
    )
    return broker.ask(request, version, DescribeTopicPartitionsResponse)


def _partitions(answer: DescribeTopicPartitionsResponse) -> list[tuple[str, int]]:
    return [
        (each.name or "", one.partition_index) for each in answer.topics for one in each.partitions
    ]


@case("DescribeTopicPartitions", _SOURCE)
def partitions_of_a_topic(broker: Subject, version: int) -> None:
    """The description of a topic has its id and all partitions.

    Describe a topic of two partitions.
    """
    topic = broker.topic(partitions=2)
    answer = _describe(broker, version, topic.name)
    expect.error(answer, "topics[0].error_code", ErrorCode.NONE)
    expect.equal(answer, "topics[0].topic_id", topic.topic_id)
    expect.equal(answer, "topics[0].is_internal", False)
    expect.equal(answer, "next_cursor", None)
    found = _partitions(answer)
    wanted = [(topic.name, 0), (topic.name, 1)]
    expect.true(found == wanted, str(wanted), found, "topics")
    for index in range(2):
        path = f"topics[0].partitions[{index}]"
        expect.error(answer, f"{path}.error_code", ErrorCode.NONE)
        leader = answer.topics[0].partitions[index].leader_id
        expect.equal(answer, f"{path}.replica_nodes", [leader])
        expect.equal(answer, f"{path}.isr_nodes", [leader])
        expect.equal(answer, f"{path}.offline_replicas", [])


@case("DescribeTopicPartitions", _SOURCE)
def pages_of_partitions(broker: Subject, version: int) -> None:
    """A limit of partitions ends a response, and its cursor names the next partition.

    Describe two topics of two partitions with a limit of 3; continue at the cursor.
    """
    first, second = sorted(broker.topic(partitions=2).name for _ in range(2))
    answer = _describe(broker, version, first, second, limit=3)
    found = _partitions(answer)
    wanted = [(first, 0), (first, 1), (second, 0)]
    expect.true(found == wanted, str(wanted), found, "topics")
    expect.equal(answer, "next_cursor.topic_name", second)
    expect.equal(answer, "next_cursor.partition_index", 1)
    answer = _describe(broker, version, first, second, limit=3, cursor=(second, 1))
    found = _partitions(answer)
    expect.true(found == [(second, 1)], f"partition 1 of {second}", found, "topics")
    expect.equal(answer, "next_cursor", None)


@case("DescribeTopicPartitions", _SOURCE)
def limit_that_is_reached_exactly(broker: Subject, version: int) -> None:
    """A limit that all partitions reach exactly has no cursor.

    Describe a topic of two partitions with a limit of 2, then of 1.
    """
    topic = broker.topic(partitions=2)
    answer = _describe(broker, version, topic.name, limit=2)
    expect.equal(answer, "next_cursor", None)
    answer = _describe(broker, version, topic.name, limit=1)
    expect.equal(answer, "next_cursor.partition_index", 1)


@case("DescribeTopicPartitions", _SOURCE)
def unknown_topic(broker: Subject, version: int) -> None:
    """A topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION.

    Describe a new name.
    """
    answer = _describe(broker, version, broker.name())
    expect.error(answer, "topics[0].error_code", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("DescribeTopicPartitions", _SOURCE)
def invalid_topic_name(broker: Subject, version: int) -> None:
    """An invalid topic name is refused with an error.

    Describe the topic "a b".
    """
    answer = _describe(broker, version, "a b")
    found = answer.topics[0].error_code
    expect.true(found != ErrorCode.NONE, "an error", found, "topics[0].error_code")


@case("DescribeTopicPartitions", _SOURCE)
def cursor_that_is_none(broker: Subject, version: int) -> None:
    """A cursor with a partition below 0 is refused with INVALID_REQUEST.

    Continue at partition -1 of a topic.
    """
    topic = broker.topic()
    answer = _describe(broker, version, topic.name, cursor=(topic.name, -1))
    expect.true(
        answer.topics == [] or answer.topics[0].error_code == ErrorCode.INVALID_REQUEST,
        "INVALID_REQUEST",
        answer.topics,
        "topics",
    )


@case("DescribeTopicPartitions", _SOURCE)
def topics_in_order(broker: Subject, version: int) -> None:
    """Topics are described in the order of their names, each once.

    Describe two topics, and one that does not exist, in the reverse order, and one of them twice.
    """
    names = sorted([broker.topic().name, broker.topic().name, broker.name("absent")])
    answer = _describe(broker, version, *reversed(names), names[0])
    found = [each.name for each in answer.topics]
    expect.true(found == names, str(names), found, "topics")


@case("DescribeTopicPartitions", _SOURCE)
def page_that_ends_with_a_topic(broker: Subject, version: int) -> None:
    """A page that ends with a topic has the next topic, from its beginning, as its cursor.

    Describe two topics of one partition with a limit of 1; continue at the cursor.
    """
    first, second = sorted(broker.topic().name for _ in range(2))
    answer = _describe(broker, version, first, second, limit=1)
    found = _partitions(answer)
    expect.true(found == [(first, 0)], f"partition 0 of {first}", found, "topics")
    expect.equal(answer, "next_cursor.topic_name", second)
    expect.equal(answer, "next_cursor.partition_index", 0)
    answer = _describe(broker, version, first, second, limit=1, cursor=(second, 0))
    found = _partitions(answer)
    expect.true(found == [(second, 0)], f"partition 0 of {second}", found, "topics")


@case("DescribeTopicPartitions", "kafka.server.handlers.DescribeTopicPartitionsRequestHandler")
def wrong_cursors(broker: Subject, version: int) -> None:
    """A cursor with a negative partition or with a topic that is not asked for: INVALID_REQUEST.

    Describe a topic from its partition -1, and from another topic on.
    """
    topic = broker.topic().name
    for cursor in ((topic, -1), (f"{topic}-behind", 0)):
        answer = _describe(broker, version, topic, cursor=cursor)
        expect.error(answer, "topics[0].error_code", ErrorCode.INVALID_REQUEST)


@case("DescribeTopicPartitions", _SOURCE)
def all_topics(broker: Subject, version: int) -> None:
    """A request without topics describes all of them.

    Create two topics, describe all from the second partition of the first one on.
    """
    topic, following = broker.topic(2).name, broker.topic().name
    answer = _describe(broker, version, cursor=(topic, 1), limit=1)
    found = _partitions(answer)
    expect.true(found == [(topic, 1)], f"partition 1 of {topic}", found, "topics")
    expect.equal(answer, "next_cursor.topic_name", following)
    expect.equal(answer, "next_cursor.partition_index", 0)


@case("DescribeTopicPartitions", _SOURCE)
def internal_topic(broker: Subject, version: int) -> None:
    """The topic of committed offsets is internal.

    Find a group's coordinator, describe __consumer_offsets.
    """
    answer = _describe(broker, version, broker.offsets_topic().name)
    expect.error(answer, "topics[0].error_code", ErrorCode.NONE)
    expect.equal(answer, "topics[0].is_internal", True)
