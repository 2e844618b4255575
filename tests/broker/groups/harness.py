"""A group coordinator under virtual time, driven by encoded requests of several clients.

Requests and answers pass through the codecs in the version of the request, so an answer that its
version cannot carry fails here. The log is a list of batches in memory, built and read as on disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, ReplyTo, RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import (
    Appended,
    CoordinatorRecord,
    LogStretch,
    TransactionalWrite,
)
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.coordination.topic import CoordinatorTopicCreation
from kraft_wire.broker.dispatch import handler
from kraft_wire.broker.groups.assembly import offsets_topic
from kraft_wire.broker.groups.consumer.metadata_hash import TopicHashes
from kraft_wire.broker.groups.consumer.topic_versions import TopicVersions
from kraft_wire.broker.groups.coordinator import GroupCoordinator
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.producing.transaction_marker import TransactionMarker
from kraft_wire.broker.purgatory import DelayedOperation, DelayedOperationPurgatory
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from kraft_wire.metadata.image import (
    BrokerImage,
    EndpointImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from kraft_wire.model import ANONYMOUS, Uuid
from kraft_wire.sim.judge.group_memory import group_bytes, offsets_bytes
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import request_class, response_class
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches

WALL_MS = 1_700_000_000_000
NODE_ID = 1


class CountingChance:
    """Chance that counts: ids differ, and differ in the same way in every run."""

    def __init__(self) -> None:
        self.drawn = 0

    def below(self, bound: int) -> int:
        self.drawn += 1
        return (self.drawn * 0x9E3779B97F4A7C15F39CC0605CEDC835) % bound


class MemoryStore:
    """`__consumer_offsets` as lists of encoded batches; can be told to refuse appends."""

    def __init__(self) -> None:
        self.logs: dict[int, list[bytes]] = {}
        self.ends: dict[int, int] = {}
        self.refusals: list[ErrorCode] = []
        """Errors of the next appends, first first."""

    def append(
        self, partition: int, records: Sequence[CoordinatorRecord], at: ClockReading
    ) -> ErrorCode:
        if self.refusals:
            return self.refusals.pop(0)
        built = [Record(key, value, timestamp=at.wall_ms) for key, value in records]
        self.append_records(partition, built)
        return ErrorCode.NONE

    def append_for_later(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord],
        at: ClockReading,
        transaction: TransactionalWrite | None = None,
    ) -> Appended:
        if transaction is None:
            return Appended(self.append(partition, records, at))
        built = [Record(key, value, timestamp=at.wall_ms) for key, value in records]
        producer = {
            "producer_id": transaction.producer_id,
            "producer_epoch": transaction.producer_epoch,
        }
        self.append_records(partition, built, **producer, base_sequence=0, is_transactional=True)
        return Appended(ErrorCode.NONE)

    def append_marker(
        self, partition: int, marker: TransactionMarker, at: ClockReading
    ) -> Appended:
        if self.refusals:
            return Appended(self.refusals.pop(0))
        batch = marker.batch(at.wall_ms)
        end = self.ends.get(partition, 0)
        RecordBatch(memoryview(batch)).assign(end, 0)
        self.logs.setdefault(partition, []).append(bytes(batch))
        self.ends[partition] = end + 1
        return Appended(ErrorCode.NONE)

    def end_offset(self, partition: int) -> int:
        return self.ends.get(partition, 0)

    def append_records(self, partition: int, records: list[Record], **attributes: Any) -> None:
        """Append one batch as any coordinator might have."""
        end = self.ends.get(partition, 0)
        batch = build_batch(records, base_offset=end, partition_leader_epoch=0, **attributes)
        self.logs.setdefault(partition, []).append(bytes(batch))
        self.ends[partition] = end + len(records)

    def high_watermark(self, partition: int) -> int:
        return self.ends.get(partition, 0)

    def read(self, partition: int, offset: int, max_bytes: int) -> LogStretch | None:
        batches = [b for b in self.batches(partition) if b.last_offset >= offset]
        if not batches:
            return LogStretch((), offset, True)
        return LogStretch(batches[:1], batches[0].next_offset, len(batches) == 1)

    def batches(self, partition: int) -> list[RecordBatch]:
        """Return everything in a partition's log."""
        return [batch for data in self.logs.get(partition, []) for batch in parse_batches(data)]

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        """Return key and value of every record of every partition."""
        return [
            (record.key, record.value)
            for partition in sorted(self.logs)
            for batch in self.batches(partition)
            for record in batch.records()
        ]


