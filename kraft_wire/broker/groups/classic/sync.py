"""SyncGroup and Heartbeat: a member asks for its assignment, and reports that it is alive.

The leader's SyncGroup carries the assignments of all members. They are committed before a member
gets one: else the next coordinator, which does not know them, could give the same generation
others. A leader whose connection broke may send other assignments meanwhile: the newest count, as
when the log is read. A group whose assignment could not be stored rebalances again.
"""

from collections.abc import Mapping

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.classic.group import AwaitedAssignments, ClassicGroup, set_awaited
from kraft_wire.broker.groups.classic.member import Member, ParkedRequest
from kraft_wire.broker.groups.classic.rebalance import begin_rebalance, reset_assignments
from kraft_wire.broker.groups.classic.states import HEARTBEAT_ANSWERS, GroupEvent, GroupState
from kraft_wire.broker.groups.classic.timers import Timer, TimerKind
from kraft_wire.broker.groups.records import group_record
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.frozen import frozen
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupResponse

__all__ = ["heartbeat", "sync"]


@frozen
class _Found:
    group: ClassicGroup
    member: Member


def sync(
    shard: GroupShard, request: SyncGroupRequest, waiting: ParkedRequest, at: ClockReading
) -> SyncGroupResponse | None:
    """Hand out the assignment, or park until the leader brings it (None).

    Errors, first match wins: UNKNOWN_MEMBER_ID (no such group, or an empty one), UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
    """
    found = _find(shard, request)
    if isinstance(found, ErrorCode):
        return SyncGroupResponse(error_code=found)
    group, member = found.group, found.member
    if group.is_in(GroupState.PREPARING_REBALANCE):
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync_members.pop(member.member_id, None)
    if not group.pending_sync_members:
        shard.timers.cancel(Timer(TimerKind.SYNC, group.group_id))
    if group.is_in(GroupState.STABLE):
        return _assignment_response(group, member)
    assert group.is_in(GroupState.COMPLETING_REBALANCE), group.state
    # A request that the member parked before, on a connection it has given up, must not hang.
    superseded = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    shard.answer_sync(member, superseded)
    member.awaiting_sync = waiting
    if group.leads(member.member_id):
        _store_assignment(shard, group, request, at)
    return None


def heartbeat(shard: GroupShard, request: HeartbeatRequest, at: ClockReading) -> ErrorCode:
    """Count the member's session from now.

    Errors, first match wins: UNKNOWN_MEMBER_ID (no such group, instance or member),
    FENCED_INSTANCE_ID, ILLEGAL_GENERATION, then what `HEARTBEAT_ANSWERS` says for the state.
    """
    group = shard.groups.get(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    member_id = request.member_id
    error = group.validate_member(member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    shard.schedule_session(group, group.members[member_id], at)
    return HEARTBEAT_ANSWERS[group.state]


def _find(shard: GroupShard, request: SyncGroupRequest) -> _Found | ErrorCode:
    group = shard.groups.get(request.group_id)
    if group is None or group.is_in(GroupState.EMPTY):
        return ErrorCode.UNKNOWN_MEMBER_ID
    member_id = request.member_id
    error = group.validate_member(member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if _contradict(request.protocol_type, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if _contradict(request.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return _Found(group, group.members[member_id])


def _contradict(requested: str | None, present: str | None) -> bool:
    """Whether two names differ; an absent name (before v5) differs from none."""
    return requested is not None and present is not None and requested != present


def _store_assignment(
    shard: GroupShard, group: ClassicGroup, request: SyncGroupRequest, at: ClockReading
) -> None:
    """Write the leader's assignments; members without one get an empty assignment."""
    former = group.awaited
    set_awaited(group, None)
    given = {each.member_id: bytes(each.assignment) for each in request.assignments}
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    given_bytes = sum(len(assignment) for assignment in assignments.values())
    if group.size_bytes + given_bytes > shard.env.settings().group_memory_max_bytes:
        error = ErrorCode.GROUP_MAX_SIZE_REACHED
        _stored(shard, group, assignments, error, at)
        return
    appended = shard.log.append_for_later([group_record(group, assignments)], at)
    safe_at = appended.safe_at
    if appended.error is not ErrorCode.NONE or safe_at is None:
        _stored(shard, group, assignments, appended.error, at)
        return
    assert former is None or former.safe_at < safe_at, (former, safe_at)
    set_awaited(group, AwaitedAssignments(safe_at, assignments))

    def on_committed(error: ErrorCode, then: ClockReading) -> None:
        awaited = group.awaited
        if awaited is not None and awaited.safe_at == safe_at and not shard.is_released:
            set_awaited(group, None)
            _stored(shard, group, awaited.by_member, error, then)

    shard.log.await_commit(safe_at, at, on_committed)


def _stored(
    shard: GroupShard,
    group: ClassicGroup,
    assignments: Mapping[str, bytes],
    error: ErrorCode,
    at: ClockReading,
) -> None:
    """Hand the assignments out, or form another generation where they were not stored."""
    assert group.is_in(GroupState.COMPLETING_REBALANCE), group.state
    if error is not ErrorCode.NONE:
        reset_assignments(shard, group, error, at)
        begin_rebalance(shard, group, at)
        return
    for member in group.members.values():
        group.set_assignment(member, assignments[member.member_id])
        if shard.answer_sync(member, _assignment_response(group, member)):
            # A session that ran out while the request was parked was not acted upon.
            shard.schedule_session(group, member, at)
    group.apply(GroupEvent.ASSIGNMENT_STORED, at.wall_ms)


def _assignment_response(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
