"""Steps of moves between log directories, one by one: states, times, reports and errors of disks.

`tests/node/test_replica_moves.py` moves the replicas of whole nodes.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import PartitionLog
from kraft_wire.broker.replication.moving import MovesEnvironment, MoveState, ReplicaMoves
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import LeaderEpoch, Offset, StorageError, TopicPartition, Uuid
from kraft_wire.storage.log import Log
from tests.storage.making import TOPIC_ID, Refusing, append, batch_bytes, open_at

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
TARGET = "disk/b"
BATCH_BYTES = len(batch_bytes(0))
BACKOFF_MS, THROTTLED_MS, PAUSE_MS = 700, 100, 1
NOTHING = MetadataDelta.between(MetadataImage(), MetadataImage())


class Moving:
    """Two replicas with logs on one disk: the copies, the controller's places and a throttle."""

    def __init__(self) -> None:
        self.fs = Refusing()
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        self.said: list[tuple[object, ...]] = []
        self.assigned: set[TopicPartition] = set()
        self.is_rate_exceeded = self.is_promotion_refused = self.is_copy_lost = False
        self.recorded: list[tuple[int, int]] = []
        for name in (A, B):
            self.logs[name] = open_at(self.fs, directory=f"disk/a/{name}")
            self.partitions[name] = self.replica(name)
        settings = BrokerSettings(
            replica_fetch_backoff_ms=BACKOFF_MS, replica_fetch_max_bytes=BATCH_BYTES
        )
        self.env = MovesEnvironment(
            partitions=self.partitions,
            copies=self,
            places=self,
            settings=lambda: settings,
            throttle=self,
            promoted=lambda partition, now_ms: self.say("promoted", partition.partition, now_ms),
            report=lambda name, **fields: self.say(name, *fields.values()),
        )
        self.moves = ReplicaMoves(self.env, 0)

    def replica(self, name: TopicPartition) -> Partition:
        found = Partition("t", TOPIC_ID, name.partition, self.logs[name], LeaderEpoch(0))
        found.failed = lambda error: self.say("replica failed", name.partition, error.operation)
        return found

    def say(self, *what: object) -> None:
        self.said.append(what)

    def heard(self) -> list[tuple[object, ...]]:
        said, self.said = self.said, []
        return said

    def begin(self, name: TopicPartition = A, batches: int = 0, now_ms: int = 10) -> None:
        for offset in range(batches):
            append(self.logs[name], batch_bytes(offset))
        self.moves.begin(self.partitions[name], TARGET, now_ms, 1)

    # -- the ports `ReplicaCopies`, `ReplicaPlaces` and `ReplicationThrottle` --------------------

    def directories(self) -> Mapping[str, bool]:
        return {}

    def directory_of(self, partition: TopicPartition) -> str | None:
        return None

    def all(self) -> Mapping[TopicPartition, str]:
        return dict.fromkeys(self.futures, TARGET)

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        return self.futures.get(partition)

    def create(self, partition: TopicPartition, path: str, wall_ms: int) -> PartitionLog:
        self.futures[partition] = open_at(self.fs, directory=f"{path}/{partition}")
        return self.futures[partition]

    def drop(self, partition: TopicPartition) -> None:
        del self.futures[partition]

    def promote(self, partition: TopicPartition, wall_ms: int) -> bool:
        self.say("promote", partition.partition, wall_ms)
        if not self.is_promotion_refused:
            del self.futures[partition]
        return not self.is_promotion_refused

    def failed(self, partition: TopicPartition, error: StorageError) -> None:
        self.say("copy failed", partition.partition, error.operation)

    def prefer(self, partition: TopicPartition, path: str) -> None:
        raise NotImplementedError

    def assign(self, partition: TopicPartition, path: str, now_ms: int) -> None:
        self.say("assign", partition.partition, path, now_ms)

    def is_assigned(self, partition: TopicPartition, path: str) -> bool:
        return partition in self.assigned

    def release(self, topic_id: Uuid, partition: int, now_ms: int) -> None:
        self.say("release", topic_id == TOPIC_ID, partition, now_ms)

    def is_throttled(self, topic: str, partition: int) -> bool:
        raise NotImplementedError

    def is_exceeded(self, now_ms: int) -> bool:
        return self.is_rate_exceeded

    def bytes_per_second(self, now_ms: int) -> float:
        raise NotImplementedError

    def record(self, size_bytes: int, now_ms: int) -> None:
        self.recorded.append((size_bytes, now_ms))
        if self.is_copy_lost:
            self.futures.clear()


