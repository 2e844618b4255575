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
