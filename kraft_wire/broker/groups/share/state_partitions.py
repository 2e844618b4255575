"""The share partitions of a group by their state at the share coordinators: record 15.

A topic's partitions are initialising, then initialised; a topic whose state is being deleted is
kept until that is done. Every function returns new maps, in the order of Apache's, which its
records have.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.broker.groups.object_sizes import PARTITION_BYTES
from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid

__all__ = [
    "DeletingTopics",
    "NamedPartitions",
    "PartitionsByTopic",
    "StatePartitions",
    "deleting_topics",
    "merged",
    "named",
    "partition_set",
    "without",
]

_UNKNOWN = "<UNKNOWN>"


@frozen
class NamedPartitions:
    """Partitions of one topic."""

    name: str
    """The topic's name when they were noted."""
    partitions: JavaHashMap[int, None]


PartitionsByTopic: TypeAlias = JavaHashMap[Uuid, NamedPartitions]
DeletingTopics: TypeAlias = JavaHashMap[Uuid, str]
"""Topic id to name."""


@frozen
class StatePartitions:
    """What the newest record 15 of a group says."""

    initializing: PartitionsByTopic = field(default_factory=JavaHashMap)
    """The share coordinator is asked to begin their state."""
    initialized: PartitionsByTopic = field(default_factory=JavaHashMap)
    """They may be assigned."""
    deleting: DeletingTopics = field(default_factory=JavaHashMap)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, as `object_sizes` counts it."""
        topics = (*self.initializing.values(), *self.initialized.values())
        partitions = sum(len(each.partitions) for each in topics)
        return PARTITION_BYTES * (partitions + len(topics) + len(self.deleting))


def partition_set(partitions: Iterable[int]) -> JavaHashMap[int, None]:
    """Return partitions as the set that Apache makes of a list."""
    numbers = tuple(partitions)
    return java_hash_set(numbers, max(int(len(numbers) / 0.75) + 1, 16))


def merged(first: PartitionsByTopic, second: PartitionsByTopic) -> PartitionsByTopic:
    """Return the partitions of both; a topic has the second's name."""
    topic_ids = java_hash_set(first, max(int(len(first) / 0.75) + 1, 16))
    for topic_id in second:
        topic_ids[topic_id] = None
    both: PartitionsByTopic = JavaHashMap()
    for topic_id in topic_ids:
        before, more = first.get(topic_id), second.get(topic_id)
        partitions = partition_set(() if before is None else before.partitions)
        for partition in () if more is None else more.partitions:
            partitions[partition] = None
        newest = more or before
        assert newest is not None, topic_id
        both[topic_id] = NamedPartitions(newest.name, partitions)
    return both


def without(topics: PartitionsByTopic, removed: Mapping[Uuid, Iterable[int]]) -> PartitionsByTopic:
    """Return topics without some partitions; one that loses its last partition goes."""
    left: PartitionsByTopic = JavaHashMap()
    for topic_id, each in topics.items():
        partitions = partition_set(each.partitions)
        for partition in removed.get(topic_id, ()):
            partitions.pop(partition)
        if len(partitions) or topic_id not in removed:
            left[topic_id] = NamedPartitions(each.name, partitions)
    return left


def named(topics: Mapping[Uuid, Iterable[int]], image: MetadataImage) -> PartitionsByTopic:
    """Return partitions with the names that their topics have now."""
    found: PartitionsByTopic = JavaHashMap()
    for topic_id, partitions in topics.items():
        found[topic_id] = NamedPartitions(_name(topic_id, image), java_hash_set(partitions))
    return found


def deleting_topics(topic_ids: Iterable[Uuid], image: MetadataImage) -> DeletingTopics:
    """Return topics whose state is being deleted, with the names that they have now."""
    found: DeletingTopics = JavaHashMap()
    for topic_id in topic_ids:
        found[topic_id] = _name(topic_id, image)
    return found


def _name(topic_id: Uuid, image: MetadataImage) -> str:
    topic = image.topic_by_id(topic_id)
    return _UNKNOWN if topic is None else topic.name
