"""A broker over a hand-made metadata image and logs that only remember numbers.

For handlers that look at metadata and log ends; what needs real bytes uses real storage.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.ports import LogDirectoryUsage
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import (
    BrokerImage,
    EndpointImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from kraft_wire.model import (
    ANONYMOUS,
    ZERO_UUID,
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    StorageError,
    TopicPartition,
    Uuid,
)
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.indexes import AbortedTransaction
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.wire.message import Message
from tests.broker.fetch_client import SeededRandomSource

LISTENER = "PLAINTEXT"


class NumbersLog:
    """A log without bytes: where it starts and ends, and which epochs it has seen."""

    def __init__(self, config: Mapping[str, str], epochs: Sequence[tuple[int, int]] = ()) -> None:
        self.config = LogConfig.from_mapping(config)
        self.producer_states = ProducerStates()
        self.high_watermark = Offset(0)
        self.log_start_offset = Offset(0)
        self.log_end_offset = Offset(0)
        self.unflushed_records = 0
        self.size_bytes = 0
        self.failure: Exception | None = None
        fs = SimFileSystem()
        fs.make_directory("/log")
        self.epochs = LeaderEpochs(fs, "/log")
        self.epochs._epochs = [LeaderEpoch(epoch) for epoch, _ in epochs]
        self.epochs._offsets = [Offset(offset) for _, offset in epochs]

    @property
    def last_stable_offset(self) -> Offset:
        return self.high_watermark

    def aborted_transactions(self, first: Offset, end: Offset) -> list[AbortedTransaction]:
        return []

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> OffsetAndEpoch:
        return self.epochs.end_offset_for_epoch(epoch, self.log_end_offset)

    def advance_log_start_offset(self, offset: Offset) -> bool:
        if self.failure is not None:
            raise self.failure
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        return True

    def grow(self, count: int) -> None:
        """Pretend that records were appended and committed."""
        self.log_end_offset = self.high_watermark = Offset(self.log_end_offset + count)


class NumbersLogs:
    """The port `LogStore` over `NumbersLog`."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, NumbersLog] = {}
        self.entries: list[LogDirectoryUsage] = []
        self.failed_with: list[TopicPartition] = []
        """What an error of the disk takes away."""

    def failed(self, partition: TopicPartition, error: StorageError) -> list[TopicPartition]:
        return self.failed_with

    def get(self, partition: TopicPartition) -> NumbersLog | None:
        return self.logs.get(partition)

    def create(
        self, partition: TopicPartition, topic_id: Uuid, config: Mapping[str, str], wall_ms: int
    ) -> NumbersLog:
        return self.logs.setdefault(partition, NumbersLog(config))

    def settle(self) -> None:
        return None

    def configure(self, partition: TopicPartition, config: Mapping[str, str]) -> None:
        self.logs[partition].config = LogConfig.from_mapping(config)

    def delete(self, partition: TopicPartition) -> None:
        del self.logs[partition]

    def expect_gaps(self, partition: TopicPartition) -> None:
        return None

    def usage(self) -> Sequence[LogDirectoryUsage]:
        return self.entries


class Controller:
    """The port `ControllerChannel`: keeps what was asked, answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Message]] = []
        self.answer_at_once: Callable[[Message], Message] | None = None
        self.broker: Broker | None = None

    def send(self, tag: str, request: Message) -> None:
        self.asked.append((tag, request))
        if self.answer_at_once is not None:
            assert self.broker is not None
            self.broker.controller_answered(tag, self.answer_at_once(request), self.broker.now_ms)

    def ask_now(self, now_ms: int, wall_ms: int) -> None:
        """What was sent has been answered or kept."""

    def controller_versions(self) -> None:
        """The controller is on this node."""


def id_of(topic: str) -> Uuid:
    """The id of a topic in these tests."""
    return Uuid(topic.encode()[:16].ljust(16, b"."))


def partition_image(index: int, *, leader: int = 1, leader_epoch: int = 0, **more: Any) -> Any:
    """One partition on broker 1 unless said otherwise."""
    replicas = more.pop("replicas", (1,))
    isr = more.pop("isr", replicas)
    return PartitionImage(index, replicas, isr, leader, leader_epoch, 0, **more)


def broker_image(broker_id: int, *, fenced: bool = False, listener: str = LISTENER) -> BrokerImage:
    """A registered broker that listens on port 9000 + id."""
    endpoint = EndpointImage(listener, f"host{broker_id}", 9000 + broker_id)
    return BrokerImage(
        broker_id, 10 + broker_id, ZERO_UUID, {listener: endpoint}, {}, rack=None, fenced=fenced
    )


def image_of(
    topics: Mapping[str, Iterable[PartitionImage]], brokers: Iterable[BrokerImage] = ()
) -> MetadataImage:
    """An image with these topics and brokers, broker 1 unless others are given."""
    known = list(brokers) or [broker_image(1)]
    images = {
        name: TopicImage(name, id_of(name), {each.partition: each for each in partitions})
        for name, partitions in topics.items()
    }
    return MetadataImage(
        offset=1,
        brokers={each.broker_id: each for each in known},
        topics_by_name=images,
        topic_names={id_of(name): name for name in topics},
    )


def small_broker(image: MetadataImage, **settings: Any) -> Broker:
    """Broker 1, which has published the image; its logs and controller are the fakes above."""
    logs, controller = NumbersLogs(), Controller()
    broker = Broker(
        node_id=1,
        cluster_id="tests-cluster",
        settings=BrokerSettings(**settings),
        logs=logs,  # type: ignore[arg-type]  # no bytes: append and read are absent on purpose
        controller=controller,
        image=MetadataImage(),
        random_source=SeededRandomSource(),
        broker_epoch=lambda: 11,
    )
    controller.broker = broker
    publish(broker, image)
    return broker


def publish(broker: Broker, image: MetadataImage, now_ms: int = 0) -> None:
    """Show a broker an image, compared as a whole with the one that it has.

    As in an image that records have changed, brokers that are the same are the same object.
    """
    known = broker.image.brokers
    if known and image.brokers == known:
        image = replace(image, brokers=known)
    broker.publish(MetadataDelta.between(broker.image, image), now_ms, 0)


def log_of(broker: Broker, topic: str, index: int = 0) -> NumbersLog:
    """The fake log of a partition."""
    log: Any = broker.partitions[topic, index].log
    assert isinstance(log, NumbersLog)
    return log


def context(version: int, *, now_ms: int = 0, listener: str = LISTENER) -> RequestContext:
    """The circumstances of a request in a version."""
    return RequestContext(1, 1, version, now_ms, 0, None, "127.0.0.1", listener, ANONYMOUS)


def each_version(versions: tuple[int, int]) -> Iterator[int]:
    """Every version of a handler's range."""
    return iter(range(versions[0], versions[1] + 1))
