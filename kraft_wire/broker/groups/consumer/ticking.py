"""Time in consumer groups: sessions, time to revoke, evaluations; and the groups of a load."""

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.consumer.checks import LEFT_FOR_A_WHILE
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.leave import remove_members
from kraft_wire.broker.groups.consumer.member import MemberState
from kraft_wire.broker.groups.consumer.regexes import evaluate_regexes
from kraft_wire.broker.groups.consumer.session import begin_session, limit_revocation
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["consumer_group_loaded", "consumer_timer_due"]

_RETRY_MS = 500
"""Pause before an operation that could not be written is tried again."""


def consumer_timer_due(shard: GroupShard, timer: ConsumerTimer, at: ClockReading) -> None:
    """Act on a deadline; one of a group or member that is gone does nothing."""
    group = shard.other_groups.get(timer.group_id)
    if not isinstance(group, ConsumerGroup):
        return
    if timer.kind is ConsumerTimerKind.REGEX:
        evaluate_regexes(shard, group, at)
        return
    member = group.members.get(timer.member_id)
    if member is None:
        return
    if timer.kind is ConsumerTimerKind.REBALANCE and (
        member.state is not MemberState.UNREVOKED_PARTITIONS
        or member.member_epoch == LEFT_FOR_A_WHILE
    ):
        return
    if remove_members(shard, group, [member], at).error is not ErrorCode.NONE:
        shard.timers.schedule(timer, at.now_ms + _RETRY_MS)


def consumer_group_loaded(shard: GroupShard, group: ConsumerGroup, at: ClockReading) -> None:
    """Give every member a whole session, and a whole time to revoke."""
    for member in group.members.values():
        begin_session(shard, group.group_id, member, at)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            limit_revocation(shard, group.group_id, member, at)
