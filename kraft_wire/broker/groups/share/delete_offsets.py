"""DeleteShareGroupOffsets and DeleteGroups: the state of a group's share partitions is removed.

The topics are noted as being deleted; the share coordinators remove the state; then the topics are
noted no more, or the whole group is deleted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.checks import check_empty, find_group
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.records import state_partitions_record
from kraft_wire.broker.groups.share.state_partitions import (
    NamedPartitions,
    PartitionsByTopic,
    StatePartitions,
    deleting_topics,
    merged,
    partition_set,
)
from kraft_wire.broker.groups.share.write import when_committed, write
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey
from kraft_wire.metadata.image import MetadataImage, TopicImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["DeletedTopic", "delete_offsets", "delete_state_of_group", "finish_deletion"]

_NOTHING = "There is no offset information to delete."


class DeletedTopic(NamedTuple):
    """What became of a topic."""

    topic: str
    topic_id: Uuid | None
    """None if there was nothing to delete."""
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


Deleted = Callable[[Sequence[DeletedTopic] | Refusal], None]


def delete_offsets(
    shard: GroupShard, group_id: str, names: Sequence[str], at: ClockReading, then: Deleted
) -> None:
    """Remove the state of topics of an empty group, and tell what became of each.

    Errors of all, first match wins: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, those of the append. Of
    one topic: UNKNOWN_TOPIC_OR_PARTITION, those of its share coordinators.
    """
    group = find_group(shard, group_id, f"Group {group_id} not found.")
    refused = group if isinstance(group, Refusal) else check_empty(group)
    if refused is not None:
        then(refused)
        return
    assert isinstance(group, ShareGroup), group
    known, image = group.state_partitions, shard.env.image()
    if known is None:
        then([])
        return
    state, refusals = _to_delete(known, names, image)
    initialized: PartitionsByTopic = JavaHashMap()
    for topic_id, each in known.initialized.items():
        initialized[topic_id] = each
    for topic_id in state:
        initialized.pop(topic_id)
    deleting = dict.fromkeys((*known.deleting, *state))
    noted = StatePartitions(known.initializing, initialized, deleting_topics(deleting, image))
    appended = write(shard, group, [state_partitions_record(group_id, noted)], at)
    if appended.error is not ErrorCode.NONE:
        then(Refusal(appended.error))
        return

    def deleted(results: Mapping[SharePartitionKey, PersisterResult], at: ClockReading) -> None:
        outcomes = [_outcome(topic_id, each.name, results) for topic_id, each in state.items()]
        gone = [each for each in outcomes if each.error is ErrorCode.NONE]
        failed = [each for each in outcomes if each.error is not ErrorCode.NONE]
        error = ErrorCode.NONE
        if gone:
            error = finish_deletion(shard, group_id, [each.topic_id for each in gone], at)
        then([*gone, *refusals, *failed] if error is ErrorCode.NONE else Refusal(error))

    _delete(shard, group, state, at, deleted)


def delete_state_of_group(
    shard: GroupShard,
    group: ShareGroup,
    at: ClockReading,
    then: Callable[[ErrorCode, ClockReading], None],
) -> None:
    """Remove the state of all share partitions of an empty group; then the group may go.

    Also of topics whose deletion was not finished. An error is that of an append, or of a share
    coordinator.
    """
    known, image = group.state_partitions, shard.env.image()
    if known is None:
        then(ErrorCode.NONE, at)
        return
    state = merged(known.initialized, known.initializing)
    unfinished = _of_topics(filter(None, map(image.topic_by_id, known.deleting)))
    if len(unfinished):
        state = merged(state, unfinished)
    deleting: JavaHashMap[Uuid, str] = JavaHashMap()
    for topic_id, each in state.items():
        deleting[topic_id] = each.name
    noted = StatePartitions(deleting=deleting)
    appended = write(shard, group, [state_partitions_record(group.group_id, noted)], at)
    if appended.error is not ErrorCode.NONE:
        then(appended.error, at)
        return

    def deleted(results: Mapping[SharePartitionKey, PersisterResult], at: ClockReading) -> None:
        errors = [each.error for each in results.values() if each.error is not ErrorCode.NONE]
        then(errors[0] if errors else ErrorCode.NONE, at)

    _delete(shard, group, state, at, deleted)


def _delete(
    shard: GroupShard,
    group: ShareGroup,
    state: PartitionsByTopic,
    at: ClockReading,
    deleted: Callable[[Mapping[SharePartitionKey, PersisterResult], ClockReading], None],
) -> None:
    """Have the share coordinators remove state, once the ISR has the record of it."""
    keys = [
        SharePartitionKey(group.group_id, topic_id, number)
        for topic_id, each in state.items()
        for number in each.partitions
    ]

    def committed(error: ErrorCode, at: ClockReading) -> None:
        if error is not ErrorCode.NONE:
            deleted(dict.fromkeys(keys, PersisterResult(error)), at)
        elif keys:
            shard.env.share_persister().delete(keys, at, deleted)
        else:
            deleted({}, at)

    when_committed(shard, group, at, committed)


def _to_delete(
    known: StatePartitions, names: Sequence[str], image: MetadataImage
) -> tuple[PartitionsByTopic, list[DeletedTopic]]:
    """Return the partitions whose state is there, and the topics without any."""
    state: PartitionsByTopic = JavaHashMap()
    refused = []
    for name in names:
        topic = image.topic(name)
        found = None if topic is None else known.initialized.get(topic.topic_id)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(DeletedTopic(name, None, error, error.message))
        elif found is not None:
            state[topic.topic_id] = NamedPartitions(name, found.partitions)
        elif topic.topic_id in known.deleting:
            state[topic.topic_id] = NamedPartitions(
                name, partition_set(range(len(topic.partitions)))
            )
        else:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(DeletedTopic(name, None, error, _NOTHING))
    return state, refused


def _of_topics(topics: Iterable[TopicImage]) -> PartitionsByTopic:
    found: PartitionsByTopic = JavaHashMap()
    for topic in topics:
        found[topic.topic_id] = _all_of(topic)
    return found


def _all_of(topic: TopicImage) -> NamedPartitions:
    return NamedPartitions(topic.name, partition_set(range(len(topic.partitions))))


def _outcome(
    topic_id: Uuid, name: str, results: Mapping[SharePartitionKey, PersisterResult]
) -> DeletedTopic:
    for key, result in results.items():
        if key.topic_id == topic_id and result.error is not ErrorCode.NONE:
            # As in Kafka not in the words of the share coordinator.
            return DeletedTopic(name, topic_id, result.error, result.error.message)
    return DeletedTopic(name, topic_id)


def finish_deletion(
    shard: GroupShard, group_id: str, topic_ids: Sequence[Uuid | None], at: ClockReading
) -> ErrorCode:
    """Note that topics are deleted. Errors: NOT_COORDINATOR, those of the append."""
    if shard.is_released:
        return ErrorCode.NOT_COORDINATOR
    group = shard.other_groups.get(group_id)
    known = group.state_partitions if isinstance(group, ShareGroup) else None
    if known is None:
        return ErrorCode.NONE
    assert isinstance(group, ShareGroup), group
    left = [topic_id for topic_id in known.deleting if topic_id not in topic_ids]
    noted = StatePartitions(
        known.initializing, known.initialized, deleting_topics(left, shard.env.image())
    )
    return write(shard, group, [state_partitions_record(group_id, noted)], at).error
