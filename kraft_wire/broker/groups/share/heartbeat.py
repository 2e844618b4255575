"""ShareGroupHeartbeat: how a member joins, stays, changes what it reads, and leaves (KIP-932).

`heartbeat` finds the group and the member, or makes them, and takes the steps of `member_steps`.
"""

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.assignors.spec import same_target
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.checks import (
    check_capacity,
    check_epoch,
    find_group,
    find_member,
)
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.group_settings import heartbeat_interval_ms
from kraft_wire.broker.groups.share.initialization import begin_state
from kraft_wire.broker.groups.share.leave import remove_member
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.member_steps import (
    Walk,
    note_beginning,
    raise_epoch,
    reconcile,
    retarget,
    subscribe,
)
from kraft_wire.broker.groups.share.request_checks import JOIN, LEAVE
from kraft_wire.broker.groups.share.sessions import renew_session
from kraft_wire.broker.groups.share.write import write
from kraft_wire.frozen import frozen
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

__all__ = ["ShareClient", "ShareHeartbeatOutcome", "share_heartbeat"]


@frozen
class ShareClient:
    """The sender of a heartbeat."""

    client_id: str
    host: str
    """The address with a leading slash."""


@frozen
class ShareHeartbeatOutcome:
    """The answer to a heartbeat, and when it may be given."""

    response: ShareGroupHeartbeatResponse
    safe_at: int | None = None
    """High watermark of the group's partition to wait for; None: now."""


def share_heartbeat(
    shard: GroupShard,
    request: ShareGroupHeartbeatRequest,
    client: ShareClient,
    at: ClockReading,
) -> ShareHeartbeatOutcome | Refusal:
    """Take a heartbeat, and return the answer or why there is none.

    Errors, first match wins: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
    FENCED_MEMBER_EPOCH, those of the append.
    """
    if request.member_epoch == LEAVE:
        return _leave(shard, request, at)
    walk = _entered(shard, request)
    if isinstance(walk, Refusal):
        return walk
    outcome = _taken(walk, request, client, at)
    if isinstance(outcome, Refusal):
        _forget(walk)
    return outcome


def _leave(
    shard: GroupShard, request: ShareGroupHeartbeatRequest, at: ClockReading
) -> ShareHeartbeatOutcome | Refusal:
    group = find_group(shard, request.group_id, f"Group {request.group_id} not found.")
    if isinstance(group, Refusal):
        return group
    member = find_member(group, request.member_id)
    if isinstance(member, Refusal):
        return member
    appended = remove_member(shard, group, member, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    response = ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVE)
    return ShareHeartbeatOutcome(response, appended.safe_at)


# --- Who it is -------------------------------------------------------------------------------


def _entered(shard: GroupShard, request: ShareGroupHeartbeatRequest) -> Walk | Refusal:
    """Find the group and the member, or make them; a new group is stored with its first record."""
    group_id, is_join = request.group_id, request.member_epoch == JOIN
    group = find_group(shard, group_id, f"Share group {group_id} not found.")
    is_new = group_id not in shard.other_groups and group_id not in shard.groups
    if isinstance(group, Refusal):
        if not (is_new and is_join):
            return group
        group = ShareGroup(group_id, shard.env.memory)
    size_max = shard.env.settings().group_share_max_size
    refused = check_capacity(group, request.member_id, size_max)
    if refused is not None:
        return refused
    member = group.members.get(request.member_id)
    is_new_member = member is None and is_join
    if is_new_member:
        # As in Kafka, before any record: the order of maps depends on it.
        group.put_member(ShareMember(request.member_id))
    found = find_member(group, request.member_id)
    if isinstance(found, Refusal):
        return found
    refused = check_epoch(found, request.member_epoch)
    return refused or Walk(shard, group, found, found, is_new, is_new_member)


def _forget(walk: Walk) -> None:
    """Undo the entry of a member whose records were not written."""
    if walk.is_new_group:
        walk.group.release()
    elif walk.is_new_member:
        walk.group.remove_member(walk.former.member_id)


# --- Its steps -------------------------------------------------------------------------------


def _taken(
    walk: Walk, request: ShareGroupHeartbeatRequest, client: ShareClient, at: ClockReading
) -> ShareHeartbeatOutcome | Refusal:
    """Take the steps of a heartbeat whose sender is known."""
    names = request.subscribed_topic_names
    has_new_names = subscribe(walk, names, request.rack_id, client.client_id, client.host)
    is_homogeneous = raise_epoch(walk, has_new_names=has_new_names)
    aim = retarget(walk, at, is_homogeneous=is_homogeneous)
    if isinstance(aim, Refusal):
        return aim
    reconcile(walk, *aim)
    note_beginning(walk, at)
    return _store(walk, at) or _answer(walk, request, at)


def _answer(
    walk: Walk, request: ShareGroupHeartbeatRequest, at: ClockReading
) -> ShareHeartbeatOutcome:
    """Set the member's timer, and answer."""
    group_id, member = walk.group.group_id, walk.member
    renew_session(walk.shard, group_id, member.member_id, at)
    response = ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(walk.shard.env, group_id),
    )
    is_full = request.member_epoch == JOIN or request.subscribed_topic_names is not None
    if is_full or not same_target(walk.former.assigned, member.assigned):
        response.assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in member.assigned.items()
            ]
        )
    return ShareHeartbeatOutcome(response, walk.safe_at)


def _store(walk: Walk, at: ClockReading) -> Refusal | None:
    """Write the records, and have share partitions begin; after an error nothing changed."""
    shard, group = walk.shard, walk.group
    appended = write(shard, group, walk.records, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    walk.safe_at = appended.safe_at
    if walk.is_new_group:
        # Kafka notes it with a group that it does not keep: the next heartbeat looks again.
        shard.put_other_group(group, at)
    elif walk.has_looked:
        group.note_metadata(walk.names, shard.env.image())
    if len(walk.beginning):
        begin_state(shard, group, walk.beginning, at)
    return None