class _ControllerElsewhere:
    """`ControllerChannel`: what was sent is under way, and nothing is answered at once."""

    def ask_now(self, now_ms: int, wall_ms: int) -> None:
        return None


class _NothingParks(DelayedOperationPurgatory):
    def park(self, operation: DelayedOperation) -> None:
        raise AssertionError("what a memory store has is committed")


def topic_id_of(name: str) -> Uuid:
    """Return an id that is made of the topic's name."""
    return Uuid(name.encode().ljust(16, b"\x01")[:16])


def partition_led(number: int, leader: int = NODE_ID, leader_epoch: int = 0) -> PartitionImage:
    """Return a partition of which only its leader matters here."""
    return PartitionImage(number, (leader,), (leader,), leader, leader_epoch, 0)


def image_of(topics: Mapping[str, TopicImage]) -> MetadataImage:
    """Return metadata with topics and one broker."""
    endpoint = EndpointImage("PLAINTEXT", "127.0.0.1", 9092)
    broker = BrokerImage(1, 1, Uuid(bytes(16)), {endpoint.name: endpoint}, {}, fenced=False)
    names = {topic.topic_id: name for name, topic in topics.items()}
    return MetadataImage(
        finalized_features={GROUP_VERSION: 1, SHARE_VERSION: 1, STREAMS_VERSION: 1},
        brokers={1: broker},
        topics_by_name=topics,
        topic_names=names,
    )


@dataclass
class Reply:
    """The answer to one request, when it comes."""

    version: int
    response: Any = None

    @property
    def is_parked(self) -> bool:
        return self.response is None

    @property
    def error(self) -> ErrorCode:
        assert self.response is not None, "the request is still parked"
        return ErrorCode(self.response.error_code)


