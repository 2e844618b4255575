"""Partition counts of repartition topics: those the client fixed, and those their inputs imply."""

from kraft_wire.broker.groups.streams.topology.failures import invalid_topology
from kraft_wire.broker.groups.streams.topology.subtopologies import CountOf, Subtopologies
from kraft_wire.wire.generated.streams_group_topology_value import Subtopology

__all__ = ["repartition_counts"]

_LOOP = (
    "Failed to compute number of partitions for all repartition topics. "
    "There may be loops in the topology that cannot be resolved."
)
_NO_SINK = (
    "Failed to compute number of partitions for all repartition topics, because "
    "a repartition source topic is never used as a sink topic."
)


def repartition_counts(subtopologies: Subtopologies, count_of: CountOf) -> dict[str, int]:
    """Return the partitions of each repartition topic, if all source topics exist.

    A topic without a fixed count gets the largest count among the inputs of the first subtopology
    that writes it, as far as they are known then.
    TopologyRefused: no input of a written topic is ever known; a topic that is read has no count.
    """
    counts = {
        topic.name: topic.partitions
        for subtopology in subtopologies.values()
        for topic in subtopology.repartition_source_topics
        if topic.partitions != 0
    }
    waiting = list(subtopologies.values())
    while waiting:
        before = len(counts)
        waiting = [each for each in waiting if not _count_sinks(each, counts, count_of)]
        if waiting and len(counts) == before:
            raise invalid_topology(_LOOP)
    if any(
        topic.name not in counts
        for subtopology in subtopologies.values()
        for topic in subtopology.repartition_source_topics
    ):
        raise invalid_topology(_NO_SINK)
    return counts


def _count_sinks(subtopology: Subtopology, counts: dict[str, int], count_of: CountOf) -> bool:
    """Count the topics that a subtopology writes; return False if no input has a count yet."""
    for sink in subtopology.repartition_sink_topics:
        if sink not in counts:
            count = _largest_input(subtopology, counts, count_of)
            if count is None:
                return False
            counts[sink] = count
    return True


def _largest_input(
    subtopology: Subtopology, counts: dict[str, int], count_of: CountOf
) -> int | None:
    known = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
    known += map(count_of, subtopology.source_topics)
    return max((count for count in known if count is not None), default=None)
