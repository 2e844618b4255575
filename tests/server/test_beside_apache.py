"""The same requests to Apache Kafka 4.3.1 and to us: error codes and answers must be the same.

Each case is a function of a connection that returns what it saw; what legitimately differs (topic
ids, clocks, wording) is left out of what it returns.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.node import ApacheNode
from tests.attack import frames
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess
from tests.waiting import until

pytestmark = pytest.mark.java

NOW_MS = int(time.time() * 1000)
DAY_MS = 86_400_000


def create(client: WireClient, name: str, **configs: str) -> None:
    """A topic with one partition, writable when this returns."""
    texts = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=texts)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    answer = client.call(request, 5, CreateTopicsResponse)
    assert answer.topics[0].error_code in (0, 36), answer
    until(
        lambda: list_offset(client, name, -1)[0] == 0,
        lambda: f"{name} did not become readable",
    )


def batch(*values: bytes, **more: Any) -> bytes:
    key = more.pop("key", b"k")
    timestamp = more.pop("timestamp", NOW_MS)
    records = [Record(key, value, timestamp=timestamp) for value in values]
    return bytes(build_batch(records, **more))


def produce(
    client: WireClient,
    topic: str,
    records: bytes | None,
    *,
    version: int = 9,
    acks: int = -1,
    transactional_id: str | None = None,
) -> tuple[Any, ...]:
    """Produce to partition 0 and return what does not depend on the clock."""
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    answer = client.call(request, version, ProduceResponse).responses[0].partition_responses[0]
    indexes = [error.batch_index for error in answer.record_errors]
    stamped = answer.log_append_time_ms >= 0
    return answer.error_code, answer.base_offset, stamped, answer.log_start_offset, indexes


def fetch(client: WireClient, topic: str, offset: int, **more: Any) -> tuple[Any, ...]:
    """Fetch partition 0 once and return the answer's partition, batches as their offsets."""
    version = more.pop("version", 12)
    request = FetchRequest(
        max_wait_ms=more.pop("max_wait_ms", 100),
        min_bytes=1,
        max_bytes=more.pop("max_bytes", 1 << 20),
        isolation_level=more.pop("isolation_level", 0),
        replica_id=more.pop("replica_id", -1),
        session_epoch=more.pop("session_epoch", -1),
        session_id=more.pop("session_id", 0),
    )
    if version >= 15:
        request.replica_state = ReplicaState()
    partition = FetchPartition(
        partition=more.pop("partition", 0),
        fetch_offset=offset,
        partition_max_bytes=more.pop("partition_max_bytes", 1 << 20),
        **more,
    )
    request.topics = [FetchTopic(topic=topic, partitions=[partition])]
    answer = client.call(request, version, FetchResponse)
    if not answer.responses:
        return (answer.error_code,)
    data = answer.responses[0].partitions[0]
    records = data.records
    assert not hasattr(records, "file")
    batches = []
    if records:
        position = 0
        while len(records) - position >= 12:  # the last batch may be cut
            size = 12 + int.from_bytes(records[position + 8 : position + 12], "big")
            if size > len(records) - position:
                break
            (one,) = parse_batches(records[position : position + size])
            batches.append((one.base_offset, one.last_offset, one.partition_leader_epoch))
            position += size
    diverging = data.diverging_epoch
    return (
        answer.error_code,
        data.error_code,
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        data.aborted_transactions,
        None if diverging is None else (diverging.epoch, diverging.end_offset),
        batches,
    )


def list_offset(
    client: WireClient, topic: str, timestamp: int, *, version: int = 7, **more: int
) -> tuple[int, int, int, int]:
    """The answer for partition 0."""
    partition = ListOffsetsPartition(
        partition_index=more.get("partition", 0),
        timestamp=timestamp,
        current_leader_epoch=more.get("current_leader_epoch", -1),
    )
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=more.get("isolation_level", 0),
        topics=[ListOffsetsTopic(name=topic, partitions=[partition])],
    )
    answer = client.call(request, version, ListOffsetsResponse).topics[0].partitions[0]
    return answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch


def good_batches(client: WireClient) -> list[Any]:
    create(client, "good")
    seen = [produce(client, "good", batch(b"a", b"b", b"c"))]
    seen += [produce(client, "good", batch(b"x" * 200, compression=each)) for each in Compression]
    seen += [produce(client, "good", batch(b"v"), version=version) for version in range(7, 13)]
    seen += [produce(client, "good", batch(b"v"), acks=1)]
    create(client, "stamped", message_timestamp_type="LogAppendTime")
    return [*seen, produce(client, "stamped", batch(b"old", timestamp=1))]


