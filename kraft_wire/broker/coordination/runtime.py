"""The coordinator runtime: the partitions of one internal topic that this broker leads.

A partition is loaded before it is served, in small pieces, one per tick, so that a long log does
not block other work; meanwhile its keys answer COORDINATOR_LOAD_IN_PROGRESS. The loaded state is
served once all of it is committed: the high watermark of a new leader may be below its
predecessor's acknowledged end, and its log may have records that are never committed. The runtime
follows the metadata as a `MetadataFollower` of the broker. Requests reach a shard through
`shard_of`.

Not here: what the records of the topic mean, which each kind of coordinator implements as a
`CoordinatorShard`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import CoordinatorLog
from kraft_wire.broker.coordination.shard import CoordinatorShard
from kraft_wire.broker.coordination.shard_log import ShardLog
from kraft_wire.broker.coordination.timers import ShardTimers
from kraft_wire.broker.coordination.topic import CoordinatorTopic, key_partition
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import TopicImage
from kraft_wire.model import Uuid, sooner
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["CoordinatorRuntime"]

_LOAD_PIECE_BYTES: Final = 64 << 10
"""Read per tick while loading: about 15 ms of work."""
_UNREADABLE_RETRY_MS: Final = 1_000
"""Pause before a log that cannot be read is read again; its disk may heal, or others lead it."""

_Shard = TypeVar("_Shard", bound=CoordinatorShard)


@dataclass(slots=True)
class _Loading(Generic[_Shard]):
    """How far a partition has been read into its shard."""

    shard: _Shard
    read_on_ms: int
    """When to read the next piece."""
    next_offset: int = 0
    deleted: dict[Uuid, str] = field(default_factory=dict)
    """Topics that were deleted meanwhile."""
    awaits_commit: bool = False
    """Whether everything is read, and not all of it committed."""


class CoordinatorRuntime(Generic[_Shard]):
    """Shards by partition, loaded and loading, of one kind of coordinator."""

    def __init__(
        self,
        node_id: int,
        topic: CoordinatorTopic,
        log: CoordinatorLog,
        commits: CommitWaits,
        new_shard: Callable[[ShardLog], _Shard],
    ) -> None:
        """`new_shard` returns an empty shard over the log of its partition."""
        self.topic = topic
        self.ignored: dict[str, int] = {}
        """Reason to number of records that loading left alone, over all partitions."""
        self._node_id = node_id
        self._log = log
        self._commits = commits
        self._new_shard = new_shard
        self._partition_count: int | None = None
        self._shards: dict[int, _Shard] = {}
        self._timers = ShardTimers()
        self._loading: dict[int, _Loading[_Shard]] = {}
        self._led: dict[int, tuple[Uuid, int]] = {}
        """Topic id and leader epoch of each partition that is loaded or loading."""
        self._deleted: dict[Uuid, str] = {}
        """Topics whose deletion the loaded shards do not know yet."""
        self._deleted_ms = 0
        """When the first of them was deleted."""
        self._clean_up_ms = 0
        """When the shards remove expired state next; meaningless without shards."""

    # -- requests --------------------------------------------------------------------------------

    @property
    def partition_count(self) -> int:
        """The number of partitions of the topic, or the number for its creation."""
        if self._partition_count is not None:
            return self._partition_count
        return self.topic.partition_count()

    def partition_of(self, key: str) -> int:
        """Return the partition of the topic that a key belongs to."""
        return key_partition(key, self.partition_count)

    def shard_of(self, key: str) -> _Shard | ErrorCode:
        """Return the shard that coordinates a key.

        Errors: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        partition = self.partition_of(key)
        shard = self._shards.get(partition)
        return self.shard_at(partition) if shard is None else shard

    def shard_at(self, partition: int) -> _Shard | ErrorCode:
        """Return the shard of a partition; errors as `shard_of`."""
        shard = self._shards.get(partition)
        if shard is not None:
            return shard
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def shards(self) -> list[_Shard] | ErrorCode:
        """Return every shard, to list its keys; COORDINATOR_LOAD_IN_PROGRESS while one is loading.

        A loaded shard that is not committed yet is included: it knows its keys, and nothing can be
        committed while too few replicas are left.
        """
        loading = self._loading.values()
        if not all(each.awaits_commit for each in loading):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [*self._shards.values(), *(each.shard for each in loading)]

    # -- metadata --------------------------------------------------------------------------------

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Follow the coordinator's topic, and note which other topics are deleted."""
        name = self.topic.name
        if name in delta.topics or name in delta.deleted.values():
            self.follow(delta.after.topic(name), now_ms)
        gone = {topic_id: topic for topic_id, topic in delta.deleted.items() if topic != name}
        if gone and not self._deleted:
            self._deleted_ms = now_ms
        self._deleted.update(gone)
        for loading in self._loading.values():
            loading.deleted.update(gone)

    def follow(self, topic: TopicImage | None, now_ms: int) -> None:
        """Load the partitions that this broker leads now, and resign the others.

        A partition that is led under another epoch was led by another broker in between, or may
        have been. A topic that was created again begins with the epochs of the one before it.
        """
        self._partition_count = None if topic is None else len(topic.partitions)
        led = {}
        if topic is not None:
            led = {
                view.partition: (topic.topic_id, view.leader_epoch)
                for view in topic.partitions.values()
                if view.leader == self._node_id
            }
        for partition in [*self._shards, *self._loading]:
            if led.get(partition) != self._led.get(partition):
                self._resign(partition)
        self._led = led
        for partition in sorted(led):
            self._elected(partition, now_ms)

    def stop(self) -> None:
        """Resign every partition, because the broker stops."""
        for partition in [*self._shards, *self._loading]:
            self._resign(partition)

    def _elected(self, partition: int, now_ms: int) -> None:
        """Begin to load a partition; one without records is served at once."""
        assert partition in self._led, partition
        if partition in self._shards or partition in self._loading:
            return
        shard = self._new_shard(ShardLog(partition, self._log, self._commits))
        stretch = self._log.read(partition, 0, _LOAD_PIECE_BYTES)
        if stretch is not None and stretch.is_end and not stretch.batches:
            self._serve(partition, shard, now_ms)
        else:
            self._loading[partition] = _Loading(shard, read_on_ms=now_ms)

    def _resign(self, partition: int) -> None:
        """Give up a partition; waiting clients are sent to the new coordinator."""
        loading = self._loading.pop(partition, None)
        if loading is not None:
            loading.shard.resign()
        shard = self._shards.pop(partition, None)
        if shard is not None:
            self._timers.remove(shard.timers)
            shard.resign()

    # -- time ------------------------------------------------------------------------------------

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Load a piece, act on deadlines, and remove expired state."""
        at = ClockReading(now_ms, wall_ms)
        self._load_piece(at)
        for shard in list(self._shards.values()):
            shard.tick(at)
        if self._deleted:
            deleted, self._deleted = self._deleted, {}
            for shard in self._shards.values():
                shard.topics_deleted(deleted, at)
        self._clean_up(at)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        deadline_ms = self._timers.deadline_ms()
        for each in self._loading.values():
            if not each.awaits_commit:
                deadline_ms = sooner(deadline_ms, each.read_on_ms)
        if self._deleted:
            deadline_ms = sooner(deadline_ms, self._deleted_ms)
        if self._shards:
            deadline_ms = sooner(deadline_ms, self._clean_up_ms)
        return deadline_ms

    def _clean_up(self, at: ClockReading) -> None:
        """Have every shard remove expired state, once an interval."""
        if not self._shards or at.now_ms < self._clean_up_ms:
            return
        self._clean_up_ms = at.now_ms + self.topic.clean_up_interval_ms()
        for shard in self._shards.values():
            shard.clean_up(at)

    # -- loading ---------------------------------------------------------------------------------

    def _load_piece(self, at: ClockReading) -> None:
        """Read on in the first partition that is not loaded yet."""
        unread = (
            number
            for number, each in self._loading.items()
            if not each.awaits_commit and each.read_on_ms <= at.now_ms
        )
        partition = next(unread, None)
        if partition is None:
            return
        loading = self._loading[partition]
        stretch = self._log.read(partition, loading.next_offset, _LOAD_PIECE_BYTES)
        if stretch is None:
            # The partition is led, its log is not there yet, or out of use.
            loading.read_on_ms = at.now_ms + _UNREADABLE_RETRY_MS
            return
        for batch in stretch.batches:
            loading.shard.replay(batch)
        assert stretch.is_end or stretch.next_offset > loading.next_offset, stretch
        loading.next_offset = stretch.next_offset
        if stretch.is_end:
            self._finish(partition, loading, at)

    def _finish(self, partition: int, loading: _Loading[_Shard], at: ClockReading) -> None:
        """Serve the loaded state once the ISR has it: before, the next leader may not have it."""
        # Non-obvious 26: the high watermark may be below what was acknowledged.
        if self._log.high_watermark(partition) >= loading.next_offset:
            self._loaded(partition, loading, at)
            return
        loading.awaits_commit = True

        def on_committed(error: ErrorCode, then: ClockReading) -> None:
            if self._loading.get(partition) is loading:  # else not led, or led again
                self._finish(partition, loading, then)

        self._commits.await_commit(partition, loading.next_offset, at, on_committed)

    def _loaded(self, partition: int, loading: _Loading[_Shard], at: ClockReading) -> None:
        del self._loading[partition]
        shard = loading.shard
        self._serve(partition, shard, at.now_ms)
        for reason, count in shard.ignored.items():
            self.ignored[reason] = self.ignored.get(reason, 0) + count
        shard.loaded(at)
        shard.topics_deleted(loading.deleted, at)

    def _serve(self, partition: int, shard: _Shard, now_ms: int) -> None:
        assert partition in self._led, partition
        assert partition not in self._shards, partition
        if not self._shards:
            self._clean_up_ms = now_ms + self.topic.clean_up_interval_ms()
        self._shards[partition] = shard
        self._timers.add(shard.timers)
