"""One partition of `__consumer_offsets` under the coordinator runtime."""

from collections.abc import Mapping

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.timers import Timers
from kraft_wire.broker.groups.classic.rebalance import group_loaded, timer_due
from kraft_wire.broker.groups.classic.timers import Timer
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.ticking import consumer_group_loaded, consumer_timer_due
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer
from kraft_wire.broker.groups.offsets.expiry import delete_offsets_of_topics, expire_offsets
from kraft_wire.broker.groups.replay import CoordinatorReplay
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.deleted_topics import forget_topics
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.session_timer import ShareSession
from kraft_wire.broker.groups.share.sessions import session_over, share_group_loaded
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.sessions import streams_group_loaded, streams_timer_due
from kraft_wire.broker.groups.streams.timers import StreamsTimer
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.sync_group import SyncGroupResponse
from kraft_wire.wire.records.memory_records import AnyBatch

__all__ = ["GroupPartition"]


class GroupPartition:
    """A `CoordinatorShard`: passes each call of the runtime to the module that implements it."""

    __slots__ = ("_replay", "shard")

    def __init__(self, shard: GroupShard) -> None:
        self.shard = shard
        self._replay = CoordinatorReplay(shard)

    @property
    def ignored(self) -> Mapping[str, int]:
        """Reason to number of records that could not be read."""
        return self._replay.ignored

    @property
    def timers(self) -> Timers[Timer | ConsumerTimer | ShareSession | StreamsTimer]:
        """The deadlines of members and rebalances."""
        return self.shard.timers

    def replay(self, batch: AnyBatch) -> None:
        """Take a batch of the log into the shard."""
        self._replay.batch(batch)

    def loaded(self, at: ClockReading) -> None:
        """Give the members of every group a whole session to rejoin."""
        for group in list(self.shard.groups.values()):
            group_loaded(self.shard, group, at)
        for other in list(self.shard.other_groups.values()):
            if isinstance(other, ConsumerGroup):
                consumer_group_loaded(self.shard, other, at)
            elif isinstance(other, ShareGroup):
                share_group_loaded(self.shard, other, at)
            elif isinstance(other, StreamsGroup):
                streams_group_loaded(self.shard, other, at)

    def tick(self, at: ClockReading) -> None:
        """Act on the deadlines of members and rebalances."""
        while (timer := self.shard.timers.pop_due(at.now_ms)) is not None:
            if isinstance(timer, ConsumerTimer):
                consumer_timer_due(self.shard, timer, at)
            elif isinstance(timer, ShareSession):
                session_over(self.shard, timer, at)
            elif isinstance(timer, StreamsTimer):
                streams_timer_due(self.shard, timer, at)
            else:
                timer_due(self.shard, timer, at)

    def topics_deleted(self, topics: Mapping[Uuid, str], at: ClockReading) -> None:
        """Remove the offsets of deleted topics, and their share partitions from groups."""
        delete_offsets_of_topics(self.shard, topics, at)
        forget_topics(self.shard, topics, at)

    def clean_up(self, at: ClockReading) -> None:
        """Remove offsets that are too old, and empty groups without offsets."""
        expire_offsets(self.shard, at)

    def resign(self) -> None:
        """Send the members that wait for an answer to the new coordinator."""
        shard, error = self.shard, ErrorCode.NOT_COORDINATOR
        shard.release()
        for group in shard.groups.values():
            for member in group.members.values():
                lost = JoinGroupResponse(error_code=error, member_id=member.member_id)
                shard.answer_join(group, member, lost)
                shard.answer_sync(member, SyncGroupResponse(error_code=error))
