"""JoinGroup: which client may join, under which id, and how an existing member is answered.

KIP-394 (a client asks for an id first, v4+), KIP-345 (a restarted static member keeps its place and
fences its former id), KIP-814 (a restarted static leader skips the assignment, v9+). A follower
that joins again without a change gets its generation and causes no rebalance.
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.member import Member, ParkedRequest, protocols_bytes
from kraft_wire.broker.groups.classic.rebalance import (
    begin_rebalance,
    complete_join_if_all_joined,
    generation_response,
    rebalance_or_complete_join,
)
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.object_sizes import MEMBER_BYTES
from kraft_wire.broker.groups.records import group_record
from kraft_wire.broker.groups.shard import GroupShard, protocol_name_in
from kraft_wire.frozen import frozen
from kraft_wire.model import RandomSource
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupResponse
from kraft_wire.wire.generated.sync_group import SyncGroupResponse

__all__ = ["JoinAttempt", "join", "new_member_id"]

_MEMBER_ID_REQUIRED_FROM: Final = 4
_SKIP_ASSIGNMENT_FROM: Final = 9
_MEMBER_ID_PREFIX_MAX: Final = 32_767 - 37
"""UTF-8 bytes that a dash and a UUID can follow in a string of the protocol."""
_NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""A newcomer cannot heartbeat before it knows its id, so its parked request itself expires.

The value is Kafka's; it is not configurable there.
"""


@frozen
class JoinAttempt:
    """A JoinGroup request with its defaults applied, and its sender."""

    waiting: ParkedRequest
    client_id: str
    client_host: str
    group_id: str
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: Mapping[str, bytes]
    session_timeout_ms: int
    rebalance_timeout_ms: int

    @staticmethod
    def of(
        request: JoinGroupRequest, waiting: ParkedRequest, client_id: str, client_host: str
    ) -> "JoinAttempt":
        """Read the request; before v1 the session timeout is the rebalance timeout too."""
        protocols: dict[str, bytes] = {}
        for protocol in request.protocols:
            protocols.setdefault(protocol.name, bytes(protocol.metadata))
        rebalance_timeout_ms = request.rebalance_timeout_ms
        if waiting.api_version == 0:
            rebalance_timeout_ms = request.session_timeout_ms
        return JoinAttempt(
            waiting=waiting,
            client_id=client_id,
            client_host=client_host,
            group_id=request.group_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocols=protocols,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
        )

    def refused(self, error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
        """Return an answer that carries only an error and an id."""
        return JoinGroupResponse(
            error_code=error,
            protocol_name=protocol_name_in(None, self.waiting.api_version),
            member_id=member_id,
        )


def join(shard: GroupShard, attempt: JoinAttempt, at: ClockReading) -> JoinGroupResponse | None:
    """Join a group, or answer why not; None when the answer is parked or already given.

    Errors, first match wins: INCONSISTENT_GROUP_PROTOCOL (the group is of another kind),
    UNKNOWN_MEMBER_ID (an id for a group that does not exist), POLICY_VIOLATION (our bound on
    memory), GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, MEMBER_ID_REQUIRED; for an id:
    UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID. A new group is written to the log before its first member
    joins.
    """
    other = shard.other_groups.get(attempt.group_id)
    if other is not None and (not other.is_empty or other.kind is GroupType.SHARE):
        return attempt.refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    group = shard.groups.get(attempt.group_id)
    if group is None:
        if attempt.member_id:
            return attempt.refused(ErrorCode.UNKNOWN_MEMBER_ID, attempt.member_id)
        created = shard.create_group(attempt.group_id, at)
        if isinstance(created, ErrorCode):
            return attempt.refused(created)
        group = created
    if not _has_room(shard, group, attempt.member_id):
        group.remove(attempt.member_id)
        shard.cancel_member(group, attempt.member_id)
        return attempt.refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
    error = _check_memory(shard, group, attempt)
    if error is not ErrorCode.NONE:
        return attempt.refused(error)
    if not group.supports(attempt.protocol_type, attempt.protocols):
        return attempt.refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, attempt.member_id)
    if not attempt.member_id:
        return _join_new(shard, group, attempt, at)
    return _join_known(shard, group, attempt, at)


def new_member_id(prefix: str, random_source: RandomSource) -> str:
    """Return the client's id or the instance's, a dash, and a random UUID in its dashed form."""
    value = random_source.below(1 << 128)
    value = value & ~(0xF << 76) | 0x4 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    digits = f"{value:032x}"
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return f"{prefix}-{'-'.join(parts)}"


