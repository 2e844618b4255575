"""The describing APIs, DeleteRecords and producer ids: asked of Apache Kafka and of us, compared.

Every request goes to both in every version that Kafka serves. What must differ (ids that are drawn,
addresses, sizes of a volume) is replaced by a word before the comparison.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kraft_wire.apis.registry import APIS
from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from kraft_wire.wire.generated.describe_producers import DescribeProducersRequest
from kraft_wire.wire.generated.describe_producers import TopicRequest as ProducersTopic
from kraft_wire.wire.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess
from tests.waiting import HANG_S

pytestmark = pytest.mark.java

PLAIN, COMPACTED = "small-apis", "small-apis-compacted"
RECORDS = 10
SECONDS_MAX = HANG_S

DRAWN = {
    "producerId": lambda value: value if value < 0 else "an id",
    "topicId": lambda _: "an id",
    "clusterId": lambda _: "an id",
    "controllerId": lambda value: value,
    "host": lambda _: "a host",
    "port": lambda _: "a port",
    "logDir": lambda _: "a directory",
    "totalBytes": lambda value: value if value < 0 else "a size",
    "usableBytes": lambda value: value if value < 0 else "a size",
    "lastTimestamp": lambda value: value,
    "errorMessage": lambda value: "a message" if value else value,
}
"""What two brokers may not have in common, and what is compared in its place."""


def named(value: Any, key: str = "") -> Any:
    """A response's JSON with what is drawn replaced by words."""
    if isinstance(value, dict):
        return {name: named(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        found = [named(inner, key) for inner in value]
        if found and isinstance(found[0], dict) and "isFutureKey" in found[0]:
            # Apache lists the partitions of a log directory in hash order.
            found.sort(key=lambda partition: partition["partitionIndex"])
        return found
    replace: Callable[[Any], Any] | None = DRAWN.get(key)
    return value if replace is None else replace(value)


def until_served(attempt: Callable[[], int]) -> None:
    """Repeat a request until its error is 0: Apache serves new partitions a little later."""
    deadline = time.monotonic() + SECONDS_MAX
    while (error := attempt()) != 0:
        assert time.monotonic() < deadline, f"still error {error}"
        time.sleep(0.1)


def prepare(broker: BrokerConnection) -> None:
    """Create the topics and write ten records of an idempotent producer."""
    topics = [
        CreatableTopic(name=PLAIN, num_partitions=3, replication_factor=1),
        CreatableTopic(
            name=COMPACTED,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")],
        ),
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=30_000)
    created = broker.send(request, CreateTopicsResponse)
    assert [topic.error_code for topic in created.topics] == [0, 0], created
    given = InitProducerIdResponse()

    def init() -> int:
        nonlocal given
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        given = broker.send(request, InitProducerIdResponse)
        return given.error_code

    until_served(init)
    records = [
        Record(offset=number, timestamp=1_000 + number, key=b"k", value=b"v", headers=[])
        for number in range(RECORDS)
    ]
    batch = build_batch(records, producer_id=given.producer_id, producer_epoch=0, base_sequence=0)

    def produce() -> int:
        data = PartitionProduceData(index=0, records=bytes(batch))
        topic = TopicProduceData(name=PLAIN, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
        answer = broker.send(request, ProduceResponse, version=11)
        return answer.responses[0].partition_responses[0].error_code

    until_served(produce)


@pytest.fixture(scope="module")
def both(
    apache_node: ApacheNode, module_server: ServerProcess
) -> Iterator[tuple[BrokerConnection, BrokerConnection]]:
    """Connections to Apache and to us, with the same topics and records behind them."""
    theirs = BrokerConnection(apache_node.bootstrap)
    ours = BrokerConnection(module_server.bootstrap)
    with theirs, ours:
        prepare(theirs)
        prepare(ours)
        yield theirs, ours


def offsets(*asked: tuple[str, int, int, int]) -> OffsetForLeaderEpochRequest:
    """Topic, partition, current leader epoch, epoch asked for."""
    return OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=index, current_leader_epoch=current, leader_epoch=epoch
                    )
                ],
            )
            for topic, index, current, epoch in asked
        ]
    )


def deletion(topic: str, index: int, offset: int) -> DeleteRecordsRequest:
    """One partition's deletion."""
    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
    named = DeleteRecordsTopic(name=topic, partitions=[partition])
    return DeleteRecordsRequest(topics=[named], timeout_ms=10_000)


def topics_page(
    *names: str, limit: int = 2_000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsRequest:
    """One page of topics."""
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )


def log_dirs(topic: str, *indexes: int) -> DescribeLogDirsRequest:
    """Some partitions' logs."""
    return DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=topic, partitions=list(indexes))]
    )


