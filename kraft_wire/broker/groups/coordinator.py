"""The group coordinator: the partitions of `__consumer_offsets` that this broker leads.

A partition is loaded before its groups are served, in small pieces, one per tick, so that a long
log does not hold up everything else; meanwhile its groups answer COORDINATOR_LOAD_IN_PROGRESS.
What was loaded is served once all of it is committed: the high watermark of a new leader may lie
below what its predecessor had acknowledged, and its log may have more than ever will be. The
coordinator follows the metadata as a `MetadataFollower` of the broker. Requests reach the groups
through `shard_of`; handlers do the rest with the functions of this package.
"""

from dataclasses import dataclass, field
from typing import Final

from kraft_wire.broker.groups.classic.rebalance import group_loaded, tick
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.expiry import delete_offsets_of_topics, expire_offsets
from kraft_wire.broker.groups.moment import Moment
from kraft_wire.broker.groups.offsets_topic import OffsetsTopicCreation, group_partition
from kraft_wire.broker.groups.replay import Replay
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.store import OFFSETS_TOPIC
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import TopicImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.sync_group import SyncGroupResponse

__all__ = ["GroupCoordinator"]

_LOAD_PIECE_BYTES: Final = 64 << 10
"""Read per tick while loading: about 15 ms of work."""
_UNREADABLE_REST_MS: Final = 1_000
"""How soon a log that cannot be read is looked at again; its disk may heal, or others lead it."""


@dataclass(slots=True)
class _Loading:
    """A partition on its way in."""

    replay: Replay
    next_offset: int = 0
    deleted: dict[Uuid, str] = field(default_factory=dict)
    """Topics that went away meanwhile."""
    awaits_commit: bool = False
    """Whether everything is read, and not all of it committed."""
    rests_until_ms: int = 0
    """When to read on."""


