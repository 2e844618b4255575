"""What deleted topics mean for share groups: their share partitions are noted no more.

Members lose them with their next heartbeats. The share coordinators see the deletion themselves,
and remove the state.
"""

from collections.abc import Collection

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.records import state_partitions_record
from kraft_wire.broker.groups.share.state_partitions import (
    PartitionsByTopic,
    StatePartitions,
    deleting_topics,
)
from kraft_wire.broker.groups.share.write import apply
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["forget_topics"]


def forget_topics(shard: GroupShard, topic_ids: Collection[Uuid], at: ClockReading) -> None:
    """Take deleted topics out of the share partitions of every group, in one batch."""
    image = shard.env.image()
    changed: dict[ShareGroup, CoordinatorRecord] = {}
    for group in shard.other_groups.values():
        known = group.state_partitions if isinstance(group, ShareGroup) else None
        if known is not None and any(_has(known, topic_id) for topic_id in topic_ids):
            assert isinstance(group, ShareGroup), group
            left = _without(known, topic_ids, image)
            changed[group] = state_partitions_record(group.group_id, left)
    if not changed:
        return
    appended = shard.log.append_for_later(list(changed.values()), at)
    if appended.error is ErrorCode.NONE:
        for group, record in changed.items():
            apply(group, [record], appended, at)


def _has(known: StatePartitions, topic_id: Uuid) -> bool:
    return any(
        topic_id in topics for topics in (known.initializing, known.initialized, known.deleting)
    )


def _without(
    known: StatePartitions, topic_ids: Collection[Uuid], image: MetadataImage
) -> StatePartitions:
    deleting = [topic_id for topic_id in known.deleting if topic_id not in topic_ids]
    return StatePartitions(
        _left(known.initializing, topic_ids),
        _left(known.initialized, topic_ids),
        deleting_topics(deleting, image),
    )


def _left(topics: PartitionsByTopic, topic_ids: Collection[Uuid]) -> PartitionsByTopic:
    left = topics.copy()
    for topic_id in topic_ids:
        left.pop(topic_id)
    return left
