"""DescribeLogDirs: directories, sizes, failed disks."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.apis.registry import APIS, key_of
from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.describe_log_dirs import handle
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import LogDirectoryUsage
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.features import METADATA_VERSION
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import context, each_version, image_of, partition_image, small_broker


@pytest.fixture
def broker() -> Broker:
    made = small_broker(image_of({}))
    logs: Any = made.logs
    logs.entries = [
        LogDirectoryUsage(
            path="/one",
            total_bytes=1000,
            usable_bytes=400,
            partition_bytes={
                TopicPartition("b", 0): 30,
                TopicPartition("a", 1): 20,
                TopicPartition("a", 0): 10,
            },
        ),
        LogDirectoryUsage(path="/two", is_offline=True),
    ]
    return made


def ask(broker: Broker, topics: dict[str, list[int]] | None, version: int = 5) -> Any:
    """Sizes per directory, topic and partition."""
    named = None
    if topics is not None:
        named = [DescribableLogDirTopic(topic=t, partitions=p) for t, p in topics.items()]
    response = handle(broker, context(version), DescribeLogDirsRequest(topics=named))
    return {
        result.log_dir: {
            (topic.name, each.partition_index): each.partition_size
            for topic in result.topics
            for each in topic.partitions
        }
        for result in response.results
    }


def test_sizes_of_the_volume_are_unknown_for_a_directory_that_is_offline(broker: Broker) -> None:
    response = handle(broker, context(5), DescribeLogDirsRequest(topics=None))
    found = [(each.total_bytes, each.usable_bytes) for each in response.results]
    assert found == [(1000, 400), (-1, -1)]


@pytest.mark.parametrize(
    ("topics", "found"),
    [
        (None, {("a", 0): 10, ("a", 1): 20, ("b", 0): 30}),
        ({}, {}),
        ({"a": [1, 7], "missing": [0]}, {("a", 1): 20}),
    ],
)
def test_wanted_partitions_are_listed_with_their_sizes(
    broker: Broker, topics: dict[str, list[int]] | None, found: dict[tuple[str, int], int]
) -> None:
    assert ask(broker, topics) == {"/one": found, "/two": {}}


@pytest.mark.parametrize("level", [29, 30])
def test_cordoned_directory_is_shown_as_such_once_the_level_has_them(
    broker: Broker, level: int
) -> None:
    """`ReplicaManager.describeLogDirs` of release 4.3.1; older versions lack the field."""
    broker.image = replace(broker.image, finalized_features={METADATA_VERSION: level})
    broker.settings = BrokerSettings.of(NodeSettings({"cordoned.log.dirs": "/one"}))
    response = handle(broker, context(5), DescribeLogDirsRequest(topics=None))
    assert [each.is_cordoned for each in response.results] == [level == 30, False]
    for version in (4, 5):
        decoded, _ = DescribeLogDirsResponse.decode(response.encode(version), version)
        assert decoded.results[0].is_cordoned == (version == 5 and level == 30)
    broker.settings = BrokerSettings.of(NodeSettings({"cordoned.log.dirs": "*"}))
    response = handle(broker, context(5), DescribeLogDirsRequest(topics=None))
    assert [each.is_cordoned for each in response.results] == [level == 30, False], "one is offline"


def test_volume_is_described_and_a_failed_directory_only_named(broker: Broker) -> None:
    healthy, failed = handle(broker, context(5), DescribeLogDirsRequest(topics=None)).results
    assert (healthy.error_code, healthy.total_bytes, healthy.usable_bytes) == (0, 1000, 400)
    assert (failed.error_code, failed.total_bytes, failed.usable_bytes) == (
        ErrorCode.KAFKA_STORAGE_ERROR,
        -1,
        -1,
    )


def test_copy_of_a_moving_replica_has_the_records_that_it_lacks_as_its_lag() -> None:
    """`ReplicaManager.getLogEndOffsetLag` of release 4.3.1."""
    broker = small_broker(image_of({"a": [partition_image(0), partition_image(1)]}))
    log: Any = broker.partitions["a", 0].log
    log.grow(10)
    a0, a1, gone = (TopicPartition(*name) for name in (("a", 0), ("a", 1), ("gone", 0)))
    logs: Any = broker.logs
    logs.entries = [
        LogDirectoryUsage(path="/one", partition_bytes={a0: 30, a1: 5, gone: 1}),
        LogDirectoryUsage(path="/two", copies={a0: (12, Offset(4))}),
    ]
    broker.partitions["a", 1].offline = True
    results = handle(broker, context(5), DescribeLogDirsRequest(topics=None)).results
    assert [
        (topic.name, each.partition_index, each.partition_size, each.offset_lag, each.is_future_key)
        for result in results
        for topic in result.topics
        for each in topic.partitions
    ] == [
        ("a", 0, 30, 0, False),
        ("a", 1, 5, -1, False),
        ("gone", 0, 1, -1, False),
        ("a", 0, 12, 6, True),
    ]


@pytest.mark.parametrize(("end", "high_watermark", "lag"), [(4, 10, 6), (10, 10, 0), (12, 10, 0)])
def test_lag_of_a_replica_is_what_it_lacks_of_the_committed_records(
    end: int, high_watermark: int, lag: int
) -> None:
    """KIP-113: LEO below the high watermark is behind, and never below 0."""
    broker = small_broker(image_of({"a": [partition_image(0)]}))
    name = TopicPartition("a", 0)
    broker.partitions[name] = cast(
        Partition,
        SimpleNamespace(offline=False, log_end_offset=end, high_watermark=high_watermark),
    )
    logs: Any = broker.logs
    logs.entries = [LogDirectoryUsage(path="/one", partition_bytes={name: 30})]
    (result,) = handle(broker, context(5), DescribeLogDirsRequest(topics=None)).results
    assert result.topics[0].partitions[0].offset_lag == lag


def test_answer_is_encoded_in_every_version(broker: Broker) -> None:
    for version in each_version(APIS[key_of("DescribeLogDirs")].versions):
        response = handle(broker, context(version), DescribeLogDirsRequest(topics=None))
        decoded, _ = DescribeLogDirsResponse.decode(response.encode(version), version)
        assert [result.log_dir for result in decoded.results] == ["/one", "/two"]
