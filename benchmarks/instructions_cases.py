"""The requests whose instructions `benchmarks.instructions` counts.

Each case prepares a node, checks that its request succeeds, and returns the frames that are
counted. The versions of the requests are those of recent librdkafka and Java clients.
"""

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Final

from benchmarks.instructions_node import CONTROLLER, NODE_ID, WALL_MS, InProcessNode, frame_of
from kraft_wire.metadata.features import SUPPORTED_FEATURES
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.broker_heartbeat import BrokerHeartbeatRequest
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = ["CASES"]

_TOPIC: Final = "measured"
_REPLICATED: Final = "replicated"
_GROUP: Final = "group"
_FOLLOWER_ID: Final = 2
_CLIENT_METRICS: Final = 16
_PRODUCE_VERSION: Final = 9
_FETCH_VERSION: Final = 12
_FOLLOWER_FETCH_VERSION: Final = 17
_VALUE_BYTES_MAX: Final = 1 << 10
_FILL_BYTES: Final = 16 << 10
_FETCH_BYTES: Final = 64 << 10


Prepare = Callable[[InProcessNode, int], Iterable[bytes]]
"""Prepares a node, and returns frames of at least so many requests."""


def _same(node: InProcessNode, request: Message, version: int) -> Iterable[bytes]:
    """Ask once, which must succeed; then the same again and again."""
    answer: Any = node.ask(request, version)
    assert not getattr(answer, "error_code", 0), answer
    return repeat(frame_of(request, version))


def _create(node: InProcessNode, name: str, replicas: tuple[int, ...] = (NODE_ID,)) -> Uuid:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))
    topic = CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )
    answer: Any = node.ask(CreateTopicsRequest(topics=[topic]), 7)
    assert answer.topics[0].error_code == 0, answer
    topic_id: Uuid = answer.topics[0].topic_id
    return topic_id


def _produce_request(topic: str, value_bytes: int) -> ProduceRequest:
    sizes = [min(_VALUE_BYTES_MAX, value_bytes)] * max(1, value_bytes // _VALUE_BYTES_MAX)
    records = [
        Record(None, b"v" * size, timestamp=WALL_MS, offset=offset)
        for offset, size in enumerate(sizes)
    ]
    batch = build_batch(records)
    data = PartitionProduceData(index=0, records=bytes(batch))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=1, timeout_ms=10_000, topic_data=topics)


def _produce(value_bytes: int) -> Prepare:
    def prepare(node: InProcessNode, count: int) -> Iterable[bytes]:
        _create(node, _TOPIC)
        request = _produce_request(_TOPIC, value_bytes)
        answer: Any = node.ask(request, _PRODUCE_VERSION)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
        return repeat(frame_of(request, _PRODUCE_VERSION))

    return prepare


def _fetch(node: InProcessNode, count: int) -> Iterable[bytes]:
    topic_id = _create(node, _TOPIC)
    filling = frame_of(_produce_request(_TOPIC, _FILL_BYTES), _PRODUCE_VERSION)
    node.run(node.peer(), repeat(filling, 8))
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=_FETCH_BYTES)
    topic = FetchTopic(topic=_TOPIC, topic_id=topic_id, partitions=[partition])
    request = FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=_FETCH_BYTES, topics=[topic], session_epoch=-1
    )
    answer: Any = node.ask(request, _FETCH_VERSION)
    assert len(answer.responses[0].partitions[0].records) == _FETCH_BYTES, answer
    return repeat(frame_of(request, _FETCH_VERSION))


def _api_versions(node: InProcessNode, count: int) -> Iterable[bytes]:
    request = ApiVersionsRequest(client_software_name="software", client_software_version="1.0")
    return _same(node, request, 3)


def _metadata(node: InProcessNode, count: int) -> Iterable[bytes]:
    names = [f"{_TOPIC}-{number}" for number in range(10)]
    for name in names:
        _create(node, name)
    topics = [MetadataRequestTopic(name=name) for name in names]
    return _same(node, MetadataRequest(topics=topics), 12)


def _await_coordinator(node: InProcessNode) -> None:
    found: Any = node.ask(FindCoordinatorRequest(key=_GROUP), 3)
    while found.error_code != 0:
        found = node.ask(FindCoordinatorRequest(key=_GROUP), 3)


def _join(node: InProcessNode) -> Any:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"subscription")
    joining = JoinGroupRequest(
        group_id=_GROUP,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    _await_coordinator(node)
    joined: Any = node.ask(joining, 3)
    assert joined.error_code == 0, joined
    share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"assignment")
    syncing = SyncGroupRequest(
        group_id=_GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[share],
    )
    synced: Any = node.ask(syncing, 3)
    assert synced.error_code == 0, synced
    return joined


