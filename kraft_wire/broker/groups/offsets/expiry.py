"""Offsets that expire: too old (KIP-211), or of deleted topics.

The retention time begins when the group becomes empty. It begins at the commit if the group has
consumers of other topics, or if there never was a group. An empty group is deleted with its last
offset.
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.offsets.delete import write_tombstones
from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey
from kraft_wire.broker.groups.records import group_tombstone
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["delete_offsets_of_topics", "expire_offsets"]

_MS_PER_MINUTE: Final = 60_000


def expire_offsets(shard: GroupShard, at: ClockReading) -> int:
    """Remove expired offsets, and empty groups without offsets; return the number of offsets."""
    expired_count = 0
    for group in list(shard.groups.values()):
        expired = _expired_keys(shard, group, at)
        if expired and write_tombstones(shard, expired, at).error is not ErrorCode.NONE:
            continue
        expired_count += len(expired)
        if _is_finished(shard, group) and (
            shard.log.append([group_tombstone(group.group_id)], at) is ErrorCode.NONE
        ):
            shard.remove_group(group.group_id, at)
    return expired_count


def delete_offsets_of_topics(
    shard: GroupShard, topics: Mapping[Uuid, str], at: ClockReading
) -> int:
    """Remove the offsets of topics that were deleted; return how many."""
    deleted_count = 0
    for topic_id, topic in topics.items():
        keys = shard.offsets.keys_of_topic(topic, topic_id)
        if keys and write_tombstones(shard, keys, at).error is ErrorCode.NONE:
            deleted_count += len(keys)
    return deleted_count


def _expired_keys(shard: GroupShard, group: ClassicGroup, at: ClockReading) -> list[OffsetKey]:
    if not _can_expire(group):
        return []
    retention_ms = shard.env.settings().offsets_retention_minutes * _MS_PER_MINUTE
    return [
        key
        for topic, partitions in shard.offsets.of_group(group.group_id).items()
        if not group.is_subscribed_to(topic)
        for partition, committed in partitions.items()
        if _is_expired(group, committed, at.wall_ms, retention_ms)
        and not shard.offsets.is_unstable(key := OffsetKey(group.group_id, topic, partition))
    ]


def _can_expire(group: ClassicGroup) -> bool:
    """Whether offsets of the group may expire: not while its members may still use them."""
    if group.protocol_type is None or group.is_in(GroupState.EMPTY):
        return True
    return (
        group.uses_consumer_protocol
        and group.subscribed_topics is not None
        and group.is_in(GroupState.STABLE)
    )


def _is_expired(
    group: ClassicGroup, committed: CommittedOffset, wall_ms: int, retention_ms: int
) -> bool:
    if committed.expire_timestamp_ms is not None:
        return wall_ms >= committed.expire_timestamp_ms
    base_ms = committed.commit_timestamp_ms
    if group.protocol_type is not None and group.is_in(GroupState.EMPTY):
        base_ms = base_ms if group.state_timestamp_ms is None else group.state_timestamp_ms
    return wall_ms - base_ms >= retention_ms


def _is_finished(shard: GroupShard, group: ClassicGroup) -> bool:
    """Whether nothing is left of the group: no member, no id given out, no offset."""
    return (
        group.is_in(GroupState.EMPTY)
        and not group.pending_members
        and not shard.offsets.of_group(group.group_id)
        and not shard.offsets.has_open_transaction(group.group_id)
    )
