"""OffsetFetch: the committed offsets of a group that the ISR has.

Offsets of transactions that are still open are unstable (KIP-447).
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.broker.groups.offsets.table import OffsetKey
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

__all__ = ["fetch_all_offsets", "fetch_offsets"]

_NO_OFFSET: Final = -1


def fetch_offsets(
    shard: GroupShard,
    group_id: str,
    topics: Sequence[OffsetFetchRequestTopics],
    *,
    require_stable: bool,
) -> list[OffsetFetchResponseTopics]:
    """Return the committed offset of each requested partition, -1 for one without."""
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                _fetched(
                    shard,
                    OffsetKey(group_id, topic.name, partition),
                    topic.topic_id,
                    require_stable,
                )
                for partition in topic.partition_indexes
            ],
        )
        for topic in topics
    ]


def fetch_all_offsets(
    shard: GroupShard, group_id: str, *, require_stable: bool
) -> list[OffsetFetchResponseTopics]:
    """Return every offset that the group committed; nothing for a group that does not exist."""
    return [
        OffsetFetchResponseTopics(
            name=topic,
            partitions=[
                _fetched(shard, OffsetKey(group_id, topic, partition), ZERO_UUID, require_stable)
                for partition in partitions
            ],
        )
        for topic, partitions in shard.uncommitted.of_group(group_id).items()
    ]


def _fetched(
    shard: GroupShard, key: OffsetKey, topic_id: Uuid, require_stable: bool
) -> OffsetFetchResponsePartitions:
    committed = shard.uncommitted.get(key)
    error = ErrorCode.NONE
    if require_stable and shard.uncommitted.is_unstable(key):
        error, committed = ErrorCode.UNSTABLE_OFFSET_COMMIT, None
    if committed is None or not committed.belongs_to(topic_id):
        return OffsetFetchResponsePartitions(
            partition_index=key.partition,
            committed_offset=_NO_OFFSET,
            committed_leader_epoch=-1,
            metadata="",
            error_code=error,
        )
    return OffsetFetchResponsePartitions(
        partition_index=key.partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=error,
    )
