"""Offsets that expire: too old (KIP-211), or of deleted topics.

The retention time begins when the group becomes empty. It begins at the commit if the group has
consumers of other topics, or if there never was a group. An empty group is deleted with its last
offset.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.group_types import OtherGroup
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
        tombstones = [group_tombstone(group.group_id)] if _can_end(group) else []
        expired_count += _remove(shard, group.group_id, expired, tombstones, at)
    for other in list(shard.other_groups.values()):
        if other.offsets_expire:
            expired = _expired_keys_of_other(shard, other, at)
            tombstones = other.tombstones() if other.is_empty else []
            expired_count += _remove(shard, other.group_id, expired, tombstones, at)
    return expired_count


def _remove(
    shard: GroupShard,
    group_id: str,
    expired: list[OffsetKey],
    tombstones: list[CoordinatorRecord],
    at: ClockReading,
) -> int:
    """Remove offsets, and then the group by its tombstones if no offset is left."""
    if expired and write_tombstones(shard, expired, at).error is not ErrorCode.NONE:
        return 0
    has_offsets = shard.offsets.of_group(group_id) or shard.offsets.has_open_transaction(group_id)
    if tombstones and not has_offsets and shard.log.append(tombstones, at) is ErrorCode.NONE:
        shard.remove_group(group_id, at)
    return len(expired)


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
    retention_ms = _retention_ms(shard)
    return _keys_where(
        shard,
        group,
        lambda committed: _is_expired(group, committed, at.wall_ms, retention_ms),
    )


def _expired_keys_of_other(
    shard: GroupShard, group: OtherGroup, at: ClockReading
) -> list[OffsetKey]:
    retention_ms = _retention_ms(shard)
    return _keys_where(
        shard, group, lambda committed: _is_old(committed, None, at.wall_ms, retention_ms)
    )


def _retention_ms(shard: GroupShard) -> int:
    return shard.env.settings().offsets_retention_minutes * _MS_PER_MINUTE


def _keys_where(
    shard: GroupShard,
    group: ClassicGroup | OtherGroup,
    is_expired: Callable[[CommittedOffset], bool],
) -> list[OffsetKey]:
    """Return the expired offsets of topics that no member reads, outside of transactions."""
    return [
        key
        for topic, partitions in shard.offsets.of_group(group.group_id).items()
        if not group.is_subscribed_to(topic)
        for partition, committed in partitions.items()
        if is_expired(committed)
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
    was_used = group.protocol_type is not None and group.is_in(GroupState.EMPTY)
    base_ms = group.state_timestamp_ms if was_used else None
    return _is_old(committed, base_ms, wall_ms, retention_ms)


def _is_old(
    committed: CommittedOffset, base_ms: int | None, wall_ms: int, retention_ms: int
) -> bool:
    """Whether the retention time is over, which begins at `base_ms`, else at the commit."""
    if committed.expire_timestamp_ms is not None:
        return wall_ms >= committed.expire_timestamp_ms
    return wall_ms - (committed.commit_timestamp_ms if base_ms is None else base_ms) >= retention_ms


def _can_end(group: ClassicGroup) -> bool:
    """Whether nothing but offsets is left of the group: no member, no id given out."""
    return group.is_in(GroupState.EMPTY) and not group.pending_members
