"""`python -m benchmarks.codec [--quick]`: our codecs against kio's and kafka-python's.

Fifteen messages. Ours is encoded once; each peer decodes those bytes into its own object, which
it then encodes again, so that all sides work on the same content. Rounds alternate between the
sides in one process; processor time, medians over the rounds. A ratio is peer / ours: above 1 we
are faster. What a peer cannot do (a version it lacks, an exception) is left out of its mean.
Peers: kio of the `dev` extra, kafka-python of the `test` extra.
"""

import argparse
import importlib
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import Any

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.api_versions import ApiVersion, ApiVersionsResponse
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraft_wire.wire.generated.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kraft_wire.wire.generated.fetch_snapshot import (
    FetchSnapshotResponse,
    ResponsePartitionSnapshot,
    ResponseTopicSnapshot,
)
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import JoinGroupResponse, JoinGroupResponseMember
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kraft_wire.wire.message import Message

SCHEMAS = Path(__file__).parent.parent / "schemas" / "messages"
Work = Callable[[], object]
COMMANDS = {
    "ours": "M.encode(v), M.decode(bytes, v)",
    "kio": "entity_writer(M)(BytesIO(), m), entity_reader(M)(bytes, 0)",
    "kafka-python": "m.encode(version=v), M.decode(bytes, version=v)",
}
TARGETS = {
    ("kafka-python", "encode"): 4.0,
    ("kafka-python", "decode"): 2.4,
    ("kio", "encode"): 5.5,
    ("kio", "decode"): 0.7,
}


def metadata_response() -> MetadataResponse:
    """Build 100 topics of 10 partitions on 3 brokers."""
    partitions = [
        MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 3,
            leader_epoch=7,
            replica_nodes=[0, 1, 2],
            isr_nodes=[0, 1, 2],
        )
        for index in range(10)
    ]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=f"broker-{node}.example.net", port=9092)
            for node in range(3)
        ],
        cluster_id="emLPkFFwTh-KAOb8fNQt-w",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"orders-{topic:03}", topic_id=Uuid(bytes([topic]) * 16), partitions=partitions
            )
            for topic in range(100)
        ],
    )


def fetch_request() -> FetchRequest:
    """Build a full fetch of 100 partitions in 10 topics."""
    partitions = [
        FetchPartition(
            partition=index,
            fetch_offset=1000 + index,
            current_leader_epoch=3,
            partition_max_bytes=1 << 20,
        )
        for index in range(10)
    ]
    topics = [FetchTopic(topic=f"orders-{topic:03}", partitions=partitions) for topic in range(10)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics)


def fetch_response() -> FetchResponse:
    """Build 10 partitions with 10 KiB of records each."""
    partitions = [
        PartitionData(
            partition_index=index,
            high_watermark=5000,
            last_stable_offset=5000,
            log_start_offset=0,
            aborted_transactions=[],
            records=bytes(10240),
        )
        for index in range(10)
    ]
    return FetchResponse(
        session_id=1, responses=[FetchableTopicResponse(topic="orders", partitions=partitions)]
    )


def produce_request() -> ProduceRequest:
    """Build one partition with 16 KiB of records."""
    data = TopicProduceData(
        name="orders", partition_data=[PartitionProduceData(index=3, records=bytes(16384))]
    )
    return ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[data])


ANCHORS = {
    "MetadataResponse",
    "FetchRequest",
    "FetchResponse",
    "ProduceRequest",
    "FetchSnapshotResponse",
    "HeartbeatRequest",
}
"""The messages that the targets were set on; the other nine are shown and averaged beside them."""


