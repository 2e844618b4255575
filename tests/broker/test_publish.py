"""Following the metadata by deltas: the state that a whole scan gives, for the work of a change."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from types import CodeType, FrameType
from typing import Any, cast

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import (
    EMPTY_IMAGE,
    TOPIC_RESOURCE,
    MetadataImage,
    TopicImage,
)
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message
from tests.broker.small_broker import NumbersLogs, publish, small_broker

OURS = 1
PARTITIONS = 3


def logs_of(broker: Broker) -> NumbersLogs:
    return cast(Any, broker.logs)


def state(broker: Broker) -> dict[object, object]:
    """What a broker makes of the metadata, partition by partition, in the order of its maps."""
    fetched: dict[tuple[Uuid, int], int] = {}
    if broker.replicas.fetchers is not None:
        for leader_id, fetcher in broker.replicas.fetchers.by_leader.items():
            fetched |= {(key[0], key[1]): leader_id for key in fetcher.followed}
    return {
        name: (
            partition.topic_id,
            partition.leader_epoch,
            partition.is_leader,
            partition.offline,
            partition.leadership is not None,
            sorted(partition.log.epochs._epochs),
            logs_of(broker).logs[TopicPartition(*name)].config,
        )
        for name, partition in broker.partitions.items()
    } | {"followed": fetched, "logs": list(logs_of(broker).logs)}


def check_against_image(broker: Broker) -> None:
    """Hold every partition against the image, the obvious way."""
    image, here = broker.image, dict(broker.partitions)
    for topic in image.topics():
        config = LogConfig.from_mapping(image.config(TOPIC_RESOURCE, topic.name))
        for number, view in topic.partitions.items():
            if OURS not in view.replicas:
                continue
            partition = here.pop((topic.name, number))
            assert partition.topic_id == topic.topic_id
            assert partition.leader_epoch == view.leader_epoch
            assert partition.is_leader == (view.leader == OURS)
            leads_others = partition.is_leader and len(view.replicas) > 1
            assert (partition.leadership is not None) == leads_others
            assert logs_of(broker).logs[TopicPartition(topic.name, number)].config == config
    assert not here, "nothing is here that is not ours"
    assert broker.partitions.keys() == logs_of(broker).logs.keys()


class History:
    """A metadata log that is drawn: topics come, change, go and come again."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.loader = MetadataLoader()

    def topic(self) -> TopicImage | None:
        topics = list(self.loader.image.topics())
        return self.random.choice(topics) if topics else None

    def replicas(self) -> list[int]:
        return self.random.sample((1, 2, 3), self.random.randrange(1, 4))

    def append(self, *records: Message) -> None:
        self.loader.take_batch(records, self.loader.last_offset + 1, 1)

    def partition(self, topic_id: Uuid, number: int) -> PartitionRecord:
        replicas = self.replicas()
        leader = self.random.choice(replicas)
        return PartitionRecord(
            partition_id=number, topic_id=topic_id, replicas=replicas, isr=replicas, leader=leader
        )

    def create(self) -> None:
        name = self.random.choice("abcdefgh")
        if self.loader.image.topic(name) is None:
            topic_id = Uuid(b"\x01" + self.random.randbytes(15))
            partitions = [self.partition(topic_id, each) for each in range(PARTITIONS)]
            self.append(TopicRecord(name=name, topic_id=topic_id), *partitions)

    def change(self) -> None:
        topic = self.topic()
        if topic is not None:
            replicas = self.replicas()
            leader = self.random.choice([*replicas, -1])
            number = self.random.choice(list(topic.partitions))
            self.append(
                PartitionChangeRecord(
                    topic_id=topic.topic_id,
                    partition_id=number,
                    replicas=replicas,
                    isr=replicas,
                    leader=leader,
                )
            )

    def grow(self) -> None:
        topic = self.topic()
        if topic is not None:
            self.append(self.partition(topic.topic_id, len(topic.partitions)))

    def remove(self) -> None:
        topic = self.topic()
        if topic is not None:
            self.append(RemoveTopicRecord(topic_id=topic.topic_id))

    def configure(self) -> None:
        topic = self.topic()
        if topic is not None:
            value = self.random.choice(("1", "2", None))
            self.append(setting(topic.name, value))

    def step(self) -> None:
        kinds = (self.create, self.change, self.change, self.grow, self.remove, self.configure)
        self.random.choice(kinds)()


