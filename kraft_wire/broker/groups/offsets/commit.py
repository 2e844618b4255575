"""OffsetCommit and TxnOffsetCommit: offsets of a group into the log.

A commit is committed in the log before it is visible (`uncommitted.py`). Offsets of a transaction
stay pending until its marker (`transactions.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import CoordinatorRecord, TransactionalWrite
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.offset_checks import check_commit
from kraft_wire.broker.groups.group_types import GroupType, OtherGroup
from kraft_wire.broker.groups.object_sizes import GROUP_BYTES, OFFSET_BYTES
from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey
from kraft_wire.broker.groups.records import offset_record
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.offset_checks import check_streams_commit
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

__all__ = ["CommitOutcome", "commit_offsets", "failed_topics"]

_DEFAULT_RETENTION: Final = -1
_NEVER_MS: Final = (1 << 63) - 1
"""The latest time that a record can carry."""
_STALE_GROUP_ERROR_FROM: Final = 9


class CommitOutcome(NamedTuple):
    """The answer to a commit, and when it may be given."""

    topics: list[OffsetCommitResponseTopic]
    safe_at: int | None = None
    """High watermark of the group's partition to wait for; None: now."""


@dataclass(slots=True)
class _Commit:
    """One request's worth of offsets, on their way into the log."""

    base_offset: int
    """Of the first record."""
    is_pending: bool
    """Whether the offsets are a transaction's, and replace nothing yet."""
    records: list[CoordinatorRecord] = field(default_factory=list)
    offsets: list[tuple[OffsetKey, CommittedOffset]] = field(default_factory=list)
    keys: dict[OffsetKey, None] = field(default_factory=dict)
    size_bytes: int = 0
    """Memory that the offsets will take."""


def commit_offsets(
    shard: GroupShard,
    request: OffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    api_version: int,
    at: ClockReading,
    transaction: TransactionalWrite | None = None,
) -> CommitOutcome:
    """Commit for `topics`, the request's topics that exist, names and ids filled in.

    The answer and the visible offsets wait until the ISR has the commit, and until the flush if
    acknowledgements promise to survive power loss. Within a transaction a member may commit during
    a rebalance, and a request without a member in any state (KIP-447).

    Errors of all partitions, first match wins: GROUP_ID_NOT_FOUND (v9+; ILLEGAL_GENERATION before)
    for a generation of a group that does not exist, and of a share group; UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, POLICY_VIOLATION (our limit),
    those of the append; of a consumer group those of `consumer.offset_checks.check_commit`.
    Error of one partition: OFFSET_METADATA_TOO_LARGE; the others are committed.
    """
    if transaction is None:
        error = _validate_commit(shard, request, topics, api_version, at)
    else:
        error = _validate_transactional(shard, request, topics, api_version)
    if error is not ErrorCode.NONE:
        return CommitOutcome(failed_topics(topics, error))
    commit = _Commit(shard.log.end_offset(), transaction is not None)
    responses = [_prepare_topic(shard, request, topic, commit, at) for topic in topics]
    if not commit.records:
        return CommitOutcome(responses)
    appended = shard.log.append_for_later(commit.records, at, transaction)
    if appended.error is not ErrorCode.NONE:
        return CommitOutcome(failed_topics(topics, appended.error))
    if request.group_id not in shard.other_groups:
        shard.simple_group(request.group_id, at)
    for key, committed in commit.offsets:
        if transaction is None:
            shard.uncommitted.change(key, committed, appended.safe_at)
        else:
            shard.offsets.put_open(transaction.producer_id, key, committed)
    return CommitOutcome(responses, appended.safe_at)


def failed_topics(
    topics: Sequence[OffsetCommitRequestTopic], error: ErrorCode
) -> list[OffsetCommitResponseTopic]:
    """Answer every partition with an error."""
    return [_failed_topic(topic, error) for topic in topics]


def _validate_commit(
    shard: GroupShard,
    request: OffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    api_version: int,
    at: ClockReading,
) -> ErrorCode:
    """Check the committer against the group; a commit of a live member counts as a heartbeat."""
    group_id = request.group_id
    generation_id = request.generation_id_or_member_epoch
    other = shard.other_groups.get(group_id)
    if other is not None:
        return _validate_other(shard, other, request, topics, api_version, is_transactional=False)
    group = shard.groups.get(group_id)
    if group is None:
        if generation_id >= 0:
            stale = api_version >= _STALE_GROUP_ERROR_FROM
            return ErrorCode.GROUP_ID_NOT_FOUND if stale else ErrorCode.ILLEGAL_GENERATION
        has_memory = shard.env.memory.has_room_for(GROUP_BYTES + len(group_id))
        return ErrorCode.NONE if has_memory else ErrorCode.POLICY_VIOLATION
    error = _validate_committer(group, request)
    member = group.members.get(request.member_id)
    if (
        error is ErrorCode.NONE
        and member is not None
        and group.is_in(GroupState.STABLE, GroupState.PREPARING_REBALANCE)
    ):
        shard.schedule_session(group, member, at)
    return error