def producers(topic: str, *indexes: int) -> DescribeProducersRequest:
    """Some partitions' producers."""
    return DescribeProducersRequest(
        topics=[ProducersTopic(name=topic, partition_indexes=list(indexes))]
    )


REQUESTS: dict[str, Message] = {
    "epoch, known": offsets((PLAIN, 1, -1, 0)),
    "epoch, above all": offsets((PLAIN, 1, -1, 900)),
    "epoch, undefined": offsets((PLAIN, 1, -1, -1)),
    "epoch, current one too new": offsets((PLAIN, 0, 900, 0)),
    "epoch, unknown partition": offsets((PLAIN, 99, -1, 0)),
    "epoch, unknown topic": offsets(("missing", 0, -1, 0)),
    "delete, to four": deletion(PLAIN, 0, 4),
    "delete, below the start": deletion(PLAIN, 0, 2),
    "delete, above the end": deletion(PLAIN, 0, 11),
    "delete, negative": deletion(PLAIN, 0, -5),
    "delete, to the end": deletion(PLAIN, 0, -1),
    "delete, empty partition": deletion(PLAIN, 1, -1),
    "delete, compacted": deletion(COMPACTED, 0, 0),
    "delete, unknown partition": deletion(PLAIN, 50, 0),
    "delete, unknown topic": deletion("missing", 0, 0),
    "delete, nothing": DeleteRecordsRequest(timeout_ms=1_000),
    "producer id, idempotent": InitProducerIdRequest(transactional_id=None),
    "producer id, empty transactional id": InitProducerIdRequest(transactional_id=""),
    "producer id, without timeout": InitProducerIdRequest(transactional_id="t"),
    "producer id, timeout too long": InitProducerIdRequest(
        transactional_id="t", transaction_timeout_ms=900_001
    ),
    "cluster": DescribeClusterRequest(),
    "cluster, operations": DescribeClusterRequest(include_cluster_authorized_operations=True),
    "producers, one and none": producers(PLAIN, 0, 1),
    "producers, unknown partition": producers(PLAIN, 70),
    "producers, unknown topic": producers("missing", 0),
    "log dirs, empty partitions": log_dirs(PLAIN, 1, 2),
    "log dirs, unknown": log_dirs("missing", 0),
    "log dirs, nothing": DescribeLogDirsRequest(topics=[]),
    "topics, both": topics_page(PLAIN, COMPACTED),
    "topics, first page": topics_page(PLAIN, COMPACTED, limit=2),
    "topics, from a cursor": topics_page(PLAIN, cursor=Cursor(topic_name=PLAIN, partition_index=1)),
    "topics, cursor beyond": topics_page(PLAIN, cursor=Cursor(topic_name=PLAIN, partition_index=9)),
    "topics, cursor outside": topics_page(PLAIN, cursor=Cursor(topic_name="zzz")),
    "topics, cursor negative": topics_page(
        PLAIN, cursor=Cursor(topic_name=PLAIN, partition_index=-1)
    ),
    "topics, unknown and invalid": topics_page("missing", "not a name", ".."),
    "topics, limit zero": topics_page(PLAIN, limit=0),
    "topics, twice the same": topics_page(PLAIN, PLAIN),
}
NEWER = {
    "producer id, id without epoch": (
        InitProducerIdRequest(transactional_id=None, producer_id=5),
        3,
    ),
    "producer id, known id": (
        InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=1),
        3,
    ),
    "cluster, controllers": (DescribeClusterRequest(endpoint_type=2), 1),
    "cluster, no such endpoints": (DescribeClusterRequest(endpoint_type=9), 1),
    "cluster, fenced brokers": (DescribeClusterRequest(include_fenced_brokers=True), 2),
}
"""Requests with fields that older versions cannot carry, and their first version."""

CASES: list[Any] = [
    pytest.param(request, version, id=f"{name}, v{version}")
    for name, request, first in [
        *((name, request, 0) for name, request in REQUESTS.items()),
        *((name, request, first) for name, (request, first) in NEWER.items()),
    ]
    for version in range(
        max(first, APIS[request.API_KEY].versions[0]),
        APIS[request.API_KEY].versions[1] + 1,
    )
]


@pytest.mark.parametrize(("request_", "version"), CASES)
def test_answer_is_that_of_apache(
    both: tuple[BrokerConnection, BrokerConnection], request_: Message, version: int
) -> None:
    theirs, ours = (
        broker.send(request_, response_class(request_.API_KEY), version=version) for broker in both
    )
    assert named(message_to_json(ours, version)) == named(message_to_json(theirs, version))
