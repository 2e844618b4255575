"""Whether a member of a consumer group may commit or fetch offsets, by its epoch (KIP-1251).

A commit with an older epoch is accepted for partitions that the member has had since then.
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic

__all__ = ["check_commit", "check_fetch"]

_EPOCHS_FROM: Final = 9
_NO_EPOCH: Final = -1


def check_commit(
    group: ConsumerGroup,
    request: OffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    api_version: int,
    *,
    is_transactional: bool,
) -> ErrorCode:
    """Check the committer of offsets.

    Errors, first match wins: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION (a member of the consumer
    protocol below v9), STALE_MEMBER_EPOCH (ILLEGAL_GENERATION in a transaction, and for members of
    the classic protocol); one partition refuses all.
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
    is_classic = member.classic_metadata is not None
    if not is_transactional and not is_classic and api_version < _EPOCHS_FROM:
        return ErrorCode.UNSUPPORTED_VERSION
    partitions = [
        (topic.topic_id, each.partition_index) for topic in topics for each in topic.partitions
    ]
    if epoch == member.member_epoch or (
        epoch < member.member_epoch and _had_since(member, partitions, epoch)
    ):
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if is_transactional else _stale(member)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Check the fetcher of offsets, if it names itself.

    Errors, first match wins: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH (ILLEGAL_GENERATION for a member
    of the classic protocol).
    """
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = None if member_id is None else group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.member_epoch else _stale(member)


def _stale(member: ConsumerMember) -> ErrorCode:
    is_classic = member.classic_metadata is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH


def _had_since(member: ConsumerMember, partitions: Sequence[tuple[Uuid, int]], epoch: int) -> bool:
    """Whether the member has had all these partitions since an epoch."""
    for topic_id, partition in partitions:
        given = [
            epochs.get(partition)
            for topics in (member.assigned, member.pending_revocation)
            if (epochs := topics.get(topic_id)) is not None
        ]
        since = next((each for each in given if each is not None), None)
        if since is None or epoch < since:
            return False
    return True