def test_move_goes_through_its_states() -> None:
    moving = Moving()
    moves = moving.moves
    assert (moves.deadline_ms(), moves.target_of(A), moves.state_of(A)) == (None, None, None)
    moving.begin(batches=2)
    assert moving.heard() == [("replica_move_started", A, TARGET)]
    assert (moves.deadline_ms(), moves.target_of(A)) == (10, TARGET)
    moves.tick(9, 1)
    assert (moving.recorded, moves.state_of(A)) == ([], MoveState.COPYING)
    moves.tick(10, 1)
    assert (moves.state_of(A), moves.deadline_ms()) == (MoveState.COPYING, 10 + PAUSE_MS)
    moves.tick(11, 1)
    assert moving.recorded == [(BATCH_BYTES, 10), (BATCH_BYTES, 11)]
    assert moving.heard() == [("assign", 0, TARGET, 11)]
    assert (moves.state_of(A), moves.deadline_ms()) == (MoveState.QUEUED, None)
    moves.published(NOTHING, 20)
    assert moves.deadline_ms() is None
    moving.assigned.add(A)
    moves.published(NOTHING, 30)
    assert moves.deadline_ms() == 30
    moves.tick(30, 77)
    assert moving.heard() == [
        ("promote", 0, 77),
        ("release", True, 0, 30),
        ("promoted", 0, 30),
        ("replica_moved", A, TARGET),
    ]
    assert (moves.deadline_ms(), moves.target_of(A), moves.state_of(A)) == (None, None, None)


def test_record_behind_the_accepted_end_is_copied_before_the_log_is_replaced() -> None:
    moving = Moving()
    moving.begin(batches=1)
    moving.moves.tick(10, 1)
    append(moving.logs[A], batch_bytes(1))
    moving.assigned.add(A)
    moving.moves.published(NOTHING, 20)
    moving.heard()
    moving.moves.tick(20, 1)
    assert [each[0] for each in moving.heard()] == [
        "promote",
        "release",
        "promoted",
        "replica_moved",
    ]
    assert moving.recorded == [(BATCH_BYTES, 10), (BATCH_BYTES, 20)]


def test_log_that_cannot_be_replaced_is_tried_again_after_the_backoff() -> None:
    moving = Moving()
    moving.assigned.add(A)
    moving.is_promotion_refused = True
    moving.begin()
    moving.moves.tick(10, 1)
    assert moving.moves.state_of(A) is MoveState.ACCEPTED
    assert moving.moves.deadline_ms() == 10 + BACKOFF_MS
    moving.is_promotion_refused = False
    moving.moves.tick(10 + BACKOFF_MS, 1)
    assert [each[0] for each in moving.heard()][-3:] == ["release", "promoted", "replica_moved"]


def test_copy_rests_while_the_rate_is_exceeded_but_not_at_equal_ends() -> None:
    moving = Moving()
    moving.is_rate_exceeded = True
    moving.begin(A, batches=1)
    moving.moves.tick(10, 1)
    assert (moving.recorded, moving.moves.deadline_ms()) == ([], 10 + THROTTLED_MS)
    moving.begin(B)
    moving.moves.tick(11, 1)
    assert moving.moves.state_of(B) is MoveState.QUEUED


def test_moves_take_turns() -> None:
    moving = Moving()
    moving.begin(A, batches=3)
    moving.begin(B, batches=3, now_ms=12)
    ends = []
    for now_ms in (12, 13, 14):
        moving.moves.tick(now_ms, 1)
        ends.append([moving.futures[name].log_end_offset for name in (A, B)])
    assert ends == [[1, 0], [1, 1], [2, 1]]
    assert moving.moves.deadline_ms() == 14


