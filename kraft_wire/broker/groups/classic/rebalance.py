"""A rebalance of a classic group: begin, wait for the members, form the generation; and time.

KIP-62 (rebalance timeout), KIP-134 (initial delay), KIP-345 (static members outlive a rebalance
that they miss), KIP-394 (given ids hold a rebalance up until they are used or expire). The join
phase ends when every member has a parked JoinGroup request and every given id was used, or when
its time is up: then dynamic members that did not come are out, static ones keep their place.

Read `states.py` first, then this, then `join.py`.
"""

from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.classic.group import ClassicGroup, set_awaited
from kraft_wire.broker.groups.classic.member import Member
from kraft_wire.broker.groups.classic.states import GroupEvent, GroupState
from kraft_wire.broker.groups.classic.timers import Timer, TimerKind
from kraft_wire.broker.groups.records import group_record
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupResponse, JoinGroupResponseMember
from kraft_wire.wire.generated.sync_group import SyncGroupResponse

__all__ = [
    "begin_rebalance",
    "complete_join_if_all_joined",
    "generation_response",
    "group_loaded",
    "rebalance_or_complete_join",
    "remove_members",
    "reset_assignments",
    "timer_due",
]


_JOIN_RETRY_MS: Final = 1_000
"""Shortest time until a join phase without a joined member is checked again.

The clients choose the rebalance timeout. With 0 the phase would end again at the same moment,
endlessly: static members stay until their session ends.
"""


