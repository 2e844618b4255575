"""A partition whose log the disk refuses is opened again when the disk says something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.broker.offline_log import OfflineLog
from kraft_wire.model import LeaderEpoch, Offset, StorageError, TopicPartition
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


REFUSED: list[tuple[str, Callable[[OfflineLog], object]]] = [
    ("config", lambda log: log.config),
    ("append", lambda log: log.append(b"", [], 0, 0)),
    (
        "read",
        lambda log: log.read(Offset(0), 1, upper_bound=Offset(1), min_one_batch=True),
    ),
    ("epoch's end", lambda log: log.end_offset_for_epoch(LeaderEpoch(0))),
    ("start", lambda log: log.advance_log_start_offset(Offset(1))),
    ("truncation", lambda log: log.truncate_to(Offset(0))),
    ("new start", lambda log: log.truncate_fully_and_start_at(Offset(0))),
]


@pytest.mark.parametrize("use", [use for _, use in REFUSED], ids=[name for name, _ in REFUSED])
def test_log_that_is_not_there_refuses_every_use_with_the_reason(
    use: Callable[[OfflineLog], object],
) -> None:
    reason = StorageError("open", "/a", "EIO")
    with pytest.raises(StorageError) as raised:
        use(OfflineLog(reason))
    assert raised.value is reason


def test_log_that_is_not_there_is_empty_and_has_nothing_to_flush() -> None:
    log = OfflineLog(StorageError("open", "/a", "EIO"))
    log.flush()
    log.announce(LeaderEpoch(3), Offset(7))
    ends = (log.log_start_offset, log.log_end_offset, log.high_watermark, log.last_stable_offset)
    assert (ends, log.unflushed_records) == ((0, 0, 0, 0), 0)
    assert log.epochs.epoch_at(Offset(0)) is None
    assert list(log.aborted_transactions(Offset(0), Offset(9))) == []
    assert log.producer_states.get(0) is None
    assert list(log.producer_states.active_producers()) == []


def test_partition_that_is_deleted_while_its_log_is_refused_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[TopicPartition] = []

    def get(self: NumbersLogs, partition: TopicPartition) -> NumbersLog | None:
        asked.append(partition)
        raise StorageError("open", "/a", "EIO")

    monkeypatch.setattr(NumbersLogs, "get", get)
    monkeypatch.setattr(NumbersLogs, "failed", lambda self, partition, error: [partition])
    monkeypatch.setattr(NumbersLogs, "delete", lambda self, partition: None)
    broker = small_broker(IMAGE)
    assert broker.partitions[PLACE].offline
    publish(broker, image_of({}, [broker_image(1)]))
    asked.clear()
    broker.replicas.open_again(0, 0)
    broker.replicas.open_again(0, 0)
    assert asked == []
    assert PLACE not in broker.partitions
