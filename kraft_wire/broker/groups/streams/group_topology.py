"""The topology that the members of a streams group agree on, as its record has it (KIP-1071)."""

from typing import Final

from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.broker.groups.streams.topology.subtopologies import input_topics
from kraft_wire.wire.generated.streams_group_topology_value import StreamsGroupTopologyValue

__all__ = [
    "followed_topics",
    "is_same_topology",
    "subtopologies_by_source",
    "topology_size_bytes",
]

_MEMORY_FACTOR: Final = 8
"""A topic of a dozen bytes is an object of a hundred."""


def followed_topics(topology: StreamsGroupTopologyValue) -> list[str]:
    """Return the topics whose metadata the group follows, each once."""
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        names.update(dict.fromkeys(input_topics(each)))
        names.update((changelog.name, None) for changelog in each.state_changelog_topics)
    return list(names)


def is_same_topology(one: StreamsGroupTopologyValue, other: StreamsGroupTopologyValue) -> bool:
    """Whether nothing differs; the order of subtopologies has no meaning."""
    return one.epoch == other.epoch and _encoded(one) == _encoded(other)


def subtopologies_by_source(topology: StreamsGroupTopologyValue) -> dict[str, str]:
    """Return the source and repartition source topics, each with the id of its subtopology.

    Of two subtopologies with one topic, the last one in the order of a HashMap counts.
    """
    of_ids = {each.subtopology_id: each for each in topology.subtopologies}
    ordered: JavaHashMap[str, None] = java_hash_set(of_ids)
    return {topic: each for each in ordered for topic in input_topics(of_ids[each])}


def topology_size_bytes(topology: StreamsGroupTopologyValue | None) -> int:
    """Return the memory that a topology takes, approximately."""
    return 0 if topology is None else _MEMORY_FACTOR * len(topology.encode(0))


def _encoded(topology: StreamsGroupTopologyValue) -> dict[str, bytes]:
    return {
        each.subtopology_id: bytes(
            StreamsGroupTopologyValue(epoch=0, subtopologies=[each]).encode(0)
        )
        for each in topology.subtopologies
    }