def setting(topic: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name=topic, name="segment.ms", value=value
    )


@pytest.mark.parametrize("seed", range(40))
def test_deltas_of_a_log_give_the_state_that_whole_scans_give(seed: int) -> None:
    history = History(seed)
    by_deltas, by_scans = small_broker(EMPTY_IMAGE), small_broker(EMPTY_IMAGE)
    history.loader.take_delta()
    most = 0
    for _ in range(150):
        history.step()
        if history.random.random() < 0.6:
            by_deltas.publish(history.loader.take_delta(), 0, 0)
            publish(by_scans, history.loader.image)
            assert state(by_deltas) == state(by_scans)
            check_against_image(by_deltas)
            most = max(most, len(by_deltas.partitions))
    assert most >= PARTITIONS, "the history led to something"


MONITORING: Any = getattr(sys, "monitoring", None)
"""From Python 3.12 on, where a trace function that is set late misses instructions."""
TOOL_ID = 4


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count what Python executes meanwhile, instruction by instruction."""
    executed = [0]
    with counted_by_monitoring(executed) if MONITORING else counted_by_tracing(executed):
        yield executed


@contextmanager
def counted_by_monitoring(executed: list[int]) -> Iterator[None]:
    def instruction(code: CodeType, offset: int) -> None:
        executed[0] += 1

    MONITORING.use_tool_id(TOOL_ID, "instructions")
    MONITORING.register_callback(TOOL_ID, MONITORING.events.INSTRUCTION, instruction)
    MONITORING.set_events(TOOL_ID, MONITORING.events.INSTRUCTION)
    try:
        yield
    finally:
        MONITORING.set_events(TOOL_ID, 0)
        MONITORING.free_tool_id(TOOL_ID)


@contextmanager
def counted_by_tracing(executed: list[int]) -> Iterator[None]:
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        executed[0] += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def work(topics: int, partitions: int, change: Callable[[Uuid], Message]) -> int:
    """Return what it costs to follow one change in a cluster of that size, led by others."""
    loader, broker = MetadataLoader(), small_broker(EMPTY_IMAGE)
    ids = [Uuid(number.to_bytes(16, "big")) for number in range(1, topics + 1)]
    for number, topic_id in enumerate(ids):
        made = [
            PartitionRecord(
                partition_id=each, topic_id=topic_id, replicas=[OURS], isr=[OURS], leader=OURS
            )
            for each in range(partitions)
        ]
        records = [TopicRecord(name=f"t{number:04}", topic_id=topic_id), *made]
        loader.take_batch(records, loader.last_offset + 1, 1)
    broker.publish(loader.take_delta(), 0, 0)
    loader.take_batch([change(ids[0])], loader.last_offset + 1, 1)
    assert loader.image.topics_by_name, "replayed before the work is measured"
    with counted() as executed:
        broker.publish(loader.take_delta(), 0, 0)
    check_against_image(broker)
    return executed[0]


CHANGES: Mapping[str, Callable[[Uuid], Message]] = {
    "a partition": lambda topic_id: PartitionChangeRecord(
        partition_id=0, topic_id=topic_id, leader=-1
    ),
    "a new topic": lambda _: TopicRecord(name="new", topic_id=Uuid(b"n" * 16)),
    "a setting": lambda _: ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name="new", name="segment.ms", value="1"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_work_of_a_publish_does_not_grow_with_the_cluster(change: str) -> None:
    few, many = (work(topics, 2, CHANGES[change]) for topics in (3, 900))
    assert 0 < many <= few + few // 10, (few, many)


def test_work_of_a_publish_does_not_grow_with_the_topic() -> None:
    few, many = (work(2, partitions, CHANGES["a partition"]) for partitions in (2, 900))
    assert 0 < many <= few + few // 10, (few, many)


def test_work_of_a_deletion_is_that_of_the_topic() -> None:
    def removal(topic_id: Uuid) -> Message:
        return RemoveTopicRecord(topic_id=topic_id)

    few, many = (work(topics, 2, removal) for topics in (3, 900))
    assert 0 < many <= few + few // 10, (few, many)


def test_publish_of_a_delta_from_another_image_is_refused() -> None:
    broker, elsewhere = small_broker(EMPTY_IMAGE), MetadataImage(offset=3)
    with pytest.raises(AssertionError, match="left out"):
        broker.publish(MetadataDelta.between(elsewhere, MetadataImage(offset=4)), 0, 0)
