"""AlterShareGroupOffsets: where the share partitions of an empty group begin.

The partitions are noted as initialising, and stay initialised; the share coordinators set their
start offsets; then they are noted as initialised. A group that does not exist is made by its first
record.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.checks import check_empty, find_group
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.initialization import finish_beginning, initializing
from kraft_wire.broker.groups.share.records import state_partitions_record
from kraft_wire.broker.groups.share.state_partitions import NamedPartitions, PartitionsByTopic
from kraft_wire.broker.groups.share.write import when_committed, write
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
)
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Offset
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["AlteredTopic", "StartOffsets", "alter_offsets"]


class StartOffsets(NamedTuple):
    """What is asked for a topic: the start offset of each partition."""

    topic: str
    offsets: Mapping[int, Offset]


class AlteredTopic(NamedTuple):
    """What became of a topic that exists, by partition."""

    topic: str
    results: dict[int, PersisterResult]


Altered = Callable[[Sequence[AlteredTopic] | Refusal], None]

_DONE = PersisterResult(ErrorCode.NONE)
_UNKNOWN = PersisterResult(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message
)


def alter_offsets(
    shard: GroupShard,
    group_id: str,
    asked: Sequence[StartOffsets],
    at: ClockReading,
    then: Altered,
) -> None:
    """Set start offsets, and tell what became of each partition.

    Errors of all, first match wins: GROUP_ID_NOT_FOUND (the group is of another kind),
    NON_EMPTY_GROUP, those of the two appends. Of one partition: UNKNOWN_TOPIC_OR_PARTITION, those
    of its share coordinator.
    """
    group = find_group(shard, group_id, "")
    is_new = group_id not in shard.other_groups and group_id not in shard.groups
    if isinstance(group, Refusal):
        if not is_new:
            then(group)
            return
        group = ShareGroup(group_id, shard.env.memory)
    refused = check_empty(group) or _note(shard, group, asked, at, is_new=is_new)
    if refused is not None:
        if is_new:
            group.release()
        then(refused)
        return
    _begin(shard, group, asked, at, then)


def _note(
    shard: GroupShard,
    group: ShareGroup,
    asked: Sequence[StartOffsets],
    at: ClockReading,
    *,
    is_new: bool,
) -> Refusal | None:
    """Note the partitions that exist as initialising."""
    image = shard.env.image()
    topics = _topics(asked, image)
    if not len(topics):
        if is_new:
            group.release()
        return None
    noted = initializing(group.state_partitions, topics, image)
    appended = write(shard, group, [state_partitions_record(group.group_id, noted)], at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    if is_new:
        shard.put_other_group(group, at)
    return None


def _topics(asked: Sequence[StartOffsets], image: MetadataImage) -> PartitionsByTopic:
    topics: PartitionsByTopic = JavaHashMap()
    for name, offsets in asked:
        topic = image.topic(name)
        if topic is not None:
            known = [number for number in offsets if number < len(topic.partitions)]
            topics[topic.topic_id] = NamedPartitions(name, java_hash_set(known))
    return topics


def _begin(
    shard: GroupShard,
    group: ShareGroup,
    asked: Sequence[StartOffsets],
    at: ClockReading,
    then: Altered,
) -> None:
    """Have the share coordinators set the start offsets, once the ISR has the record."""
    group_id, image = group.group_id, shard.env.image()
    keys: dict[tuple[str, int], SharePartitionKey] = {}
    states: dict[SharePartitionKey, InitialShareState] = {}
    for name, offsets in asked:
        topic = image.topic(name)
        for number, offset in offsets.items():
            if topic is not None and number < len(topic.partitions):
                key = SharePartitionKey(group_id, topic.topic_id, number)
                keys[name, number] = key
                states[key] = InitialShareState(group.epoch, offset)

    def begun(results: Mapping[SharePartitionKey, PersisterResult], at: ClockReading) -> None:
        if results and all(each.error is ErrorCode.NONE for each in results.values()):
            error = finish_beginning(shard, group_id, results, at)
            if error is not ErrorCode.NONE:
                then(Refusal(error))
                return
        of_all = {name: results.get(key, _DONE) for name, key in keys.items()}
        then(
            [
                AlteredTopic(
                    name, {number: of_all.get((name, number), _UNKNOWN) for number in offsets}
                )
                for name, offsets in asked
            ]
        )

    if not states:
        begun({}, at)
        return

    def committed(error: ErrorCode, at: ClockReading) -> None:
        if error is ErrorCode.NONE:
            shard.env.share_persister().initialize(states, at, begun)
        else:
            then(Refusal(error))

    when_committed(shard, group, at, committed)
