"""StreamsGroupHeartbeat: how a member joins, stays, and leaves (KIP-1071).

`streams_heartbeat` finds the group and the member, or makes them, and takes the steps of
`member_steps`.
"""

from collections.abc import Mapping
from dataclasses import field

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.records import group_tombstone
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.checks import (
    check_capacity,
    check_epoch,
    find_group,
    find_member,
)
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.group_topology import followed_topics, topology_size_bytes
from kraft_wire.broker.groups.streams.heartbeat_answer import heartbeat_answer
from kraft_wire.broker.groups.streams.leave import remove_member
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.member_steps import (
    Walk,
    await_more_members,
    configure_topics,
    describe,
    raise_epoch,
    reconcile,
    retarget,
)
from kraft_wire.broker.groups.streams.request_checks import JOIN, LEAVE
from kraft_wire.broker.groups.streams.sessions import limit_revocation, renew_session
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredTopology
from kraft_wire.broker.groups.streams.write import write
from kraft_wire.frozen import frozen
from kraft_wire.wire.generated.create_topics import CreatableTopic
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

__all__ = ["StreamsClient", "StreamsHeartbeatOutcome", "streams_heartbeat"]


@frozen
class StreamsClient:
    """The sender of a heartbeat."""

    client_id: str
    host: str
    """The address with a leading slash."""


@frozen
class StreamsHeartbeatOutcome:
    """The answer to a heartbeat, and when it may be given."""

    response: StreamsGroupHeartbeatResponse
    safe_at: int | None = None
    """High watermark of the group's partition to wait for; None: now."""
    topics_to_create: Mapping[str, CreatableTopic] = field(default_factory=dict)
    """Internal topics that the broker is to create."""


def streams_heartbeat(
    shard: GroupShard,
    request: StreamsGroupHeartbeatRequest,
    client: StreamsClient,
    at: ClockReading,
) -> StreamsHeartbeatOutcome | Refusal:
    """Take a heartbeat, and return the answer or why there is none.

    Errors, first match wins: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
    FENCED_MEMBER_EPOCH, those of the steps, POLICY_VIOLATION (no memory for a member that is new),
    those of the append.
    """
    if request.member_epoch == LEAVE:
        return _leave(shard, request, at)
    walk = _entered(shard, request)
    if isinstance(walk, Refusal):
        return walk
    outcome = _taken(walk, request, client, at)
    if isinstance(outcome, Refusal) and shard.other_groups.get(request.group_id) is not walk.group:
        walk.group.release()
    return outcome


def _leave(
    shard: GroupShard, request: StreamsGroupHeartbeatRequest, at: ClockReading
) -> StreamsHeartbeatOutcome | Refusal:
    group = find_group(shard, request.group_id, f"Group {request.group_id} not found.")
    if isinstance(group, Refusal):
        return group
    if request.shutdown_application:
        group.request_shutdown(request.member_id)
    member = find_member(group, request.member_id)
    if isinstance(member, Refusal):
        return member
    appended = remove_member(shard, group, member, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    response = StreamsGroupHeartbeatResponse(
        member_id=member.member_id, member_epoch=LEAVE, status=[]
    )
    return StreamsHeartbeatOutcome(response, appended.safe_at)


# --- Who it is -------------------------------------------------------------------------------


def _entered(shard: GroupShard, request: StreamsGroupHeartbeatRequest) -> Walk | Refusal:
    """Find the group and the member, or make them; a new group is stored with its first record."""
    group_id, member_id = request.group_id, request.member_id
    is_join = request.member_epoch == JOIN
    group = find_group(shard, group_id, f"Streams group {group_id} not found.")
    if isinstance(group, Refusal):
        if not is_join or not _may_take(shard, group_id):
            return group
        group = StreamsGroup(group_id, shard.env.memory)
    elif is_join:
        refused = check_capacity(group, shard.env.settings().group_streams_max_size)
        if refused is not None:
            return refused
    member = find_member(group, member_id)
    if isinstance(member, Refusal):
        if not is_join:
            return member
        member = StreamsMember(member_id)
    refused = check_epoch(member, request)
    is_known = group_id in shard.other_groups or group_id in shard.groups
    return refused or Walk(shard, group, member, member, is_known)


def _may_take(shard: GroupShard, group_id: str) -> bool:
    """Whether a new group may have the id: it is free, or belongs to an empty classic group."""
    classic = shard.groups.get(group_id)
    return group_id not in shard.other_groups and (
        classic is None or classic.is_in(GroupState.EMPTY)
    )


# --- Its steps -------------------------------------------------------------------------------


def _taken(
    walk: Walk, request: StreamsGroupHeartbeatRequest, client: StreamsClient, at: ClockReading
) -> StreamsHeartbeatOutcome | Refusal:
    """Take the steps of a heartbeat whose sender is known."""
    topology = describe(walk, request, client.client_id, client.host)
    if isinstance(topology, Refusal):
        return topology
    walk.topology = topology
    configured = configure_topics(walk, topology)
    if isinstance(configured, Refusal):
        return configured
    refused = raise_epoch(walk, topology, configured, request, at)
    if refused is not None:
        return refused
    aim = retarget(walk, configured, at)
    if isinstance(aim, Refusal):
        return aim
    refused = reconcile(walk, *aim, request)
    if refused is not None:
        return refused
    if walk.has_stepped:
        limit_revocation(walk.shard, walk.group, walk.member, at)
    renew_session(walk.shard, walk.group.group_id, walk.member.member_id, at)
    if request.shutdown_application:
        walk.group.request_shutdown(walk.member.member_id)
    response = heartbeat_answer(walk, request, configured)
    return response if isinstance(response, Refusal) else _store(walk, response, configured, at)


# --- The end ---------------------------------------------------------------------------------


def _store(
    walk: Walk,
    response: StreamsGroupHeartbeatResponse,
    configured: ConfiguredTopology,
    at: ClockReading,
) -> StreamsHeartbeatOutcome | Refusal:
    """Write the records; after an error nothing changed."""
    if not _has_room(walk):
        return Refusal(ErrorCode.POLICY_VIOLATION)
    appended = _written(walk, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    return StreamsHeartbeatOutcome(response, appended.safe_at, configured.internal_topics_to_create)


def _has_room(walk: Walk) -> bool:
    """Whether the memory of all groups has room for a member that is new, and its topology."""
    if walk.member.member_id in walk.group.members:
        return True
    more_bytes = walk.member.size_bytes
    if walk.group.topology is None:
        more_bytes += topology_size_bytes(walk.topology)
    return walk.shard.env.memory.has_room_for(more_bytes)


def _written(walk: Walk, at: ClockReading) -> Appended:
    shard, group = walk.shard, walk.group
    if group.group_id in shard.other_groups:
        appended = write(shard, group, walk.records, at)
        if appended.error is ErrorCode.NONE and group.topology is not None:
            group.seen_topics.note(followed_topics(group.topology), shard.env.image())
        return appended
    if group.group_id in shard.groups:
        walk.records.insert(0, group_tombstone(group.group_id))
    # As in Kafka, the group is made of its records: what else it had is forgotten.
    stored = StreamsGroup(group.group_id, shard.env.memory)
    appended = write(shard, stored, walk.records, at)
    if appended.error is not ErrorCode.NONE:
        stored.release()
        return appended
    group.release()
    shard.put_other_group(stored, at)
    if walk.is_known_group:
        # The timers of the classic group ended, and with them those of this heartbeat.
        await_more_members(walk, at)
        renew_session(shard, group.group_id, walk.member.member_id, at)
    return appended
