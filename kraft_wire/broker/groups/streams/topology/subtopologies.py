"""The subtopologies of a topology in the order in which Kafka's coordinator walks them.

The order counts: it decides partition counts of repartition topics, and which failure is first.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TypeAlias

from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.streams.topology.failures import server_error
from kraft_wire.wire.generated.streams_group_topology_value import (
    StreamsGroupTopologyValue,
    Subtopology,
)

__all__ = ["CountOf", "Subtopologies", "input_topics", "required_topics", "subtopologies_by_id"]

Subtopologies: TypeAlias = JavaHashMap[str, Subtopology]
"""Id to subtopology."""

CountOf: TypeAlias = Callable[[str], int | None]
"""Returns the partition count of a topic that exists or is decided, else None."""


def subtopologies_by_id(topology: StreamsGroupTopologyValue) -> Subtopologies:
    """Return subtopologies by id. TopologyRefused: a negative epoch, or an id that comes twice."""
    if topology.epoch < 0:
        raise server_error()
    found: Subtopologies = JavaHashMap()
    for subtopology in topology.subtopologies:
        if subtopology.subtopology_id in found:
            raise server_error()
        found[subtopology.subtopology_id] = subtopology
    return found


def input_topics(subtopology: Subtopology) -> Iterable[str]:
    """Return source topics, then repartition topics that are read."""
    return chain(
        subtopology.source_topics, (topic.name for topic in subtopology.repartition_source_topics)
    )


def required_topics(subtopologies: Subtopologies) -> Iterable[str]:
    """Return the topics whose metadata the group follows; some come several times."""
    return chain.from_iterable(
        chain(input_topics(each), (topic.name for topic in each.state_changelog_topics))
        for each in subtopologies.values()
    )