def cases() -> list[tuple[Message, int]]:
    """Return the messages with their versions."""
    return [
        (metadata_response(), 12),
        (MetadataRequest(topics=[MetadataRequestTopic(name=f"t-{n}") for n in range(10)]), 12),
        (fetch_request(), 12),
        (fetch_response(), 12),
        (produce_request(), 9),
        (
            ProduceResponse(
                responses=[
                    TopicProduceResponse(
                        name="orders",
                        partition_responses=[
                            PartitionProduceResponse(index=index, base_offset=index)
                            for index in range(10)
                        ],
                    )
                ]
            ),
            9,
        ),
        (
            FetchSnapshotResponse(
                topics=[
                    ResponseTopicSnapshot(
                        name="__cluster_metadata",
                        partitions=[ResponsePartitionSnapshot(unaligned_records=bytes(1 << 20))],
                    )
                ]
            ),
            0,
        ),
        (HeartbeatRequest(group_id="billing", generation_id=4, member_id="consumer-1-abc"), 4),
        (HeartbeatResponse(), 4),
        (offset_commit_request(), 8),
        (list_offsets_request(), 6),
        (join_group_response(), 9),
        (
            ApiVersionsResponse(
                api_keys=[
                    ApiVersion(api_key=key, min_version=0, max_version=9) for key in range(75)
                ]
            ),
            3,
        ),
        (create_topics_request(), 7),
        (describe_configs_response(), 4),
    ]


def offset_commit_request() -> OffsetCommitRequest:
    """Build a commit of 20 partitions."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=index * 100, committed_metadata=""
        )
        for index in range(20)
    ]
    return OffsetCommitRequest(
        group_id="billing",
        member_id="consumer-1-abc",
        topics=[OffsetCommitRequestTopic(name="orders", partitions=partitions)],
    )


def list_offsets_request() -> ListOffsetsRequest:
    """Build a question about 20 partitions."""
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(20)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=partitions)])


def join_group_response() -> JoinGroupResponse:
    """Build the leader's answer for a group of 10."""
    members = [
        JoinGroupResponseMember(member_id=f"consumer-{index}-abcdef", metadata=bytes(60))
        for index in range(10)
    ]
    return JoinGroupResponse(
        generation_id=5,
        protocol_type="consumer",
        protocol_name="range",
        leader="consumer-0-abcdef",
        member_id="consumer-0-abcdef",
        members=members,
    )


def create_topics_request() -> CreateTopicsRequest:
    """Build 10 topics with 3 configs each."""
    configs = [
        CreatableTopicConfig(name="retention.ms", value="604800000"),
        CreatableTopicConfig(name="cleanup.policy", value="compact"),
        CreatableTopicConfig(name="min.insync.replicas", value="2"),
    ]
    topics = [
        CreatableTopic(name=f"t-{n}", num_partitions=6, replication_factor=3, configs=configs)
        for n in range(10)
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=30000)


def describe_configs_response() -> DescribeConfigsResponse:
    """Build one topic's 33 configs with a long documentation each."""
    configs = [
        DescribeConfigsResourceResult(
            name=f"config.name.{n}", value="604800000", config_source=5, documentation="x" * 200
        )
        for n in range(33)
    ]
    result = DescribeConfigsResult(
        resource_type=2, resource_name="orders", configs=configs, error_message=None
    )
    return DescribeConfigsResponse(results=[result])


def our_work(message: Message, number: int, data: bytes) -> tuple[Work, Work]:
    """Return our encode and decode."""
    decode = type(message).decode
    return lambda: message.encode(number), lambda: decode(data, number)


def kio_work(message: Message, number: int, data: bytes) -> tuple[Work, Work]:
    """Return kio's encode and decode."""
    from kio.serial import entity_reader, entity_writer

    name = message.NAME
    side = "request" if name.endswith("Request") else "response"
    module = type(message).__module__.rpartition(".")[2]
    peer: Any = getattr(importlib.import_module(f"kio.schema.{module}.v{number}.{side}"), name)
    read, write = entity_reader(peer), entity_writer(peer)
    value, _ = read(data, 0)

    def encode() -> bytes:
        buffer = BytesIO()
        write(buffer, value)
        return buffer.getvalue()

    return encode, lambda: read(data, 0)


def kafka_python_class(name: str) -> Any:
    """Find kafka-python's class; its codec compiler makes one it lacks from our schema file."""
    for package in ("metadata", "consumer", "producer", "admin"):
        found = getattr(importlib.import_module(f"kafka.protocol.{package}"), name, None)
        if found is not None:
            return found
    from kafka.protocol import api_data
    from kafka.protocol.api_message import ApiMessage

    original = api_data.load_json
    api_data.load_json = lambda wanted, package=None: json.loads(
        (SCHEMAS / f"{wanted}.json").read_text()
    )
    try:
        return type(ApiMessage)(name, (ApiMessage,), {})
    finally:
        api_data.load_json = original