class Harness:
    """One broker with a coordinator; `send` is a client, `advance` is time."""

    def __init__(
        self,
        *,
        store: MemoryStore | None = None,
        random_source: CountingChance | None = None,
        offsets_partitions: int = 1,
        **settings: Any,
    ) -> None:
        values = {"group_initial_rebalance_delay_ms": 0, "offsets_topic_num_partitions": 1}
        self.settings = BrokerSettings(**(values | settings))
        self.now_ms = 1_000
        self.wall_ms = WALL_MS
        self.store = store or MemoryStore()
        self.random_source = random_source or CountingChance()
        self.controller_requests: list[Message] = []
        self.controller = _ControllerElsewhere()
        self.replies: dict[ReplyTo, Reply] = {}
        self.image = image_of({})
        topic = offsets_topic(lambda: self.settings)
        env = GroupEnvironment(
            settings=lambda: self.settings,
            random_source=self.random_source,
            complete=self._complete,
            commits=CommitWaits(topic, _NothingParks(), self._complete, lambda: self.now_ms),
            memory=MemoryUse(lambda: self.settings.group_coordinator_memory_max_bytes),
            image=lambda: self.image,
            topic_hashes=TopicHashes(),
            topic_versions=TopicVersions(),
            share_persister=lambda: self.share_persister,
        )

        def ask(request: Message, _: object) -> None:
            self.controller_requests.append(request)

        creation = CoordinatorTopicCreation(topic.name, ask)
        self.groups = GroupCoordinator(NODE_ID, topic, self.store, env, creation, ask)
        if offsets_partitions:
            self.create_topic("__consumer_offsets", offsets_partitions)
        self.settle()

    # What handlers ask of a broker.

    rights: Any = None
    share_persister: Any = None
    share_states: Any = None

    def topic_name(self, topic_id: Uuid) -> str | None:
        topic = self.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    # What tests do.

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Add a topic to the metadata."""
        numbers = {number: partition_led(number) for number in range(partitions)}
        topic = TopicImage(name, topic_id_of(name), numbers)
        self.publish(image_of({**self.image.topics_by_name, name: topic}))

    def delete_topic(self, name: str) -> None:
        """Take a topic out of the metadata."""
        self.publish(self.image_without(name))

    def image_without(self, name: str) -> MetadataImage:
        """Return the metadata as if a topic were gone."""
        topics = self.image.topics_by_name
        return image_of({each: topics[each] for each in topics if each != name})

    def lead(self, name: str, leader: int, leader_epoch: int) -> None:
        """Give the first partition of a topic to a leader."""
        topic = self.image.topics_by_name[name]
        led = {**topic.partitions, 0: partition_led(0, leader, leader_epoch)}
        moved = TopicImage(name, topic.topic_id, led)
        self.publish(image_of({**self.image.topics_by_name, name: moved}))

    def publish(self, image: MetadataImage) -> None:
        """Make an image the current one."""
        old, self.image = self.image, image
        self.groups.published(MetadataDelta.between(old, image), self.now_ms)

    def settle(self) -> None:
        """Do everything that is due now."""
        for _ in range(1_000):
            self.groups.runtime.tick(self.now_ms, self.wall_ms)
            deadline_ms = self.groups.runtime.deadline_ms()
            if deadline_ms is None or deadline_ms > self.now_ms:
                self.check_memory()
                return
        raise AssertionError("the coordinator is never done")

    def check_memory(self) -> None:
        """What is counted as memory is what is there, counted again."""
        expected = 0
        shards = self.groups.shards()
        assert not isinstance(shards, ErrorCode)
        for shard in shards:
            groups = (*shard.groups.values(), *shard.other_groups.values())
            expected += sum(map(group_bytes, groups)) + offsets_bytes(shard)
        assert self.groups.env.memory.total_bytes == expected

    def advance(self, ms: int) -> None:
        """Let time pass, waking the coordinator whenever it asked for it."""
        end_ms = self.now_ms + ms
        while True:
            deadline_ms = self.groups.runtime.deadline_ms()
            if deadline_ms is None or deadline_ms > end_ms:
                break
            self._move_to(max(deadline_ms, self.now_ms))
            self.settle()
        self._move_to(end_ms)

    def send(
        self,
        request: Message,
        version: int,
        *,
        client_id: str | None = "client",
        client_host: str = "127.0.0.1",
        connection: int = 1,
    ) -> Reply:
        """Send a request as the bytes of a version."""
        api_key = request.API_KEY
        decoded, end = request_class(api_key).decode(request.encode(version), version)
        assert end == len(request.encode(version))
        reply_to = ReplyTo(connection, len(self.replies))
        reply = Reply(version)
        self.replies[reply_to] = reply
        context = RequestContext(
            *reply_to,
            api_version=version,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            client_id=client_id,
            client_host=client_host,
            listener="PLAINTEXT",
            principal=ANONYMOUS,
        )
        answer = handler(api_key)(cast(Broker, self), context, decoded)
        if answer is not PARKED:
            self._complete(reply_to, cast(Message, answer))
        return reply

    def restart(self, **settings: Any) -> Harness:
        """Return a new coordinator over the same log."""
        fresh = Harness(store=self.store, random_source=self.random_source, **settings)
        fresh.wall_ms = self.wall_ms
        for topic in self.image.topics():
            if topic.name != "__consumer_offsets":
                fresh.create_topic(topic.name, len(topic.partitions))
        return fresh

    def group(self, group_id: str) -> Any:
        """Return the group's state."""
        shard = self.groups.shard_of(group_id)
        assert not isinstance(shard, ErrorCode), shard
        return shard.groups[group_id]

    def _move_to(self, now_ms: int) -> None:
        self.wall_ms += now_ms - self.now_ms
        self.now_ms = now_ms

    def _complete(self, reply_to: ReplyTo, response: Message) -> None:
        reply = self.replies[reply_to]
        assert reply.response is None, "answered twice"
        data = response.encode(reply.version)
        reply.response, _ = response_class(response.API_KEY).decode(data, reply.version)