def _validate_transactional(
    shard: GroupShard,
    request: OffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    api_version: int,
) -> ErrorCode:
    """Check the committer of a transaction against the group, if it names a member (KIP-447)."""
    generation_id, group_id = request.generation_id_or_member_epoch, request.group_id
    is_anonymous = (
        generation_id == -1 and not request.member_id and request.group_instance_id is None
    )
    other = shard.other_groups.get(group_id)
    if other is not None:
        return _validate_other(shard, other, request, topics, api_version, is_transactional=True)
    group = shard.groups.get(group_id)
    if group is None:
        if generation_id >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        has_memory = shard.env.memory.has_room_for(GROUP_BYTES + len(group_id))
        return ErrorCode.NONE if has_memory else ErrorCode.POLICY_VIOLATION
    if is_anonymous or (generation_id < 0 and group.is_in(GroupState.EMPTY)):
        return ErrorCode.NONE
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    is_current = generation_id == group.generation_id
    return ErrorCode.NONE if is_current else ErrorCode.ILLEGAL_GENERATION


def _validate_committer(group: ClassicGroup, request: OffsetCommitRequest) -> ErrorCode:
    """Check member and generation; tools and consumers without a group may commit when empty."""
    generation_id = request.generation_id_or_member_epoch
    member_id = request.member_id
    if generation_id < 0 and group.is_in(GroupState.EMPTY):
        return ErrorCode.NONE
    if generation_id < 0 and not member_id and request.group_instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.validate_member(member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        # The member is right about its generation, but has no assignment in it yet.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _validate_other(
    shard: GroupShard,
    other: OtherGroup,
    request: OffsetCommitRequest,
    topics: Sequence[OffsetCommitRequestTopic],
    api_version: int,
    *,
    is_transactional: bool,
) -> ErrorCode:
    """Check the committer against a group that is not of the classic kind."""
    named = _with_short_metadata(shard, topics)
    if isinstance(other, ConsumerGroup):
        return check_commit(other, request, named, api_version, is_transactional=is_transactional)
    if isinstance(other, StreamsGroup):
        return check_streams_commit(
            other, request, named, api_version, is_transactional=is_transactional
        )
    assert other.kind is GroupType.SHARE, other.kind
    return ErrorCode.GROUP_ID_NOT_FOUND


def _with_short_metadata(
    shard: GroupShard, topics: Sequence[OffsetCommitRequestTopic]
) -> list[OffsetCommitRequestTopic]:
    """Return the topics without partitions that their metadata refuses: no epoch refuses these."""
    metadata_max = shard.env.settings().offset_metadata_max_bytes
    return [
        OffsetCommitRequestTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                each
                for each in topic.partitions
                if utf16_length(each.committed_metadata or "") <= metadata_max
            ],
        )
        for topic in topics
    ]


def _prepare_topic(
    shard: GroupShard,
    request: OffsetCommitRequest,
    topic: OffsetCommitRequestTopic,
    commit: _Commit,
    at: ClockReading,
) -> OffsetCommitResponseTopic:
    """Collect the topic's records; answer each partition on the assumption that they get in."""
    response = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
    # As in Kafka, an offset that is in a transaction, or expires, is stored without its topic's id.
    expires = request.retention_time_ms != _DEFAULT_RETENTION
    topic_id = ZERO_UUID if commit.is_pending or expires else topic.topic_id
    metadata_max = shard.env.settings().offset_metadata_max_bytes
    for partition in topic.partitions:
        key = OffsetKey(request.group_id, topic.name, partition.partition_index)
        error = ErrorCode.NONE
        if utf16_length(partition.committed_metadata or "") > metadata_max:
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        elif not _has_memory(shard, key, commit):
            error = ErrorCode.POLICY_VIOLATION
        else:
            record_offset = commit.base_offset + len(commit.records)
            committed = _committed(request, topic_id, partition, at, record_offset)
            commit.records.append(offset_record(key, committed))
            commit.offsets.append((key, committed))
            commit.keys[key] = None
            commit.size_bytes += committed.size_bytes
        response.partitions.append(
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=error
            )
        )
    return response


def utf16_length(text: str) -> int:
    """Return the length that Java counts: characters beyond the basic plane count twice.

    Kafka compares this length, not that of the encoded bytes, with `offset.metadata.max.bytes`.
    """
    return len(text) + sum(character > "\uffff" for character in text)


def _has_memory(shard: GroupShard, key: OffsetKey, commit: _Commit) -> bool:
    """Whether our bound on memory allows the offset; one that replaces another is always allowed.

    Not repeatedly: until the ISR has it, the replaced offset is kept as well.
    """
    is_replacement = not commit.is_pending and shard.offsets.get(key) is not None
    if is_replacement and key not in commit.keys and not shard.uncommitted.is_changing(key):
        return True
    return shard.env.memory.has_room_for(commit.size_bytes + OFFSET_BYTES)


def _committed(
    request: OffsetCommitRequest,
    topic_id: Uuid,
    partition: OffsetCommitRequestPartition,
    at: ClockReading,
    record_offset: int,
) -> CommittedOffset:
    expires = None
    if request.retention_time_ms != _DEFAULT_RETENTION:
        expires = min(at.wall_ms + request.retention_time_ms, _NEVER_MS)
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=at.wall_ms,
        expire_timestamp_ms=expires,
        topic_id=topic_id,
        record_offset=record_offset,
    )


def _failed_topic(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=error
            )
            for partition in topic.partitions
        ],
    )
