"""Time in streams groups: sessions, time to give tasks back, the first rebalance, and loads."""

from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.group_settings import (
    assignment_interval_ms,
    session_timeout_ms,
)
from kraft_wire.broker.groups.streams.leave import remove_member
from kraft_wire.broker.groups.streams.member import MemberState, StreamsMember
from kraft_wire.broker.groups.streams.target_assignment import computed_targets, target_records
from kraft_wire.broker.groups.streams.timers import StreamsTimer, StreamsTimerKind
from kraft_wire.broker.groups.streams.write import write
from kraft_wire.broker.groups.target_times import may_compute_targets
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["limit_revocation", "renew_session", "streams_group_loaded", "streams_timer_due"]

_RETRY_MS: Final = 500
"""Pause before an operation that could not be written is tried again."""


def renew_session(shard: GroupShard, group_id: str, member_id: str, at: ClockReading) -> None:
    """Give a member a whole session from now on."""
    timer = StreamsTimer(StreamsTimerKind.SESSION, group_id, member_id)
    shard.timers.schedule(timer, at.now_ms + session_timeout_ms(shard.env, group_id))


def limit_revocation(
    shard: GroupShard, group: StreamsGroup, member: StreamsMember, at: ClockReading
) -> None:
    """Give a member that must give tasks back its whole rebalance timeout; else end the timer."""
    timer = StreamsTimer(StreamsTimerKind.REBALANCE, group.group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_TASKS:
        group.revocation_epochs[member.member_id] = member.member_epoch
        shard.timers.schedule(timer, at.now_ms + member.rebalance_timeout_ms)
    else:
        shard.timers.cancel(timer)


def streams_timer_due(shard: GroupShard, timer: StreamsTimer, at: ClockReading) -> None:
    """Act on a deadline; one of a group or member that is gone does nothing."""
    group = shard.other_groups.get(timer.group_id)
    if not isinstance(group, StreamsGroup):
        return
    if timer.kind is StreamsTimerKind.FIRST_REBALANCE:
        _first_rebalance(shard, group, at)
        return
    member = group.members.get(timer.member_id)
    if member is None or (
        timer.kind is StreamsTimerKind.REBALANCE
        and member.member_epoch != group.revocation_epochs.get(member.member_id)
    ):
        return
    if remove_member(shard, group, member, at).error is not ErrorCode.NONE:
        shard.timers.schedule(timer, at.now_ms + _RETRY_MS)


def _first_rebalance(shard: GroupShard, group: StreamsGroup, at: ClockReading) -> None:
    """Compute the first targets of a group; if they cannot be written, a heartbeat does it."""
    configured = group.configured
    if group.is_empty or configured is None or group.epoch <= group.assignment_epoch:
        return
    interval_ms = assignment_interval_ms(shard.env, group.group_id)
    if not may_compute_targets(group.assignment_timestamp_ms, interval_ms, at.wall_ms):
        return
    targets = computed_targets(group, None, configured, group.assignment_configs)
    write(shard, group, target_records(group, targets, group.epoch, at.wall_ms), at)


def streams_group_loaded(shard: GroupShard, group: StreamsGroup, at: ClockReading) -> None:
    """Give every member a whole session, and a whole time to give tasks back."""
    for member in group.members.values():
        renew_session(shard, group.group_id, member.member_id, at)
        limit_revocation(shard, group, member, at)