class GroupCoordinator:
    """Shards by partition, loaded and loading, and the time that they share."""

    def __init__(
        self, node_id: int, env: GroupEnvironment, topic_creation: OffsetsTopicCreation
    ) -> None:
        self.node_id = node_id
        self.env = env
        self.topic_creation = topic_creation
        self.ignored: dict[str, int] = {}
        """Reason to number of records that loading left alone, over all partitions."""
        self._partition_count: int | None = None
        self._shards: dict[int, GroupShard] = {}
        self._loading: dict[int, _Loading] = {}
        self._led: dict[int, tuple[Uuid, int]] = {}
        """Topic id and leader epoch of each partition that is loaded or loading."""
        self._deleted: dict[Uuid, str] = {}
        self._expiry_ms: int | None = None
        self._now_ms = 0

    @property
    def partition_count(self) -> int:
        """Partitions of the topic, or what it will be created with."""
        if self._partition_count is not None:
            return self._partition_count
        return self.env.settings().offsets_topic_num_partitions

    @property
    def now_ms(self) -> int:
        """Time of the last call that brought one."""
        return self._now_ms

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group belongs to."""
        return group_partition(group_id, self.partition_count)

    def shard_of(self, group_id: str) -> GroupShard | ErrorCode:
        """Return where the group is coordinated.

        Errors: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        partition = self.partition_of(group_id)
        shard = self._shards.get(partition)
        if shard is not None:
            return shard
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def shards(self) -> list[GroupShard] | ErrorCode:
        """Return every shard, to list its groups; COORDINATOR_LOAD_IN_PROGRESS while one is read.

        One that awaits its commit counts: it knows its groups, and too few replicas may be left to
        commit anything for as long as nobody mends that.
        """
        loading = self._loading.values()
        if not all(each.awaits_commit for each in loading):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [*self._shards.values(), *(each.replay.shard for each in loading)]

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Follow the offsets' topic, and forget the offsets of topics that are gone."""
        self._now_ms = now_ms
        if OFFSETS_TOPIC in delta.topics or OFFSETS_TOPIC in delta.deleted.values():
            self.follow(delta.after.topic(OFFSETS_TOPIC), now_ms)
        gone = {topic_id: name for topic_id, name in delta.deleted.items() if name != OFFSETS_TOPIC}
        self._deleted.update(gone)
        for loading in self._loading.values():
            loading.deleted.update(gone)

    def follow(self, topic: TopicImage | None, now_ms: int) -> None:
        """Take over the partitions that this broker leads now, and let go of the others.

        One that is led under another epoch was others' in between, or may have been. A topic that
        was made again begins with the epochs of the one before it.
        """
        self._now_ms = now_ms
        self._partition_count = None if topic is None else len(topic.partitions)
        led = {}
        if topic is not None:
            led = {
                view.partition: (topic.topic_id, view.leader_epoch)
                for view in topic.partitions.values()
                if view.leader == self.node_id
            }
        for partition in [*self._shards, *self._loading]:
            if led.get(partition) != self._led.get(partition):
                self.resigned(partition)
        self._led = led
        for partition in sorted(led):
            self.elected(partition)

    def elected(self, partition: int) -> None:
        """Begin to load a partition; one without records is ready at once."""
        if partition in self._shards or partition in self._loading:
            return
        shard = GroupShard(partition, self.env)
        stretch = self.env.store.read(partition, 0, _LOAD_PIECE_BYTES)
        if stretch is not None and stretch.is_end and not stretch.batches:
            self._shards[partition] = shard
        else:
            self._loading[partition] = _Loading(Replay(shard))

    def resigned(self, partition: int) -> None:
        """Let go of a partition; whoever waits is told to look for the new coordinator."""
        loading = self._loading.pop(partition, None)
        if loading is not None:
            loading.replay.shard.release()
        shard = self._shards.pop(partition, None)
        if shard is None:
            return
        shard.release()
        error = ErrorCode.NOT_COORDINATOR
        for group in shard.groups.values():
            for member in group.members.values():
                lost = JoinGroupResponse(error_code=error, member_id=member.member_id)
                shard.answer_join(group, member, lost)
                shard.answer_sync(member, SyncGroupResponse(error_code=error))

    def stop(self) -> None:
        """Let go of everything, because the broker is going away."""
        for partition in [*self._shards, *self._loading]:
            self.resigned(partition)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Load a piece, act on deadlines, and remove offsets that are not needed any more."""
        at = Moment(now_ms, wall_ms)
        self._now_ms = now_ms
        self._load_piece(at)
        for shard in list(self._shards.values()):
            tick(shard, at)
        if self._deleted:
            deleted, self._deleted = self._deleted, {}
            for shard in self._shards.values():
                delete_offsets_of_topics(shard, deleted, at)
        self._expire(at)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        if self._deleted or (self._shards and self._expiry_ms is None):
            return self._now_ms
        deadlines = [shard.deadlines.deadline_ms() for shard in self._shards.values()]
        deadlines += [
            max(each.rests_until_ms, self._now_ms)
            for each in self._loading.values()
            if not each.awaits_commit
        ]
        deadlines.append(self._expiry_ms if self._shards else None)
        return min((at for at in deadlines if at is not None), default=None)

    def _load_piece(self, at: Moment) -> None:
        """Read on in the first partition that is not loaded yet."""
        unread = (
            number
            for number, each in self._loading.items()
            if not each.awaits_commit and each.rests_until_ms <= at.now_ms
        )
        partition = next(unread, None)
        if partition is None:
            return
        loading = self._loading[partition]
        stretch = self.env.store.read(partition, loading.next_offset, _LOAD_PIECE_BYTES)
        if stretch is None:
            # The partition is led, its log is not there yet, or out of use.
            loading.rests_until_ms = at.now_ms + _UNREADABLE_REST_MS
            return
        for batch in stretch.batches:
            loading.replay.batch(batch)
        assert stretch.is_end or stretch.next_offset > loading.next_offset, stretch
        loading.next_offset = stretch.next_offset
        if stretch.is_end:
            self._finish(partition, loading, at)

    def _finish(self, partition: int, loading: _Loading, at: Moment) -> None:
        """Serve what was read, once the ISR has it: until then the next leader may not know it."""
        if self.env.store.high_watermark(partition) >= loading.next_offset:
            self._loaded(partition, loading, at)
            return
        loading.awaits_commit = True

        def heard(error: ErrorCode, then: Moment) -> None:
            if self._loading.get(partition) is loading:  # else it is led no more, or anew
                self._finish(partition, loading, then)

        self.env.commits.await_commit(partition, loading.next_offset, at, heard)

    def _loaded(self, partition: int, loading: _Loading, at: Moment) -> None:
        del self._loading[partition]
        shard = loading.replay.shard
        self._shards[partition] = shard
        for reason, count in loading.replay.ignored.items():
            self.ignored[reason] = self.ignored.get(reason, 0) + count
        for group in list(shard.groups.values()):
            group_loaded(shard, group, at)
        delete_offsets_of_topics(shard, loading.deleted, at)

    def _expire(self, at: Moment) -> None:
        """Run the retention check on every shard, every `offsets.retention.check.interval.ms`."""
        if not self._shards:
            return
        interval_ms = self.env.settings().offsets_retention_check_interval_ms
        if self._expiry_ms is None:
            self._expiry_ms = at.now_ms + interval_ms
        elif at.now_ms >= self._expiry_ms:
            self._expiry_ms = at.now_ms + interval_ms
            for shard in self._shards.values():
                expire_offsets(shard, at)