def rebalance_or_complete_join(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> None:
    """React to a change of membership: begin a rebalance, or see whether one is done."""
    if group.can_rebalance:
        begin_rebalance(shard, group, at)
    else:
        complete_join_if_all_joined(shard, group, at)


def begin_rebalance(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> None:
    """Begin the join phase; members that wait for an assignment get REBALANCE_IN_PROGRESS.

    The first rebalance of an empty group waits `group.initial.rebalance.delay.ms` for more members,
    again after each newcomer, up to the rebalance timeout (KIP-134).
    """
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        reset_assignments(shard, group, ErrorCode.REBALANCE_IN_PROGRESS, at)
    group.pending_sync_members.clear()
    shard.timers.cancel(Timer(TimerKind.SYNC, group.group_id))
    is_first = group.is_in(GroupState.EMPTY)
    group.apply(GroupEvent.REBALANCE_STARTED, at.wall_ms)
    if is_first:
        delay_ms = shard.env.settings().group_initial_rebalance_delay_ms
        left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        _wait_for_first_members(shard, group, delay_ms, left_ms, at)
    elif group.all_joined:
        _complete_join(shard, group, at)
    else:
        _schedule_join_end(shard, group, group.rebalance_timeout_ms, at)


def complete_join_if_all_joined(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> None:
    """End the join phase when all members have joined; the initial delay is never cut short."""
    if not group.is_in(GroupState.PREPARING_REBALANCE):
        return
    if group.previous_state is GroupState.EMPTY or not group.all_joined:
        return
    _complete_join(shard, group, at)


def remove_members(shard: GroupShard, group: ClassicGroup, member_ids: list[str]) -> None:
    """Remove members; their parked requests are answered with UNKNOWN_MEMBER_ID."""
    for member_id in member_ids:
        member = group.members.get(member_id)
        if member is not None:
            gone = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
            shard.answer_join(group, member, gone)
            shard.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)
        shard.cancel_member(group, member_id)


def reset_assignments(
    shard: GroupShard, group: ClassicGroup, error: ErrorCode, at: ClockReading
) -> None:
    """Drop the assignments and answer the members that wait for them with the error."""
    assert group.is_in(GroupState.COMPLETING_REBALANCE), group.state
    set_awaited(group, None)
    for member in group.members.values():
        group.set_assignment(member, b"")
        if shard.answer_sync(member, SyncGroupResponse(error_code=error)):
            shard.schedule_session(group, member, at)


def generation_response(
    group: ClassicGroup, member: Member, *, with_members: bool, skip_assignment: bool = False
) -> JoinGroupResponse:
    """Send a member its generation; the leader also gets the metadata of all members."""
    members: list[JoinGroupResponseMember] = []
    if with_members:
        assert group.protocol_name is not None, group.group_id
        members = [
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                metadata=each.protocols[group.protocol_name],
            )
            for each in group.members.values()
        ]
    assert group.leader_id is not None, group.group_id
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id,
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def timer_due(shard: GroupShard, timer: Timer, at: ClockReading) -> None:
    """Act on a deadline that has passed."""
    group = shard.groups.get(timer.group_id)
    assert group is not None, timer
    match timer.kind:
        case TimerKind.MEMBER:
            _expire_member(shard, group, timer.member_id, at)
        case TimerKind.JOIN:
            _join_time_is_up(shard, group, at)
        case TimerKind.SYNC:
            _expire_pending_sync(shard, group, at)


def group_loaded(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> None:
    """Give the members of a group that was read from the log a whole session to rejoin."""
    for member in group.members.values():
        shard.schedule_session(group, member, at)
    if len(group.members) > shard.env.settings().group_max_size:
        begin_rebalance(shard, group, at)


def _wait_for_first_members(
    shard: GroupShard, group: ClassicGroup, delay_ms: int, left_ms: int, at: ClockReading
) -> None:
    group.initial_delay = (delay_ms, left_ms)
    _schedule_join_end(shard, group, delay_ms, at)


def _schedule_join_end(
    shard: GroupShard, group: ClassicGroup, after_ms: int, at: ClockReading
) -> None:
    shard.timers.schedule(Timer(TimerKind.JOIN, group.group_id), at.now_ms + after_ms)


def _join_time_is_up(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> None:
    if group.initial_delay is None:
        _complete_join(shard, group, at)
        return
    delay_ms, left_ms = group.initial_delay
    if not group.new_member_added or left_ms == 0:
        _complete_join(shard, group, at)
        return
    group.new_member_added = False
    next_ms = min(shard.env.settings().group_initial_rebalance_delay_ms, left_ms)
    _wait_for_first_members(shard, group, next_ms, max(left_ms - delay_ms, 0), at)


def _complete_join(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> None:
    """Form a generation, or wait again if only static members are left and none joined."""
    assert group.is_in(GroupState.PREPARING_REBALANCE), group.state
    shard.timers.cancel(Timer(TimerKind.JOIN, group.group_id))
    group.initial_delay = None
    group.new_member_added = False
    missing = [m.member_id for m in group.not_yet_rejoined() if not m.is_static]
    remove_members(shard, group, missing)
    if group.members and not group.elect_joined_leader():
        again_ms = max(group.rebalance_timeout_ms, _JOIN_RETRY_MS)
        _schedule_join_end(shard, group, again_ms, at)
        return
    group.form_generation(at.wall_ms)
    if group.is_in(GroupState.EMPTY):
        # A failed append is harmless: after a restart the former generation has no live members
        # either, and its sessions expire.
        shard.log.append([group_record(group, {})], at)
        return
    for member in group.members.values():
        response = generation_response(group, member, with_members=group.leads(member.member_id))
        shard.answer_join(group, member, response)
        shard.schedule_session(group, member, at)
        member.is_new = False
        group.pending_sync_members[member.member_id] = None
    shard.timers.schedule(
        Timer(TimerKind.SYNC, group.group_id), at.now_ms + group.rebalance_timeout_ms
    )


def _expire_member(
    shard: GroupShard, group: ClassicGroup, member_id: str, at: ClockReading
) -> None:
    """Remove a member whose session has expired, or an id that was given out and never used."""
    if member_id in group.pending_members:
        group.remove(member_id)
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.all_joined:
            _complete_join(shard, group, at)
        return
    member = group.members.get(member_id)
    if member is None or member.satisfies_heartbeat:
        # Parked members are scheduled again when they are answered.
        return
    remove_members(shard, group, [member_id])
    if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        begin_rebalance(shard, group, at)
    elif group.is_in(GroupState.PREPARING_REBALANCE) and group.all_joined:
        _complete_join(shard, group, at)


def _expire_pending_sync(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> None:
    """Remove the members that joined the generation and never asked for their assignment."""
    # Every way out of these states cancels the timer.
    assert group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE), group.state
    late = list(group.pending_sync_members)
    assert late, group.group_id
    remove_members(shard, group, late)
    begin_rebalance(shard, group, at)