def test_cancelled_move_drops_its_copy_and_releases_its_place() -> None:
    moving = Moving()
    moving.begin()
    moving.heard()
    moving.moves.cancel(B, 11)
    assert moving.heard() == []
    moving.moves.cancel(A, 12)
    assert moving.heard() == [("release", True, 0, 12), ("replica_move_cancelled", A, TARGET)]
    assert (moving.futures, moving.moves.target_of(A)) == ({}, None)


@pytest.mark.parametrize("how", ["gone", "another", "offline", "copy gone"])
@pytest.mark.parametrize("is_published", [False, True])
def test_move_ends_with_its_replica_or_its_copy(how: str, is_published: bool) -> None:
    moving = Moving()
    moving.begin(batches=1)
    moving.heard()
    if how == "gone":
        del moving.partitions[A]
    elif how == "another":
        moving.partitions[A] = moving.replica(A)
        del moving.futures[A]
    elif how == "offline":
        moving.partitions[A].offline = True
    else:
        del moving.futures[A]
    if is_published:
        moving.moves.published(NOTHING, 10)
    else:
        moving.moves.tick(10, 1)
    assert moving.heard() == [("release", True, 0, 10)]
    assert (moving.moves.state_of(A), moving.recorded) == (None, [])


def test_found_copies_are_continued_where_the_replica_is_served() -> None:
    """At the start, and when the metadata bring the replica later."""
    moving = Moving()
    late = moving.partitions.pop(B)
    moving.partitions[A].offline = True
    for name in (A, B):
        moving.create(name, TARGET, 1)
    again = ReplicaMoves(moving.env, 5)
    assert (again.deadline_ms(), moving.heard()) == (None, [])
    moving.partitions[A].offline, moving.partitions[B] = False, late
    again.published(NOTHING, 6)
    assert moving.heard() == [
        ("replica_move_resumed", A, TARGET),
        ("replica_move_resumed", B, TARGET),
    ]
    assert again.deadline_ms() == 6
    again.published(NOTHING, 7)
    assert moving.heard() == []


@pytest.mark.parametrize(
    ("operation", "path", "said"),
    [
        ("read", "disk/a", ("replica failed", 0, "read")),
        ("write", "disk/b", ("copy failed", 0, "write")),
    ],
)
def test_error_of_a_disk_is_told_to_its_own_log_and_the_move_waits(
    operation: str, path: str, said: tuple[object, ...]
) -> None:
    moving = Moving()
    moving.begin(batches=1)
    moving.heard()
    moving.fs.refused = ((operation, path),)
    moving.moves.tick(10, 1)
    assert moving.heard() == [said]
    assert moving.moves.state_of(A) is MoveState.COPYING
    assert moving.moves.deadline_ms() == 10 + BACKOFF_MS
    assert moving.futures[A].log_end_offset == Offset(0)
    assert moving.recorded == ([] if operation == "read" else [(0, 10)])


def test_error_of_the_flush_is_one_of_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.broker.replication.replica_copy._FLUSH_BYTES", 1)
    moving = Moving()
    moving.begin(batches=1)
    moving.heard()

    def flush(log: Log) -> None:
        assert log is moving.futures[A]
        raise StorageError("open", TARGET, "full")

    monkeypatch.setattr(Log, "flush", flush)
    moving.moves.tick(10, 1)
    assert moving.heard() == [("copy failed", 0, "open")]
    assert moving.moves.state_of(A) is MoveState.COPYING
    assert moving.moves.deadline_ms() == 10 + BACKOFF_MS


def test_copy_that_is_lost_while_it_is_written_does_not_replace_the_log() -> None:
    moving = Moving()
    moving.begin(batches=1)
    moving.heard()
    moving.is_copy_lost = True
    moving.moves.tick(10, 1)
    assert (moving.heard(), moving.moves.state_of(A)) == ([], MoveState.COPYING)
    assert moving.moves.deadline_ms() == 10 + BACKOFF_MS
    moving.moves.tick(10 + BACKOFF_MS, 1)
    assert moving.heard() == [("release", True, 0, 10 + BACKOFF_MS)]