def _has_room(shard: GroupShard, group: ClassicGroup, member_id: str) -> bool:
    """Whether `group.max.size` lets the member in, or stay.

    While members join, those that are parked count, not those that the group has: the size may be
    above the maximum already, and so the last to rejoin are the ones left out.
    """
    size_max = shard.env.settings().group_max_size
    member = group.members.get(member_id)
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            is_parked = member is not None and member.awaiting_join is not None
            return is_parked or group.joined_count < size_max
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            return member is not None or len(group.members) < size_max


def _check_memory(shard: GroupShard, group: ClassicGroup, attempt: JoinAttempt) -> ErrorCode:
    """Check our own bounds: GROUP_MAX_SIZE_REACHED for the group's, POLICY_VIOLATION for all's."""
    member = group.members.get(attempt.member_id)
    present_bytes = 0 if member is None else member.size_bytes
    more_bytes = MEMBER_BYTES + protocols_bytes(attempt.protocols) - present_bytes
    if more_bytes <= 0:
        return ErrorCode.NONE
    if group.size_bytes + more_bytes > shard.env.settings().group_memory_max_bytes:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not shard.env.memory.has_room_for(more_bytes):
        return ErrorCode.POLICY_VIOLATION
    return ErrorCode.NONE


def _join_new(
    shard: GroupShard, group: ClassicGroup, attempt: JoinAttempt, at: ClockReading
) -> JoinGroupResponse | None:
    """Add a client without an id, or give it an id with which it joins again."""
    instance_id = attempt.group_instance_id
    prefix = attempt.client_id if instance_id is None else instance_id
    if len(prefix.encode("utf-8", "surrogatepass")) > _MEMBER_ID_PREFIX_MAX:
        return attempt.refused(ErrorCode.INVALID_REQUEST)
    member_id = new_member_id(prefix, shard.env.random_source)
    if instance_id is not None and instance_id in group.static_members:
        _replace_static(shard, group, attempt, member_id, at)
        return None
    if instance_id is None and attempt.waiting.api_version >= _MEMBER_ID_REQUIRED_FROM:
        group.add_pending(member_id)
        shard.schedule_member(group, member_id, at.now_ms + attempt.session_timeout_ms)
        return attempt.refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
    _add_member(shard, group, attempt, member_id, at)
    return None


def _join_known(
    shard: GroupShard, group: ClassicGroup, attempt: JoinAttempt, at: ClockReading
) -> JoinGroupResponse | None:
    """Add a client that joins with its id: a new member, or one that is already in the group."""
    if attempt.member_id in group.pending_members:
        if attempt.group_instance_id is not None:
            # Ids are given out to dynamic members only.
            return attempt.refused(ErrorCode.UNKNOWN_SERVER_ERROR)
        _add_member(shard, group, attempt, attempt.member_id, at)
        return None
    error = group.validate_member(attempt.member_id, attempt.group_instance_id)
    if error is not ErrorCode.NONE:
        return attempt.refused(error, attempt.member_id)
    member = group.members[attempt.member_id]
    if _repeats_itself(group, member, attempt):
        is_leader = group.leads(member.member_id)
        response = generation_response(group, member, with_members=is_leader)
        response.protocol_name = protocol_name_in(
            response.protocol_name, attempt.waiting.api_version
        )
        return response
    _update(shard, group, member, attempt)
    rebalance_or_complete_join(shard, group, at)
    return None


def _repeats_itself(group: ClassicGroup, member: Member, attempt: JoinAttempt) -> bool:
    """Whether the request changes nothing: then the member just missed an answer.

    A JoinGroup of a stable group's leader always counts: so the leader can react to changes that
    the coordinator does not see, such as new partitions of a topic.
    """
    match group.state:
        case GroupState.COMPLETING_REBALANCE:
            return member.matches(attempt.protocols)
        case GroupState.STABLE:
            return not group.leads(member.member_id) and member.matches(attempt.protocols)
        case _:
            return False


def _add_member(
    shard: GroupShard, group: ClassicGroup, attempt: JoinAttempt, member_id: str, at: ClockReading
) -> None:
    member = Member(
        member_id=member_id,
        group_instance_id=attempt.group_instance_id,
        client_id=attempt.client_id,
        client_host=attempt.client_host,
        rebalance_timeout_ms=attempt.rebalance_timeout_ms,
        session_timeout_ms=attempt.session_timeout_ms,
        protocol_type=attempt.protocol_type,
        protocols=attempt.protocols,
        is_new=True,
    )
    if group.is_in(GroupState.PREPARING_REBALANCE) and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    group.add(member, attempt.waiting)
    shard.schedule_member(group, member_id, at.now_ms + _NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete_join(shard, group, at)


def _update(shard: GroupShard, group: ClassicGroup, member: Member, attempt: JoinAttempt) -> None:
    """Take over the request's fields; an older parked request of the member must be repeated."""
    superseded = JoinGroupResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id
    )
    shard.answer_join(group, member, superseded)
    group.update(
        member,
        attempt.protocols,
        attempt.rebalance_timeout_ms,
        attempt.session_timeout_ms,
        attempt.waiting,
    )


