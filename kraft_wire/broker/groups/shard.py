"""One partition of `__consumer_offsets`: the groups that it coordinates, and their offsets.

Holds state and replays it from the log (`replay`). Requests change groups in `classic/`
(membership) and `offsets/`, time changes them in `rebalance.tick` and `offsets/expiry.py`.
`GroupPartition` drives all of it.
"""

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.coordination.shard_log import ShardLog
from kraft_wire.broker.coordination.timers import Timers
from kraft_wire.broker.groups.classic.group import ClassicGroup, set_awaited
from kraft_wire.broker.groups.classic.member import Member, ParkedRequest
from kraft_wire.broker.groups.classic.states import GroupEvent
from kraft_wire.broker.groups.classic.timers import Timer, TimerKind
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.group_types import OtherGroup
from kraft_wire.broker.groups.object_sizes import GROUP_BYTES
from kraft_wire.broker.groups.offsets.table import OffsetTable
from kraft_wire.broker.groups.offsets.uncommitted import UncommittedOffsets
from kraft_wire.broker.groups.records import empty_group_record
from kraft_wire.broker.groups.share.session_timer import ShareSession
from kraft_wire.broker.groups.streams.timers import StreamsTimer
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.sync_group import SyncGroupResponse
from kraft_wire.wire.message import Message

__all__ = ["GroupShard", "end_classic_group", "put_classic_group"]


class GroupShard:
    """The groups of one partition, once it is loaded."""

    __slots__ = (
        "env",
        "groups",
        "is_released",
        "log",
        "offsets",
        "other_groups",
        "timers",
        "uncommitted",
    )

    def __init__(self, log: ShardLog, env: GroupEnvironment) -> None:
        self.log = log
        self.env = env
        self.is_released = False
        """Whether another coordinator has the groups now."""
        self.groups: dict[str, ClassicGroup] = {}
        self.other_groups: dict[str, OtherGroup] = {}
        """Groups of other kinds than classic; no group id is in both tables."""
        self.offsets = OffsetTable(env.memory)
        """The newest offsets; `uncommitted` decides which ones are visible."""
        self.uncommitted = UncommittedOffsets(self.offsets, env.memory, log.high_watermark)
        self.timers: Timers[Timer | ConsumerTimer | ShareSession | StreamsTimer] = Timers()

    @property
    def memory(self) -> MemoryUse:
        """Counts the state of all shards."""
        return self.env.memory

    def answer(self, waiting: ParkedRequest, response: Message) -> None:
        """Answer a parked request."""
        self.env.complete(waiting.reply_to, response)

    def answer_join(self, group: ClassicGroup, member: Member, response: JoinGroupResponse) -> bool:
        """Answer the member's parked JoinGroup request; whether it had one."""
        waiting = group.set_awaiting_join(member, None)
        if waiting is None:
            return False
        response.protocol_name = protocol_name_in(response.protocol_name, waiting.api_version)
        self.answer(waiting, response)
        return True

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> bool:
        """Answer the member's parked SyncGroup request; whether it had one."""
        waiting = member.awaiting_sync
        if waiting is None:
            return False
        member.awaiting_sync = None
        self.answer(waiting, response)
        return True

    def create_group(self, group_id: str, at: ClockReading) -> ClassicGroup | ErrorCode:
        """Create a group that outlives a restart, in place of an empty one of another protocol."""
        assert group_id not in self.groups, group_id
        if not self.env.memory.has_room_for(GROUP_BYTES + len(group_id)):
            return ErrorCode.POLICY_VIOLATION
        records = [empty_group_record(group_id, at.wall_ms)]
        other = self.other_groups.get(group_id)
        if other is not None:
            assert other.is_empty, group_id
            records = other.tombstones() + records
        error = self.log.append(records, at)
        if error is not ErrorCode.NONE:
            return error
        self.remove_other_group(group_id)
        group = ClassicGroup(group_id, self.env.memory, at.wall_ms)
        self.groups[group_id] = group
        return group

    def simple_group(self, group_id: str, at: ClockReading) -> ClassicGroup:
        """Return the group, created without a record: its offsets are its only records."""
        group = self.groups.get(group_id)
        if group is None:
            assert group_id not in self.other_groups, group_id
            group = ClassicGroup(group_id, self.env.memory, at.wall_ms)
            self.groups[group_id] = group
        return group

    def remove_group(self, group_id: str, at: ClockReading) -> None:
        """Drop a group that the log no longer has; no member waits in it."""
        group = self.groups.pop(group_id, None)
        self.remove_other_group(group_id)
        if group is not None:
            assert not group.members, group_id
            group.release()
            group.apply(GroupEvent.REMOVED, at.wall_ms)
            self.timers.cancel_all_of(group_id)

    def put_other_group(self, group: OtherGroup, at: ClockReading) -> None:
        """Keep a group that is new, in place of an empty classic one."""
        assert group.group_id not in self.other_groups, group.group_id
        classic = self.groups.get(group.group_id)
        if classic is not None:
            assert not classic.members, group.group_id
            end_classic_group(self, classic, at)
        self.other_groups[group.group_id] = group

    def remove_other_group(self, group_id: str) -> None:
        """Drop a group of another kind than classic, if it is there."""
        other = self.other_groups.pop(group_id, None)
        if other is not None:
            other.release()
            self.timers.cancel_all_of(group_id)

    def release(self) -> None:
        """Give back the memory that is counted for everything here, which is over."""
        self.is_released = True
        for group in self.groups.values():
            group.release()
        for other in self.other_groups.values():
            other.release()
        self.offsets.release()
        self.uncommitted.release()

    def schedule_session(self, group: ClassicGroup, member: Member, at: ClockReading) -> None:
        """Count the member's session timeout from now."""
        self.schedule_member(group, member.member_id, at.now_ms + member.session_timeout_ms)

    def schedule_member(self, group: ClassicGroup, member_id: str, deadline_ms: int) -> None:
        """Set when the member, or the id that was given out, is given up."""
        self.timers.schedule(Timer(TimerKind.MEMBER, group.group_id, member_id), deadline_ms)

    def cancel_member(self, group: ClassicGroup, member_id: str) -> None:
        """Stop waiting for a removed member."""
        self.timers.cancel(Timer(TimerKind.MEMBER, group.group_id, member_id))


def end_classic_group(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> None:
    """Drop a classic group that a group of another kind replaces; no request is parked."""
    del shard.groups[group.group_id]
    set_awaited(group, None)
    group.release()
    group.apply(GroupEvent.REMOVED, at.wall_ms)
    shard.timers.cancel_all_of(group.group_id)


def put_classic_group(shard: GroupShard, group: ClassicGroup) -> None:
    """Keep a classic group in place of one of another kind, whose timers end."""
    assert group.group_id not in shard.groups, group.group_id
    shard.remove_other_group(group.group_id)
    shard.timers.cancel_all_of(group.group_id)
    shard.groups[group.group_id] = group


def protocol_name_in(name: str | None, api_version: int) -> str | None:
    """Return "no protocol" of a JoinGroup answer: the empty string before v7, null since."""
    if api_version < 7:
        return name or ""
    return name or None
