"""How long a member of a consumer group may be silent, and how long each of its duties may take."""

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.consumer.group_settings import session_timeout_ms
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.shard import GroupShard

__all__ = ["await_rejoin", "await_sync", "begin_session", "limit_revocation", "renew_session"]


def renew_session(
    shard: GroupShard, group_id: str, member: ConsumerMember, at: ClockReading
) -> None:
    """Give a member a whole session from now on: a classic member its own, others the group's."""
    classic = member.classic_metadata
    if classic is None:
        begin_session(shard, group_id, member, at)
    else:
        _schedule_session(shard, group_id, member, at.now_ms + classic.session_timeout_ms)


def begin_session(
    shard: GroupShard, group_id: str, member: ConsumerMember, at: ClockReading
) -> None:
    """Give a member the group's session; at a load classic members get it, too, as in Kafka."""
    session_ms = session_timeout_ms(shard.env, group_id)
    _schedule_session(shard, group_id, member, at.now_ms + session_ms)


def _schedule_session(
    shard: GroupShard, group_id: str, member: ConsumerMember, deadline_ms: int
) -> None:
    session = ConsumerTimer(ConsumerTimerKind.SESSION, group_id, member.member_id)
    shard.timers.schedule(session, deadline_ms)


def limit_revocation(
    shard: GroupShard, group_id: str, member: ConsumerMember, at: ClockReading
) -> None:
    """Give a member its whole rebalance timeout to revoke what it must."""
    _limit(shard, ConsumerTimerKind.REBALANCE, group_id, member, at)


def await_rejoin(
    shard: GroupShard, group_id: str, member: ConsumerMember, at: ClockReading
) -> None:
    """Give a classic member its rebalance timeout to join again, once it was told to."""
    if ConsumerTimer(ConsumerTimerKind.JOIN, group_id, member.member_id) not in shard.timers:
        _limit(shard, ConsumerTimerKind.JOIN, group_id, member, at)


def await_sync(shard: GroupShard, group_id: str, member: ConsumerMember, at: ClockReading) -> None:
    """Give a classic member its whole rebalance timeout to ask for its assignment."""
    _limit(shard, ConsumerTimerKind.SYNC, group_id, member, at)


def _limit(
    shard: GroupShard,
    kind: ConsumerTimerKind,
    group_id: str,
    member: ConsumerMember,
    at: ClockReading,
) -> None:
    timer = ConsumerTimer(kind, group_id, member.member_id)
    shard.timers.schedule(timer, at.now_ms + member.rebalance_timeout_ms)
