"""Which partitions a broker fetches, as the metadata and its disks change."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.model import StorageError, TopicPartition
from tests.broker.small_broker import (
    broker_image,
    image_of,
    partition_image,
    publish,
    small_broker,
)

BROKERS = [broker_image(number) for number in (1, 2, 3)]


def followed(broker: Broker) -> dict[int, list[int]]:
    """The numbers of the partitions that are fetched from each leader."""
    fetchers = broker.replicas.fetchers
    assert fetchers is not None
    return {
        leader: sorted(number for _, number in fetcher.followed)
        for leader, fetcher in fetchers.by_leader.items()
    }


def view(number: int, leader: int, *, epoch: int = 0, replicas: tuple[int, ...] = (1, 2, 3)) -> Any:
    return partition_image(number, leader=leader, leader_epoch=epoch, replicas=replicas)


def show(broker: Broker, *views: Any, without: int = 0) -> None:
    known = [each for each in BROKERS if each.broker_id != without]
    publish(broker, image_of({"t": views} if views else {}, known))


def following() -> Broker:
    """Of four partitions 0 and 1 are led by broker 2, 2 by broker 3, and 3 here."""
    views = [view(0, 2), view(1, 2), view(2, 3), view(3, 1)]
    return small_broker(image_of({"t": views}, BROKERS))


def test_partitions_are_fetched_from_their_leaders() -> None:
    broker = following()
    assert followed(broker) == {2: [0, 1], 3: [2]}
    assert broker.replicas.has_replicated
    show(
        broker, view(0, 3, epoch=1), view(1, 1, epoch=1), view(2, -1, epoch=1), view(3, 2, epoch=1)
    )
    assert followed(broker) == {2: [3], 3: [0]}


def test_broker_alone_fetches_nothing() -> None:
    broker = small_broker(image_of({"t": [view(0, 1, replicas=(1,))]}, BROKERS))
    assert (broker.replicas.fetchers, broker.replicas.has_replicated) == (None, False)
    assert broker.replicas.leading is None
    show(broker, view(0, 1, epoch=1))
    assert broker.replicas.has_replicated
    assert broker.replicas.leading is not None
    assert broker.replicas.fetchers is None


def test_partition_that_is_deleted_or_given_to_others_is_fetched_no_more() -> None:
    broker = following()
    show(broker, view(0, 2), view(1, 2, epoch=1, replicas=(2, 3)), view(2, 3), view(3, 1))
    assert followed(broker) == {2: [0], 3: [2]}
    assert set(broker.partitions) == {("t", 0), ("t", 2), ("t", 3)}
    show(broker)
    assert followed(broker) == {2: [], 3: []}
    assert broker.partitions == {}


def test_fetcher_of_a_broker_that_is_gone_is_dropped_when_it_is_idle() -> None:
    broker = following()
    kept = [view(0, 2), view(1, 2), view(3, 1)]
    show(broker, *kept, view(2, 1, epoch=1), without=3)
    assert followed(broker) == {2: [0, 1]}


@pytest.mark.parametrize("lost", [(0,), (0, 2), (0, 1, 2, 3), ()])
def test_partitions_of_a_failed_disk_are_fetched_no_more(lost: tuple[int, ...]) -> None:
    broker = following()
    logs: Any = broker.logs
    logs.failed_with = [TopicPartition("t", number) for number in (*lost, 9)]
    broker.partitions["t", 0].failed(StorageError("read", "/disk", "broken"))
    assert followed(broker) == {
        2: [number for number in (0, 1) if number not in lost],
        3: [number for number in (2,) if number not in lost],
    }
    offline = [number for (_, number), each in sorted(broker.partitions.items()) if each.offline]
    assert offline == list(lost)
    show(broker, *[view(number, 2, epoch=1) for number in range(4)])
    assert followed(broker) == {2: [number for number in range(4) if number not in lost], 3: []}


def test_stopped_broker_fetches_nothing_more() -> None:
    broker = following()
    broker.replicas.stop()
    assert followed(broker) == {}
    show(broker, *[view(number, 3, epoch=1) for number in range(4)])
    assert followed(broker) == {}