def bad_batches(client: WireClient) -> list[Any]:
    create(client, "bad")
    whole = batch(b"one", b"two")
    spoiled = bytearray(whole)
    spoiled[-1] ^= 1
    shifted = bytearray(whole)
    shifted[7] = 9
    record = frames.one_record(b"v")
    return [
        produce(client, "bad", records)
        for records in (
            b"",
            whole[:-5],
            whole[:40],
            bytes(spoiled),
            bytes(shifted),
            whole + whole,
            frames.batch(record, 1, magic=1),
            frames.batch(record, 1, magic=3),
            frames.batch(record, 1, count=2),
            frames.batch(record, 1, count=0),
            frames.batch(record, 1, count=-1),
            frames.batch(record, 1, last_offset_delta=5),
            frames.batch(record, 1, attributes=0x20),
            frames.batch(record + b"\x02\x00", 2),
            whole + whole[:30],
            bytes(10) + b"\0\5" + whole[12:],
            batch(b"v", producer_id=7, producer_epoch=0, base_sequence=-1),
        )
    ]


UNREADABLE = (
    (frames.batch(b"\xff\xff\xff\xff\xff\xff", 1), ErrorCode.INVALID_RECORD),
    (frames.batch(b"not gzip", 1, attributes=1), ErrorCode.CORRUPT_MESSAGE),
    (frames.batch(b"not lz4", 1, attributes=3), ErrorCode.CORRUPT_MESSAGE),
    (frames.batch(b"not zstd", 1, attributes=4), ErrorCode.CORRUPT_MESSAGE),
)


@pytest.mark.parametrize(("records", "error"), UNREADABLE, ids=["varint", "gzip", "lz4", "zstd"])
def test_where_apache_fails_on_unreadable_records_we_name_the_reason(
    records: bytes, error: ErrorCode, apache_node: ApacheNode, module_server: ServerProcess
) -> None:
    """docs/DEVIATIONS.md, Produce: Apache answers UNKNOWN_SERVER_ERROR for these."""
    with WireClient(apache_node.bootstrap) as apache, WireClient(module_server.bootstrap) as ours:
        create(apache, "unreadable")
        create(ours, "unreadable")
        assert produce(apache, "unreadable", records)[0] == ErrorCode.UNKNOWN_SERVER_ERROR
        assert produce(ours, "unreadable", records)[0] == error


def refusals_around_a_batch(client: WireClient) -> list[Any]:
    create(client, "small", max_message_bytes="1000")
    create(client, "compacted", cleanup_policy="compact")
    zstd = batch(b"v" * 100, compression=Compression.ZSTD)
    return [
        produce(client, "small", batch(b"v" * 2000)),
        produce(client, "small", batch(b"v"), acks=2),
        produce(client, "small", batch(b"v"), acks=-2),
        produce(client, "small", zstd, version=6)[0],
        produce(client, "compacted", batch(b"a", b"b", key=None)),
        produce(client, "compacted", batch(b"a")),
        produce(client, "small", batch(b"v", timestamp=NOW_MS + DAY_MS)),
        produce(client, "small", batch(b"v", is_transactional=True))[0],
    ]


def unknown_places(client: WireClient) -> list[Any]:
    return [
        produce(client, "no-such-topic", batch(b"v")),
        fetch(client, "no-such-topic", 0),
        list_offset(client, "no-such-topic", -1),
    ]


def idempotent_producer(client: WireClient) -> list[Any]:
    create(client, "idempotent")

    def send(sequence: int, epoch: int = 0, count: int = 2) -> tuple[Any, ...]:
        return produce(
            client,
            "idempotent",
            batch(*[b"v"] * count, producer_id=4242, producer_epoch=epoch, base_sequence=sequence),
        )

    seen = [send(0), send(2), send(4), send(6), send(8), send(10)]
    seen += [send(10), send(8), send(2)]  # retries of what is remembered
    seen += [send(0)]  # a retry of what is forgotten
    seen += [send(20), send(11)]  # a gap, an overlap
    seen += [send(5, epoch=1), send(0, epoch=1), send(2, epoch=0)]
    return seen


def other_codecs(client: WireClient) -> list[Any]:
    seen: list[Any] = []
    for name in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        create(client, f"as-{name}", compression_type=name)
        seen.append(produce(client, f"as-{name}", batch(b"v" * 500, b"w" * 500)))
        seen.append(produce(client, f"as-{name}", batch(b"v" * 500, compression=Compression.GZIP)))
        seen.append(fetch(client, f"as-{name}", 0))
    return seen


def filled(client: WireClient, topic: str) -> None:
    """Ten batches of two records, a second apart."""
    create(client, topic)
    if list_offset(client, topic, -1)[2] == 0:
        for number in range(10):
            produce(client, topic, batch(b"a", b"b", timestamp=NOW_MS + 1000 * number))


def fetches(client: WireClient) -> list[Any]:
    filled(client, "filled")
    seen = [fetch(client, "filled", offset) for offset in (0, 1, 7, 19, 20, 21, -1)]
    seen += [fetch(client, "filled", 0, version=version) for version in range(4, 13)]
    seen += [fetch(client, "filled", 3, partition_max_bytes=size) for size in (0, 1, 100, 200)]
    seen += [fetch(client, "filled", 3, max_bytes=size) for size in (0, 1, 100, 200)]
    seen += [fetch(client, "filled", 5, isolation_level=1)]
    seen += [fetch(client, "filled", 0, current_leader_epoch=epoch) for epoch in (0, 1, 9)]
    seen += [fetch(client, "filled", 5, last_fetched_epoch=epoch) for epoch in (0, 3)]
    seen += [fetch(client, "filled", 25, last_fetched_epoch=0)]
    seen += [fetch(client, "filled", 0, partition=7)]
    return seen


