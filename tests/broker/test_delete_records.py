"""DeleteRecords: offsets in Kafka's order of checks."""

from typing import Any

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.delete_records import handle
from kraft_wire.metadata.image import TOPIC_RESOURCE, MetadataImage
from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import context, image_of, log_of, partition_image, small_broker


@pytest.fixture
def broker() -> Broker:
    made = small_broker(
        image_of(
            {
                "a": [
                    partition_image(0),
                    partition_image(1, leader=2, replicas=(1, 2)),
                    partition_image(2),
                ],
                "far": [partition_image(0, leader=2, replicas=(2,))],
                "__consumer_offsets": [partition_image(0)],
            }
        )
    )
    log_of(made, "a").grow(10)
    return made


def delete(broker: Broker, topic: str, index: int, offset: int) -> tuple[int, int]:
    """Error code and low watermark of one deletion."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)],
            )
        ]
    )
    response = handle(broker, context(DeleteRecordsRequest.MAX_VERSION), request)
    (result,) = response.topics[0].partitions
    assert (response.topics[0].name, result.partition_index) == (topic, index)
    return result.error_code, result.low_watermark


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (4, (ErrorCode.NONE, 4)),
        (0, (ErrorCode.NONE, 0)),
        (10, (ErrorCode.NONE, 10)),
        (-1, (ErrorCode.NONE, 10)),
        (11, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
        (-2, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
    ],
)
def test_offset_within_the_high_watermark_moves_the_log_start(
    broker: Broker, offset: int, expected: tuple[int, int]
) -> None:
    assert delete(broker, "a", 0, offset) == expected


def test_offset_below_the_log_start_changes_nothing(broker: Broker) -> None:
    delete(broker, "a", 0, 7)
    assert delete(broker, "a", 0, 3) == (ErrorCode.NONE, 7)


@pytest.mark.parametrize(
    ("topic", "index", "error"),
    [
        ("missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("__consumer_offsets", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a", 1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("far", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_partition_that_cannot_be_cut_says_why(
    broker: Broker, topic: str, index: int, error: ErrorCode
) -> None:
    assert delete(broker, topic, index, 0) == (error, -1)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("compact", (ErrorCode.POLICY_VIOLATION, -1)),
        ("compact,delete", (ErrorCode.NONE, 0)),
        ("delete", (ErrorCode.NONE, 0)),
    ],
)
def test_topic_that_is_only_compacted_is_refused(policy: str, expected: tuple[int, int]) -> None:
    image = image_of({"a": [partition_image(0)]})
    configs = {(TOPIC_RESOURCE, "a"): {"cleanup.policy": policy}}
    compacted = MetadataImage(
        offset=image.offset,
        brokers=image.brokers,
        topics_by_name=image.topics_by_name,
        topic_names=image.topic_names,
        configs=configs,
    )
    assert delete(small_broker(compacted), "a", 0, 0) == expected


@pytest.mark.parametrize("lost", [(), (0,), (0, 2)])
def test_failing_disk_takes_offline_what_the_log_store_names(
    broker: Broker, lost: tuple[int, ...]
) -> None:
    """A full disk takes no partition, a broken one all of its directory."""
    logs: Any = broker.logs
    logs.failed_with = [TopicPartition("a", number) for number in lost]
    log_of(broker, "a").failure = StorageError("write", "/a-0", "input/output error")
    assert delete(broker, "a", 0, 1) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    log_of(broker, "a").failure = None
    for number in (0, 2):
        refused = (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert delete(broker, "a", number, 0) == (refused if number in lost else (0, 0))


def test_topics_and_partitions_that_are_named_twice_are_answered_once(broker: Broker) -> None:
    asked = [("a", (0, 1), (2, 0), (0, 3)), ("missing", (0, 0)), ("a", (2, 9), (0, 2)), ("far",)]
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=number, offset=offset)
                    for number, offset in wanted
                ],
            )
            for name, *wanted in asked
        ]
    )
    response = handle(broker, context(DeleteRecordsRequest.MAX_VERSION), request)
    assert isinstance(response, DeleteRecordsResponse)
    assert [
        (topic.name, each.partition_index, each.error_code, each.low_watermark)
        for topic in response.topics
        for each in topic.partitions
    ] == [
        ("a", 0, ErrorCode.NONE, 2),
        ("a", 2, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        ("missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_errors_in_order(broker: Broker) -> None:
    assert delete(broker, "__consumer_offsets", 9, 99)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.partitions["__consumer_offsets", 0].offline = True
    assert delete(broker, "__consumer_offsets", 0, 99)[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
    follower = broker.partitions["a", 1]
    log_of(broker, "a", 1).config = LogConfig(cleanup_policy=("compact",))
    follower.offline = True
    assert delete(broker, "a", 1, 99)[0] == ErrorCode.KAFKA_STORAGE_ERROR
    follower.offline = False
    assert delete(broker, "a", 1, 99)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    follower.is_leader = True
    assert delete(broker, "a", 1, 99)[0] == ErrorCode.POLICY_VIOLATION
    log_of(broker, "a", 1).config = LogConfig()
    assert delete(broker, "a", 1, 99)[0] == ErrorCode.OFFSET_OUT_OF_RANGE
