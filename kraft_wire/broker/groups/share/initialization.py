"""How the state of a group's share partitions begins: record 15, the share coordinators, record 15.

A heartbeat notes what is to begin in its own batch. Once the ISR has that, the share coordinators
are asked, and their answer is written as an operation of its own: the partitions are initialised,
or, after any error, noted no more, so that a later heartbeat begins again.
"""

from collections.abc import Iterable, Mapping

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.records import state_partitions_record
from kraft_wire.broker.groups.share.state_partitions import (
    NamedPartitions,
    PartitionsByTopic,
    StatePartitions,
    deleting_topics,
    merged,
    named,
    without,
)
from kraft_wire.broker.groups.share.write import when_committed, write
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
)
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Offset, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["begin_state", "initialized", "initializing", "partitions_to_begin", "uninitialized"]

_NOT_KNOWN = Offset(-1)


def partitions_to_begin(
    group: ShareGroup, names: Iterable[str], image: MetadataImage, retry_ms: int, now_ms: int
) -> PartitionsByTopic:
    """Return the subscribed partitions without state, and without a beginning that is young."""
    known: PartitionsByTopic = JavaHashMap()
    if group.state_partitions is not None:
        is_young = now_ms - group.noted_at_ms < retry_ms
        begun = group.state_partitions.initializing if is_young else JavaHashMap()
        known = merged(group.state_partitions.initialized, begun)
    missing: PartitionsByTopic = JavaHashMap()
    for topic in filter(None, map(image.topic, names)):
        found = known.get(topic.topic_id)
        present = JavaHashMap[int, None]() if found is None else found.partitions
        if len(present) < len(topic.partitions):
            partitions: JavaHashMap[int, None] = JavaHashMap()
            for number in range(len(topic.partitions)):
                partitions[number] = None
            for number in present:
                partitions.pop(number)
            missing.compute_if_absent(topic.topic_id, NamedPartitions(topic.name, partitions))
    return missing


def initializing(
    known: StatePartitions | None, topics: PartitionsByTopic, image: MetadataImage
) -> StatePartitions:
    """Return what is known with topics that begin; they are not being deleted any more."""
    if known is None:
        return StatePartitions(initializing=topics)
    begun = merged(known.initializing, topics)
    left = [topic_id for topic_id in known.deleting if topic_id not in begun]
    return StatePartitions(begun, known.initialized, deleting_topics(left, image))


def initialized(
    known: StatePartitions | None, topics: Mapping[Uuid, Iterable[int]], image: MetadataImage
) -> StatePartitions:
    """Return what is known with topics whose state has begun."""
    begun = named(topics, image)
    if known is None:
        return StatePartitions(initialized=begun)
    return StatePartitions(
        without(known.initializing, topics),
        merged(known.initialized, begun),
        deleting_topics(known.deleting, image),
    )


def uninitialized(
    known: StatePartitions, topics: Mapping[Uuid, Iterable[int]], image: MetadataImage
) -> StatePartitions:
    """Return what is known without the beginning of topics, which failed."""
    deleting = deleting_topics(known.deleting, image)
    return StatePartitions(without(known.initializing, topics), known.initialized, deleting)


def begin_state(
    shard: GroupShard,
    group: ShareGroup,
    topics: PartitionsByTopic,
    at: ClockReading,
) -> None:
    """Ask the share coordinators to begin, once the ISR has the record of it."""
    group_id = group.group_id
    state = InitialShareState(group.epoch, _NOT_KNOWN)
    partitions = {
        SharePartitionKey(group_id, topic_id, number): state
        for topic_id, topic in topics.items()
        for number in topic.partitions
    }

    def begun(results: Mapping[SharePartitionKey, PersisterResult], at: ClockReading) -> None:
        finish_beginning(shard, group_id, results, at)

    def committed(error: ErrorCode, at: ClockReading) -> None:
        if error is ErrorCode.NONE and not shard.is_released:
            shard.env.share_persister().initialize(partitions, at, begun)

    when_committed(shard, group, at, committed)


def finish_beginning(
    shard: GroupShard,
    group_id: str,
    results: Mapping[SharePartitionKey, PersisterResult],
    at: ClockReading,
) -> ErrorCode:
    """Note that partitions are initialised, or after an error that they do not begin any more.

    Errors: NOT_COORDINATOR (this broker does not lead the group's partition any more), those of
    the append.
    """
    group = shard.other_groups.get(group_id)
    if shard.is_released:
        return ErrorCode.NOT_COORDINATOR
    if not isinstance(group, ShareGroup):
        return ErrorCode.NONE
    topics: dict[Uuid, list[int]] = {}
    for key in results:
        topics.setdefault(key.topic_id, []).append(key.partition)
    error = ErrorCode.NONE
    if all(each.error is ErrorCode.NONE for each in results.values()):
        begun = initialized(group.state_partitions, topics, shard.env.image())
        error = _note(shard, group, begun, at).error
        if error is ErrorCode.NONE:
            return error
    known = group.state_partitions
    if known is not None and len(known.initializing):
        _note(shard, group, uninitialized(known, topics, shard.env.image()), at)
    return error


def _note(
    shard: GroupShard, group: ShareGroup, topics: StatePartitions, at: ClockReading
) -> Appended:
    return write(shard, group, [state_partitions_record(group.group_id, topics)], at)
