"""A partition whose log the disk refuses is opened again when the disk says something else."""

from __future__ import annotations

import pytest

from kraft_wire.model import StorageError, TopicPartition
from tests.broker.small_broker import (
    NumbersLog,
    NumbersLogs,
    broker_image,
    image_of,
    partition_image,
    publish,
    small_broker,
)

PLACE = TopicPartition("t", 0)
IMAGE = image_of({"t": [partition_image(0)]}, [broker_image(1)])


def test_log_is_opened_again_only_when_the_refusal_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A directory that failed may have thousands of logs: each look is one question only."""
    first, second = StorageError("open", "/a", "EIO"), StorageError("open", "/a", "EIO")
    refusals: list[StorageError | None] = [first]
    asked: list[StorageError | None] = []

    def get(self: NumbersLogs, partition: TopicPartition) -> NumbersLog | None:
        refusal = refusals[-1]
        asked.append(refusal)
        if refusal is not None:
            raise refusal
        return self.logs.get(partition)

    monkeypatch.setattr(NumbersLogs, "get", get)
    broker = small_broker(IMAGE)
    partition = broker.partitions[PLACE]
    assert (partition.offline, asked) == (True, [first])
    for refusal, looks in ((first, 1), (second, 2), (second, 1)):
        refusals.append(refusal)
        asked.clear()
        broker.replicas.open_again(0, 0)
        assert asked == [refusal] * looks
        assert broker.partitions[PLACE].offline
    refusals.append(None)
    broker.replicas.open_again(0, 0)
    assert not broker.partitions[PLACE].offline
    asked.clear()
    broker.replicas.open_again(0, 0)
    assert asked == [], "it is open"


def test_partitions_that_change_are_followed_beside_one_that_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each change is also an attempt to open the refused one, and takes nothing from the others."""
    usual = NumbersLogs.get
    refusal = StorageError("open", "/a", "EIO")

    def get(self: NumbersLogs, partition: TopicPartition) -> NumbersLog | None:
        if partition == PLACE and is_refused:
            raise refusal
        return usual(self, partition)

    is_refused = True
    monkeypatch.setattr(NumbersLogs, "get", get)
    monkeypatch.setattr(NumbersLogs, "failed", lambda self, partition, error: [partition])
    other = TopicPartition("t", 1)
    brokers = [broker_image(1)]
    broker = small_broker(image_of({"t": [partition_image(0), partition_image(1)]}, brokers))
    assert [broker.partitions[each].offline for each in (PLACE, other)] == [True, False]
    for leader_epoch in (1, 2):
        is_refused = leader_epoch == 1
        changed = partition_image(1, leader_epoch=leader_epoch)
        publish(broker, image_of({"t": [partition_image(0), changed]}, brokers))
        assert broker.partitions[other].leader_epoch == leader_epoch
        assert broker.partitions[PLACE].offline == is_refused
