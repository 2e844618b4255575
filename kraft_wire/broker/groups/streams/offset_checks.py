"""Whether a member of a streams group may commit or fetch offsets, by its epoch (KIP-1251).

A commit with an older epoch is accepted for partitions of tasks that the member has had since then.
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic

__all__ = ["check_streams_commit", "check_streams_fetch"]

_EPOCHS_FROM: Final = 9
_NO_EPOCH: Final = -1


def check_streams_commit(
    group: StreamsGroup,
    request: OffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    api_version: int,
    *,
    is_transactional: bool,
) -> ErrorCode:
    """Check the committer of offsets.

    Errors, first match wins: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION (below v9), STALE_MEMBER_EPOCH
    (ILLEGAL_GENERATION in a transaction); one partition refuses all.
    """
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return ErrorCode.NONE
    is_anonymous = (
        epoch == _NO_EPOCH and not request.member_id and request.group_instance_id is None
    )
    if is_transactional and is_anonymous:
        return ErrorCode.NONE
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not is_transactional and api_version < _EPOCHS_FROM:
        return ErrorCode.UNSUPPORTED_VERSION
    if epoch == member.member_epoch or (
        epoch < member.member_epoch and _had_since(group, member, topics, epoch)
    ):
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if is_transactional else ErrorCode.STALE_MEMBER_EPOCH


def check_streams_fetch(group: StreamsGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Check the fetcher of offsets, if it names itself.

    Errors, first match wins: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
    """
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = None if member_id is None else group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.member_epoch else ErrorCode.STALE_MEMBER_EPOCH


def _had_since(
    group: StreamsGroup,
    member: StreamsMember,
    topics: Sequence[OffsetCommitRequestTopic],
    epoch: int,
) -> bool:
    """Whether the member has had the tasks of all these partitions since an epoch."""
    if group.topology is None:
        return False
    for topic in topics:
        subtopology_id = group.subtopologies.get(topic.name)
        for each in topic.partitions:
            since = _given_in(member, subtopology_id, each.partition_index)
            if since is None or epoch < since:
                return False
    return True


def _given_in(member: StreamsMember, subtopology_id: str | None, partition: int) -> int | None:
    """Return the epoch in which a member was given a task; None if it does not have it."""
    if subtopology_id is None:
        return None
    for tasks in (member.assigned.active, member.pending_revocation.active):
        since = tasks.get(subtopology_id, {}).get(partition)
        if since is not None:
            return since
    return None