def fetch_sessions(client: WireClient) -> list[Any]:
    filled(client, "filled")
    return [
        fetch(client, "filled", 0, session_id=12345, session_epoch=1),
        fetch(client, "filled", 0, session_id=0, session_epoch=3),
        fetch(client, "filled", 0, session_id=12345, session_epoch=-1)[1:3],
        fetch(client, "filled", 0, session_id=12345, session_epoch=0)[1:3],
    ]


def offsets_by_time(client: WireClient) -> list[Any]:
    filled(client, "filled")
    relative = []
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, NOW_MS, NOW_MS + 2500, NOW_MS + 99_000):
        for version in (1, 4, 7, 8, 9, 10, 11):
            error, found, offset, epoch = list_offset(client, "filled", timestamp, version=version)
            relative.append((timestamp, version, error, found, offset, epoch))
    relative += [list_offset(client, "filled", -1, current_leader_epoch=e) for e in (0, 1, 9)]
    relative += [list_offset(client, "filled", -1, isolation_level=1)]
    relative += [list_offset(client, "filled", -1, partition=3)]
    return relative


def topics_by_name(client: WireClient) -> list[Any]:
    create(client, "known")
    seen: list[Any] = []
    for name in ("known", "unknown", "bad name", "", ".", "..", "x" * 250, "a/b"):
        for version in (1, 4, 9, 12, 13):
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name)],
                allow_auto_topic_creation=version < 4,
            )
            if version < 4 and name == "unknown":
                continue  # it would be created
            (topic,) = client.call(request, version, MetadataResponse).topics
            partitions = [
                (each.error_code, each.partition_index, each.leader_epoch, len(each.replica_nodes))
                for each in topic.partitions
            ]
            seen.append((version, topic.error_code, topic.name, topic.is_internal, partitions))
    return seen


def operations_and_ids(client: WireClient) -> list[Any]:
    create(client, "known")
    seen: list[Any] = []
    for version in (8, 9, 10):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name="known")],
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        answer = client.call(request, version, MetadataResponse)
        topic = answer.topics[0]
        seen.append((answer.cluster_authorized_operations, topic.topic_authorized_operations))
    unknown = MetadataRequestTopic(name=None, topic_id=type(topic.topic_id)(b"\x05" * 16))
    answer = client.call(MetadataRequest(topics=[unknown]), 12, MetadataResponse)
    return [*seen, (answer.topics[0].error_code, answer.topics[0].name)]


CASES: tuple[Callable[[WireClient], list[Any]], ...] = (
    good_batches,
    bad_batches,
    refusals_around_a_batch,
    unknown_places,
    idempotent_producer,
    other_codecs,
    fetches,
    fetch_sessions,
    offsets_by_time,
    topics_by_name,
    operations_and_ids,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_apache_and_we_answer_alike(
    case: Callable[[WireClient], list[Any]],
    apache_node: ApacheNode,
    module_server: ServerProcess,
) -> None:
    with WireClient(apache_node.bootstrap) as apache, WireClient(module_server.bootstrap) as ours:
        expected, seen = case(apache), case(ours)
    different = [
        (number, apaches, our)
        for number, (apaches, our) in enumerate(zip(expected, seen, strict=True))
        if apaches != our
    ]
    assert not different, "\n".join(map(str, different))


def set_for_all(client: WireClient, key: str, value: str | None) -> int:
    """Change or take away a setting of all brokers while they run; return the error code."""
    change = AlterableConfig(name=key, config_operation=int(value is None), value=value)
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = client.call(request, 1, IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code


def is_served(bootstrap: str) -> bool:
    """Whether a new connection is served, or closed at once."""
    with WireClient(bootstrap) as client:
        try:
            client.call(ApiVersionsRequest(), 2, ApiVersionsResponse)
        except (AssertionError, ConnectionError):
            return False
    return True


def change_share_of_an_address(bootstrap: str) -> None:
    with WireClient(bootstrap) as admin:
        assert set_for_all(admin, "max.connections.per.ip", "1") == ErrorCode.NONE
        until(lambda: not is_served(bootstrap), lambda: f"{bootstrap}: the admin is one")
        assert set_for_all(admin, "max.connections.per.ip", "50") == ErrorCode.NONE
        until(lambda: is_served(bootstrap), lambda: bootstrap)
        assert set_for_all(admin, "max.connections.per.ip", None) == ErrorCode.NONE


def test_changed_share_of_an_address_is_obeyed_alike(tmp_path: Path) -> None:
    """On nodes of its own: nobody else's connections count, and nobody else is refused."""
    for name in ("apache", "ours"):
        (tmp_path / name).mkdir()
    with ApacheNode(tmp_path / "apache") as apache, ServerProcess(tmp_path / "ours") as ours:
        for bootstrap in (apache.bootstrap, ours.bootstrap):
            change_share_of_an_address(bootstrap)
