"""Members of the classic protocol in a consumer group (KIP-848, online upgrade).

Their requests are answered from the consumer group: a JoinGroup request takes the steps of a
heartbeat (`member_steps`) and is answered at once, with the member's epoch as the generation; a
SyncGroup request gets what is assigned; a Heartbeat request is told to join again when there is
more to do. `classic_join` has the JoinGroup request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.classic.group import CONSUMER_PROTOCOL_TYPE
from kraft_wire.broker.groups.consumer.checks import find_dynamic, find_static
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.leave import remove_members
from kraft_wire.broker.groups.consumer.member import ConsumerMember, MemberState
from kraft_wire.broker.groups.consumer.migration.embedded_protocol import (
    encoded_assignment,
    version_of,
)
from kraft_wire.broker.groups.consumer.session import await_rejoin, renew_session
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.consumer_group_member_metadata_value import ClassicProtocol
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from kraft_wire.wire.message import MalformedMessage, Message

__all__ = ["Outcome", "consumer_group_of", "heartbeat", "leave", "sync"]

_Response = TypeVar("_Response", bound=Message)


@dataclass(slots=True)
class Outcome(Generic[_Response]):
    """An answer, and when it may be given."""

    response: _Response
    safe_at: int | None = None
    """High watermark of the group's partition to wait for; None: now."""


def consumer_group_of(shard: GroupShard, group_id: str) -> ConsumerGroup | None:
    """Return the consumer group with members that a classic request is for; None for others."""
    group = shard.other_groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) and not group.is_empty else None


def sync(
    shard: GroupShard, group: ConsumerGroup, request: SyncGroupRequest, at: ClockReading
) -> Outcome[SyncGroupResponse]:
    """Hand a member what it has now.

    Errors, first match wins: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS, UNKNOWN_SERVER_ERROR (the member's first
    protocol is none of a consumer: a classic group used another one).
    """
    member = _find(group, request.member_id, request.group_instance_id, request.generation_id)
    if isinstance(member, ErrorCode):
        return Outcome(SyncGroupResponse(error_code=member))
    protocol = _protocol_of(member)
    if protocol is None:
        return Outcome(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    is_other = request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
    if is_other or request.protocol_name not in (None, protocol.name):
        inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return Outcome(SyncGroupResponse(error_code=inconsistent))
    is_behind = group.assignment_epoch > member.member_epoch
    if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        await_rejoin(shard, group.group_id, member, at)
        return Outcome(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    try:
        version = version_of(bytes(protocol.metadata))
    except MalformedMessage:
        return Outcome(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    shard.timers.cancel(ConsumerTimer(ConsumerTimerKind.SYNC, group.group_id, member.member_id))
    renew_session(shard, group.group_id, member, at)
    partitions = {topic_id: list(each) for topic_id, each in member.assigned.items()}
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encoded_assignment(partitions, version, shard.env.image()),
    )
    return Outcome(response, group.safe_at)


def heartbeat(
    shard: GroupShard, group: ConsumerGroup, request: HeartbeatRequest, at: ClockReading
) -> ErrorCode:
    """Count a member's session from now; it is to join again when it must revoke, or may continue.

    Errors, first match wins: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS.
    """
    member = _find(group, request.member_id, request.group_instance_id, request.generation_id)
    if isinstance(member, ErrorCode):
        return member
    renew_session(shard, group.group_id, member, at)
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            is_rejoin_due = True
        case MemberState.UNRELEASED_PARTITIONS:
            is_rejoin_due = not _waits_for_others(group, member)
        case _:
            is_rejoin_due = False
    if member.member_epoch < group.assignment_epoch or is_rejoin_due:
        await_rejoin(shard, group.group_id, member, at)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    shard: GroupShard,
    group: ConsumerGroup,
    leaving: Sequence[MemberIdentity],
    at: ClockReading,
) -> Outcome[LeaveGroupResponse]:
    """Remove members of either protocol as one batch.

    Errors per member, first match wins: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    found: dict[str, ConsumerMember] = {}
    responses = []
    for identity in leaving:
        member = _find_leaving(group, identity)
        response = MemberResponse(
            member_id=identity.member_id, group_instance_id=identity.group_instance_id
        )
        if isinstance(member, Refusal):
            response.error_code = member.error
        else:
            found[member.member_id] = member
        responses.append(response)
    if not found:
        return Outcome(LeaveGroupResponse(members=responses))
    appended = remove_members(shard, group, list(found.values()), at)
    if appended.error is not ErrorCode.NONE:
        return Outcome(LeaveGroupResponse(error_code=appended.error))
    return Outcome(LeaveGroupResponse(members=responses), appended.safe_at)


def _find_leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember | Refusal:
    """Return the member; an administrator names an instance without a member id."""
    if identity.group_instance_id is None:
        return find_dynamic(group, identity.member_id)
    holder_id = group.static_members.get(identity.group_instance_id)
    return find_static(group, identity.member_id or holder_id or "", identity.group_instance_id)


def _find(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> ConsumerMember | ErrorCode:
    """Return a member of the classic protocol in its present generation."""
    if instance_id is None:
        member = find_dynamic(group, member_id)
    else:
        member = find_static(group, member_id, instance_id)
    if isinstance(member, Refusal):
        return member.error
    if member.classic_metadata is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member if generation_id == member.member_epoch else ErrorCode.ILLEGAL_GENERATION


def _protocol_of(member: ConsumerMember) -> ClassicProtocol | None:
    """Return the protocol that a member prefers; None if its record has none."""
    assert member.classic_metadata is not None, member.member_id
    return next(iter(member.classic_metadata.supported_protocols), None)


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether other members still hold partitions of a member's target."""
    holders = group.holders()
    return any(
        (topic_id, partition) in holders
        for topic_id, partitions in (group.targets.get(member.member_id) or {}).items()
        for partition in partitions
        if partition not in (member.assigned.get(topic_id) or ())
    )
