"""Partition counts of changelog topics: as many as their subtopology has tasks."""

from kraft_wire.broker.groups.streams.topology.failures import invalid_topology, server_error
from kraft_wire.broker.groups.streams.topology.subtopologies import (
    CountOf,
    Subtopologies,
    input_topics,
)
from kraft_wire.wire.generated.streams_group_topology_value import Subtopology

__all__ = ["changelog_counts", "largest_input_count"]


def changelog_counts(subtopologies: Subtopologies, count_of: CountOf) -> dict[str, int]:
    """Return the partitions of each changelog topic. TopologyRefused: nothing is read."""
    counts: dict[str, int] = {}
    for subtopology_id, subtopology in subtopologies.items():
        largest = largest_input_count(subtopology, count_of)
        if largest is None:
            raise invalid_topology(f"No source topics found for subtopology {subtopology_id}")
        counts.update((topic.name, largest) for topic in subtopology.state_changelog_topics)
    return counts


def largest_input_count(subtopology: Subtopology, count_of: CountOf) -> int | None:
    """Return the largest partition count among the topics that are read; None: there are none."""
    largest: int | None = None
    for topic in input_topics(subtopology):
        count = count_of(topic)
        if count is None:
            raise server_error()
        largest = count if largest is None else max(largest, count)
    return largest