@frozen
class _Replacement:
    """A static member that replaced its former id, and the data to undo that."""

    attempt: JoinAttempt
    old: Member
    member: Member
    before: tuple[Mapping[str, bytes], int, int]
    """The member data of the former id."""
    former_leader: str


def _replace_static(
    shard: GroupShard, group: ClassicGroup, attempt: JoinAttempt, member_id: str, at: ClockReading
) -> None:
    """Let a restarted static member replace its former id, which is fenced.

    A stable group stays as it is unless its protocol would change: only the new id is stored.
    """
    assert attempt.group_instance_id is not None, attempt
    former_leader = group.leader_id
    assert former_leader is not None, group.group_id
    old, member = group.replace_static(attempt.group_instance_id, member_id)
    _fence(shard, old)
    shard.cancel_member(group, old.member_id)
    shard.schedule_session(group, member, at)
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    group.update(
        member,
        attempt.protocols,
        attempt.rebalance_timeout_ms,
        attempt.session_timeout_ms,
        attempt.waiting,
    )
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        # The leader may be computing an assignment for the old id already.
        begin_rebalance(shard, group, at)
    elif not group.is_in(GroupState.STABLE):
        complete_join_if_all_joined(shard, group, at)
    elif group.select_protocol() != group.protocol_name:
        begin_rebalance(shard, group, at)
    else:
        _store(shard, group, _Replacement(attempt, old, member, before, former_leader), at)


def _store(shard: GroupShard, group: ClassicGroup, done: _Replacement, at: ClockReading) -> None:
    """Write the new id, and answer when it is committed: else the next coordinator lacks it.

    In a rebalance that began meanwhile the member has joined, and the generation answers it.
    """

    def on_committed(error: ErrorCode, then: ClockReading) -> None:
        is_awaited = group.is_in(GroupState.STABLE) and not shard.is_released
        if not is_awaited or done.member.awaiting_join is not done.attempt.waiting:
            return
        if error is ErrorCode.NONE:
            response = _same_generation(group, done)
            shard.answer_join(group, done.member, response)
            shard.schedule_session(group, done.member, then)
        else:
            _restore_static(shard, group, done, error, then)

    assignments = {each.member_id: each.assignment for each in group.members.values()}
    appended = shard.log.append_for_later([group_record(group, assignments)], at)
    if appended.error is not ErrorCode.NONE or appended.safe_at is None:
        on_committed(appended.error, at)
    else:
        shard.log.await_commit(appended.safe_at, at, on_committed)


def _fence(shard: GroupShard, member: Member) -> None:
    """Answer the parked requests of a replaced static member."""
    fenced = ErrorCode.FENCED_INSTANCE_ID
    if member.awaiting_join is not None:
        waiting, member.awaiting_join = member.awaiting_join, None
        shard.answer(
            waiting,
            JoinGroupResponse(
                error_code=fenced,
                protocol_name=protocol_name_in(None, waiting.api_version),
                member_id=member.member_id,
            ),
        )
    shard.answer_sync(member, SyncGroupResponse(error_code=fenced))


def _same_generation(group: ClassicGroup, done: _Replacement) -> JoinGroupResponse:
    """Tell a replaced static member that the generation continues without a rebalance.

    Since v9 a leader gets the members and SkipAssignment (KIP-814). Before, its answer names its
    former id as the leader, so that it does not compute an assignment.
    """
    version, member = done.attempt.waiting.api_version, done.member
    skips = version >= _SKIP_ASSIGNMENT_FROM and group.leads(member.member_id)
    response = generation_response(group, member, with_members=skips, skip_assignment=skips)
    if version < _SKIP_ASSIGNMENT_FROM:
        response.leader = done.former_leader
    return response


def _restore_static(
    shard: GroupShard, group: ClassicGroup, done: _Replacement, error: ErrorCode, at: ClockReading
) -> None:
    """Undo a replacement that could not be stored; the client is to try again."""
    attempt = done.attempt
    assert attempt.group_instance_id is not None, attempt
    assert group.members.get(done.member.member_id) is done.member, done.member
    group.update(done.member, *done.before, None)
    replaced, restored = group.replace_static(attempt.group_instance_id, done.old.member_id)
    shard.cancel_member(group, replaced.member_id)
    shard.schedule_session(group, restored, at)
    response = attempt.refused(error)
    response.generation_id = group.generation_id
    response.protocol_type = group.protocol_type
    response.protocol_name = protocol_name_in(group.protocol_name, attempt.waiting.api_version)
    assert group.leader_id is not None, group.group_id
    response.leader = group.leader_id
    shard.answer(attempt.waiting, response)