def _heartbeat(node: InProcessNode, count: int) -> Iterable[bytes]:
    joined = _join(node)
    request = HeartbeatRequest(
        group_id=_GROUP, generation_id=joined.generation_id, member_id=joined.member_id
    )
    return _same(node, request, 4)


def _consumer_group_heartbeat(node: InProcessNode, count: int) -> Iterable[bytes]:
    """A member that has all of its target, and says nothing new."""
    _create(node, _TOPIC)
    _await_coordinator(node)
    member_id = "vK0CJWJjQ7Wv0zDvX1pZtA"
    joining = ConsumerGroupHeartbeatRequest(
        group_id=_GROUP,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[_TOPIC],
        topic_partitions=[],
    )
    joined: Any = node.ask(joining, 1)
    assert joined.error_code == 0, joined
    assert joined.assignment.topic_partitions, joined
    request = ConsumerGroupHeartbeatRequest(
        group_id=_GROUP, member_id=member_id, member_epoch=joined.member_epoch
    )
    return _same(node, request, 1)


def _offset_commit(node: InProcessNode, count: int) -> Iterable[bytes]:
    _create(node, _TOPIC)
    joined = _join(node)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1_000)
    request = OffsetCommitRequest(
        group_id=_GROUP,
        generation_id_or_member_epoch=joined.generation_id,
        member_id=joined.member_id,
        topics=[OffsetCommitRequestTopic(name=_TOPIC, partitions=[partition])],
    )
    answer: Any = node.ask(request, 9)
    assert answer.topics[0].partitions[0].error_code == 0, answer
    return repeat(frame_of(request, 9))


def _register_follower(node: InProcessNode) -> int:
    registration = BrokerRegistrationRequest(
        broker_id=_FOLLOWER_ID,
        cluster_id=node.cluster_id,
        incarnation_id=Uuid(b"incarnation of 2"),
        listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=9094)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        log_dirs=[Uuid(b"directory of two")],
    )
    registered: Any = node.ask(registration, 4, CONTROLLER)
    assert registered.error_code == 0, registered
    heartbeat = BrokerHeartbeatRequest(
        broker_id=_FOLLOWER_ID,
        broker_epoch=registered.broker_epoch,
        current_metadata_offset=registered.broker_epoch,
    )
    alive: Any = node.ask(heartbeat, 1, CONTROLLER)
    assert not alive.is_fenced, alive
    epoch: int = registered.broker_epoch
    return epoch


def _follower_fetch(node: InProcessNode, count: int) -> Iterable[bytes]:
    """A follower in a session that gets a batch of 100 B with each fetch, and so has the last."""
    epoch = _register_follower(node)
    topic_id = _create(node, _REPLICATED, (NODE_ID, _FOLLOWER_ID))
    produced = frame_of(_produce_request(_REPLICATED, 100), _PRODUCE_VERSION)
    answers = node.run(node.peer(), repeat(produced, count + 1))
    assert answers == count + 1, answers

    def fetch(offset: int, session_id: int, session_epoch: int) -> FetchRequest:
        partition = FetchPartition(
            partition=0, fetch_offset=offset, current_leader_epoch=0, partition_max_bytes=1
        )
        topic = FetchTopic(topic_id=topic_id, partitions=[partition])
        return FetchRequest(
            replica_state=ReplicaState(replica_id=_FOLLOWER_ID, replica_epoch=epoch),
            max_wait_ms=500,
            min_bytes=1,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[topic],
        )

    first: Any = node.ask(fetch(0, 0, 0), _FOLLOWER_FETCH_VERSION)
    assert first.responses[0].partitions[0].error_code == 0, first
    return [
        frame_of(fetch(at, first.session_id, at), _FOLLOWER_FETCH_VERSION)
        for at in range(1, count + 1)
    ]


def _quorum_append(node: InProcessNode, count: int) -> Iterable[bytes]:
    def change(value: int) -> IncrementalAlterConfigsRequest:
        config = AlterableConfig(name="interval.ms", config_operation=0, value=str(value))
        resource = AlterConfigsResource(
            resource_type=_CLIENT_METRICS, resource_name="subscription", configs=[config]
        )
        return IncrementalAlterConfigsRequest(resources=[resource])

    answer: Any = node.ask(change(100_000), 1)
    assert answer.responses[0].error_code == 0, answer
    return [frame_of(change(100_001 + number), 1) for number in range(count)]


CASES: Final[dict[str, Prepare]] = {
    "produce 100 B": _produce(100),
    "produce 16 KiB": _produce(16 << 10),
    "fetch 64 KiB": _fetch,
    "ApiVersions": _api_versions,
    "Metadata, 10 topics": _metadata,
    "Heartbeat": _heartbeat,
    "ConsumerGroupHeartbeat": _consumer_group_heartbeat,
    "OffsetCommit": _offset_commit,
    "follower fetch": _follower_fetch,
    "quorum append": _quorum_append,
}
