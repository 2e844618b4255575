"""Three brokers of ours replicate partitions: leaders die, and nothing acknowledged is lost.

Whole nodes over simulated disks. A death is a power loss: what was never synced is gone, so that a
record survives by its replicas or not at all.
"""

from dataclasses import dataclass, field
from random import Random

import pytest

from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.node.quorum import DIRECTORY, NodeQuorum

COMBINED = {"process.roles": "broker,controller", "replica.fetch.backoff.ms": "100"}
PRODUCER_ID = 4_000
ANSWER_MS = 3_000


class Cluster(NodeQuorum):
    """Combined nodes 1, 2 and 3."""

    def __init__(self, **settings: str) -> None:
        overrides = {key.replace("_", "."): value for key, value in settings.items()}
        super().__init__(settings={**COMBINED, **overrides})
        self.elect()
        self.until(lambda: all(each.running.serves_clients for each in self.members.values()))
        self.level()

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic of three replicas."""
        values = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        wanted = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=3, configs=values
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
        answer = self.ask(1, request, listener="PLAINTEXT")
        self.until(lambda: answer.response is not None)
        assert answer.response.topics[0].error_code == ErrorCode.NONE
        self.level()

    def view(self, name: str, partition: int = 0):  # an image's partition
        """What the furthest node knows of a partition."""
        image = max(self.images(), key=lambda each: each.offset)
        return image.topics_by_name[name].partitions[partition]

    def await_isr(self, name: str, partition: int = 0, size: int = 3) -> None:
        self.until(lambda: len(self.view(name, partition).isr) == size, 60_000)

    def await_leader_other_than(self, dead: int, name: str) -> None:
        self.until(lambda: self.view(name).leader not in (dead, -1), 60_000)

    def content(self, node_id: int, name: str, partition: int = 0) -> bytes:
        """The bytes of a replica's log."""
        log = self.members[node_id].running.broker.partitions[name, partition].log
        return b"".join(each.file.pread(each.size_bytes, 0) for each in log.segments)

    def await_same_logs(self, name: str, partition: int = 0) -> bytes:
        """Wait until all replicas hold the same bytes, all of them committed."""

        def are_same() -> bool:
            logs = [self.content(node_id, name, partition) for node_id in self.members]
            held = [
                member.running.broker.partitions[name, partition]
                for member in self.members.values()
            ]
            committed = all(each.high_watermark == each.log_end_offset for each in held)
            return logs == [logs[0]] * len(logs) and committed

        self.until(are_same)
        return self.content(1, name, partition)

    def settled(self, request: object, node_id: int) -> object:
        """Ask, and wait for an answer for as long as a client would; None without one."""
        answer = self.ask(node_id, request, listener="PLAINTEXT")  # type: ignore[arg-type]  # a request
        end_ms = self.now_ms + ANSWER_MS
        while answer.response is None and self.now_ms < end_ms:
            self.advance(10)
        return answer.response


@dataclass
class Producer:
    """An idempotent producer of one partition: it repeats a batch until it is acknowledged."""

    cluster: Cluster
    partition: int = 0
    sent: list[bytes] = field(default_factory=list)
    errors: list[ErrorCode] = field(default_factory=list)

    def send(self) -> None:
        """Have one record acknowledged by the whole ISR."""
        value = f"{self.partition}-{len(self.sent)}".encode()
        batch = build_batch(
            [Record(None, value, timestamp=1)],
            producer_id=PRODUCER_ID + self.partition,
            producer_epoch=0,
            base_sequence=len(self.sent),
        )
        for _ in range(400):
            if self._try(bytes(batch)):
                self.sent.append(value)
                return
            self.cluster.advance(100)
        raise AssertionError(self.errors[-5:])

    def _try(self, batch: bytes) -> bool:
        leader = self.cluster.view("t", self.partition).leader
        if leader < 0 or self.cluster.members[leader].node is None:
            return False
        data = PartitionProduceData(index=self.partition, records=batch)
        topic_id = self.cluster.images()[0].topics_by_name["t"].topic_id
        topics = [TopicProduceData(name="t", topic_id=topic_id, partition_data=[data])]
        request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics)
        response = self.cluster.settled(request, leader)
        if response is None:
            return False
        code = response.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]  # a ProduceResponse
        self.errors.append(ErrorCode(code))
        assert code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the leader lost a batch"
        return bool(code == ErrorCode.NONE)


def values_of(log: bytes) -> list[bytes | None]:
    return [record.value for batch in parse_batches(log) for record in batch.records()]