def kafka_python_work(message: Message, number: int, data: bytes) -> tuple[Work, Work]:
    """Return kafka-python's encode and decode."""
    peer = kafka_python_class(message.NAME)
    value = peer.decode(data, version=number)
    value._header = None  # its decode leaves the slot empty, and its encode reads it
    return lambda: value.encode(version=number), lambda: peer.decode(data, version=number)


PEERS = {"kio": kio_work, "kafka-python": kafka_python_work}


def measure(work: Work, seconds: float) -> Callable[[], float]:
    """Find how many calls take about `seconds`; return what times them, in µs a call."""
    work()
    calls = 1
    while True:
        started = time.process_time()
        for _ in range(calls):
            work()
        if time.process_time() - started > seconds / 4:
            break
        calls *= 2

    def timed() -> float:
        started = time.process_time()
        for _ in range(calls):
            work()
        return (time.process_time() - started) / calls * 1e6

    return timed


def run(rounds: int, seconds: float) -> list[dict[str, object]]:
    """Measure every case on all sides; return a row for each message and direction."""
    rows: list[dict[str, object]] = []
    for message, number in cases():
        data = message.encode(number)
        sides = {"ours": our_work(message, number, data)}
        for name, prepare in PEERS.items():
            try:
                sides[name] = prepare(message, number, data)
                for work in sides[name]:
                    work()
            except Exception as error:  # noqa: BLE001  # a peer may fail in any way
                sides.pop(name, None)
                print(f"  {name} cannot do {message.NAME} v{number}: {error!r}", file=sys.stderr)
        for index, direction in enumerate(("encode", "decode")):
            timers = {name: measure(works[index], seconds) for name, works in sides.items()}
            samples: dict[str, list[float]] = {name: [] for name in timers}
            for _ in range(rounds):
                for name, timer in timers.items():
                    samples[name].append(timer())
            medians = {name: statistics.median(times) for name, times in samples.items()}
            spread = (max(samples["ours"]) - min(samples["ours"])) / medians["ours"]
            rows.append(
                {
                    "message": f"{message.NAME} v{number}",
                    "is_anchor": message.NAME in ANCHORS,
                    "bytes": len(data),
                    "direction": direction,
                    "us": medians,
                    "spread": spread,
                }
            )
    return rows


def show(rows: list[dict[str, object]]) -> dict[str, float]:
    """Print the table; return the geometric means of the ratios."""
    ratios: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    print(f"{'message':34} {'':6} {'ours µs':>9} {'spread':>6}   peer µs (ratio)")
    for row in rows:
        medians: Any = row["us"]
        peers = []
        for name, peer_us in medians.items():
            if name != "ours":
                ratio = peer_us / medians["ours"]
                ratios.setdefault((name, str(row["direction"])), []).append(
                    (ratio, bool(row["is_anchor"]))
                )
                peers.append(f"{name} {peer_us:.2f} ({ratio:.2f}x)")
        label = f"{row['message']:34} {row['direction']:6}"
        print(f"{label} {medians['ours']:9.2f} {row['spread']:6.0%}   {'  '.join(peers)}")
    means = {}
    for (name, direction), values in ratios.items():
        anchored = geometric_mean([ratio for ratio, is_anchor in values if is_anchor])
        everything = geometric_mean([ratio for ratio, _ in values])
        means[f"{name} {direction}"] = anchored
        means[f"{name} {direction}, all"] = everything
        target = TARGETS[name, direction]
        verdict = "reached" if anchored >= target else "NOT reached"
        print(
            f"geometric mean of {name} / ours, {direction}: {anchored:.2f} over the cases of the "
            f"target ({target}, {verdict}), {everything:.2f} over all {len(values)}"
        )
    return means


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean, 0 of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0.0


def installed(name: str) -> str:
    """Return a package's version, or that it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def main() -> int:
    """Print the table and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 short rounds")
    quick = parser.parse_args().quick
    versions = {name: installed(name) for name in PEERS}
    print(f"Python {platform.python_version()}, {versions}")
    for name, command in COMMANDS.items():
        print(f"  {name}: {command}")
    means = show(run(rounds=5 if quick else 15, seconds=0.01 if quick else 0.05))
    print(json.dumps({"benchmark": "codec", "versions": versions, "means": means}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