def test_replicas_hold_the_leader_s_bytes() -> None:
    cluster = Cluster()
    cluster.create("t", 3)
    producers = [Producer(cluster, at) for at in range(3)]
    for _ in range(10):
        for producer in producers:
            producer.send()
    for producer in producers:
        assert values_of(cluster.await_same_logs("t", producer.partition)) == producer.sent


@pytest.mark.parametrize("seed", range(4))
def test_nothing_acknowledged_is_lost_or_doubled_when_brokers_lose_their_power(seed: int) -> None:
    random_source = Random(seed)
    cluster = Cluster()
    cluster.create("t", 2, min_insync_replicas="2")
    producers = [Producer(cluster, at) for at in range(2)]
    for _ in range(5):
        for _ in range(random_source.randrange(4)):
            for producer in producers:
                producer.send()
        victim = random_source.choice([cluster.view("t").leader, 1 + random_source.randrange(3)])
        if random_source.randrange(2):
            cluster.lose_power_in(victim, random_source.randrange(20))
            for producer in producers:
                producer.send()
        if cluster.members[victim].node is not None:
            cluster.kill(victim)
        for producer in producers:
            producer.send()
        cluster.advance(random_source.randrange(12_000))
        cluster.start(victim)
        for producer in producers:
            producer.send()
            cluster.await_isr("t", producer.partition)
    for producer in producers:
        assert values_of(cluster.await_same_logs("t", producer.partition)) == producer.sent


def test_a_broker_that_is_cut_off_comes_back_as_a_follower_and_loses_what_only_it_had() -> None:
    cluster = Cluster()
    cluster.create("t", min_insync_replicas="2")
    producer = Producer(cluster)
    producer.send()
    cluster.await_same_logs("t")
    old = cluster.view("t").leader
    cluster.cut.add(old)
    held = cluster.members[old].running.broker.partitions["t", 0]
    batch = build_batch([Record(None, b"only here", timestamp=1)])
    topic_id = cluster.images()[0].topics_by_name["t"].topic_id
    data = PartitionProduceData(index=0, records=bytes(batch))
    topics = [TopicProduceData(name="t", topic_id=topic_id, partition_data=[data])]
    lost = cluster.ask(old, ProduceRequest(acks=1, topic_data=topics), listener="PLAINTEXT")
    assert lost.response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert held.log_end_offset == 2
    cluster.await_leader_other_than(old, "t")
    producer.send()
    producer.send()
    cluster.cut.clear()
    cluster.await_isr("t")
    assert values_of(cluster.await_same_logs("t")) == producer.sent
    assert not held.is_leader


def test_followers_delete_what_the_leader_deletes() -> None:
    cluster = Cluster()
    cluster.create("t")
    producer = Producer(cluster)
    for _ in range(5):
        producer.send()
    asked = DeleteRecordsTopic(
        name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=3)]
    )
    request = DeleteRecordsRequest(topics=[asked], timeout_ms=5_000)
    response = cluster.settled(request, cluster.view("t").leader)
    (done,) = response.topics[0].partitions  # type: ignore[union-attr, attr-defined]  # an answer
    assert (done.error_code, done.low_watermark) == (ErrorCode.NONE, 3)
    for member in cluster.members.values():
        assert member.running.broker.partitions["t", 0].log_start_offset == 3


def test_a_partition_that_is_given_to_others_is_deleted() -> None:
    cluster = Cluster()
    cluster.create("t")
    producer = Producer(cluster)
    producer.send()
    cluster.await_same_logs("t")
    leader = cluster.view("t").leader
    gone = next(node_id for node_id in cluster.members if node_id != leader)
    kept = [node_id for node_id in cluster.members if node_id != gone]
    asked = ReassignablePartition(partition_index=0, replicas=kept)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=[asked])], timeout_ms=5_000
    )
    assert cluster.settled(request, leader) is not None
    broker = cluster.members[gone].running.broker
    cluster.until(lambda: ("t", 0) not in broker.partitions)
    assert not cluster.members[gone].fs.exists(f"{DIRECTORY}/t-0")
    producer.send()
    assert all(
        cluster.members[node_id].running.broker.partitions["t", 0].log_end_offset == 2
        for node_id in kept
    )


def test_a_partition_that_was_given_to_others_meanwhile_is_set_aside_at_the_start() -> None:
    """As Kafka keeps strays: the metadata may be what is wrong."""
    cluster = Cluster()
    cluster.create("t")
    Producer(cluster).send()
    cluster.await_same_logs("t")
    gone = next(each for each in cluster.members if each not in (cluster.view("t").leader, 1))
    cluster.members[gone].running.broker.partitions["t", 0].log.flush()
    cluster.keeps_unsynced = True
    cluster.kill(gone)
    kept = [node_id for node_id in cluster.members if node_id != gone]
    asked = ReassignablePartition(partition_index=0, replicas=kept)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=[asked])], timeout_ms=5_000
    )
    assert cluster.settled(request, cluster.view("t").leader) is not None
    cluster.until(lambda: cluster.view("t").replicas == tuple(kept), 60_000)
    member = cluster.members[gone]
    member.lines.clear()
    cluster.start(gone)
    cluster.until(lambda: any(name == "stray_log_set_aside" for name, _ in member.lines))
    assert ("t", 0) not in member.running.broker.partitions


def test_committed_offsets_survive_the_death_of_their_coordinator() -> None:
    cluster = Cluster(offsets_topic_replication_factor="3", group_initial_rebalance_delay_ms="0")
    cluster.create("t")
    for offset in (7, 8, 9):
        commit(cluster, offset)
        dead = cluster.view("__consumer_offsets").leader
        cluster.await_isr("__consumer_offsets")
        cluster.kill(dead)
        cluster.await_leader_other_than(dead, "__consumer_offsets")
        assert committed(cluster) == offset
        cluster.start(dead)
        assert committed(cluster) == offset
        cluster.await_isr("__consumer_offsets", size=3)


def coordinator(cluster: Cluster) -> int:
    """Whom a client is sent to."""
    for _ in range(400):
        running = next(each for each, member in cluster.members.items() if member.node is not None)
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        response = cluster.settled(request, running)
        if response is not None:
            (found,) = response.coordinators  # type: ignore[attr-defined]  # an answer
            if found.error_code == ErrorCode.NONE and cluster.members[found.node_id].node:
                return int(found.node_id)
        cluster.advance(100)
    raise AssertionError("nobody coordinates")


def commit(cluster: Cluster, offset: int) -> None:
    """Have an offset acknowledged, as a client does that repeats what may be repeated."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    for _ in range(400):
        request = OffsetCommitRequest(group_id="g", topics=[topic])
        answer = cluster.ask(coordinator(cluster), request, 9, listener="PLAINTEXT")
        cluster.advance(100)
        if answer.response is not None:
            (done,) = answer.response.topics[0].partitions
            if done.error_code == ErrorCode.NONE:
                return
    raise AssertionError(offset)


def committed(cluster: Cluster) -> int:
    """What the group committed."""
    for _ in range(400):
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        answer = cluster.ask(coordinator(cluster), request, 9, listener="PLAINTEXT")
        cluster.advance(100)
        if answer.response is not None:
            (group,) = answer.response.groups
            if group.error_code == ErrorCode.NONE:
                return int(group.topics[0].partitions[0].committed_offset)
            assert group.error_code in (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.NOT_COORDINATOR,
            )
    raise AssertionError("nobody knows")


def test_a_deleted_topic_is_followed_no_more() -> None:
    cluster = Cluster()
    cluster.create("t", 2)
    Producer(cluster).send()
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=5_000)
    assert cluster.settled(request, 1) is not None
    cluster.level()
    for member in cluster.members.values():
        broker = member.running.broker
        assert broker.partitions == {}
        assert broker.replicas.fetchers is not None
        assert not any(each.followed for each in broker.replicas.fetchers.by_leader.values())
    cluster.create("t")
    producer = Producer(cluster)
    producer.send()
    assert values_of(cluster.await_same_logs("t")) == producer.sent


def test_a_start_finds_the_high_watermark_that_was_written_every_five_seconds() -> None:
    cluster = Cluster()
    cluster.create("t")
    producer = Producer(cluster)
    for _ in range(3):
        producer.send()
    cluster.await_same_logs("t")
    follower = next(each for each in cluster.members if each != cluster.view("t").leader)
    log = cluster.members[follower].running.broker.partitions["t", 0].log
    log.flush()
    cluster.advance(5_000)
    cluster.keeps_unsynced = True
    cluster.kill(follower)
    cluster.cut.add(follower)
    cluster.start(follower)
    directory = cluster.members[follower].running._directories.metadata
    directory.load_logs(lambda topic: log.config, 0)
    assert directory.logs[TopicPartition("t", 0)].high_watermark == 3


def test_a_follower_asks_nothing_before_it_is_registered_and_nothing_after_it_stops() -> None:
    cluster = Cluster()
    cluster.create("t")
    follower = next(each for each in cluster.members if each != cluster.view("t").leader)
    node = cluster.members[follower].running
    (links,) = node._broker.links  # type: ignore[union-attr]  # a broker
    cluster.stop(follower)
    assert links.deadline_ms() is None
