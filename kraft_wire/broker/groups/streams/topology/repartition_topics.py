"""Partition counts of repartition topics: those the client fixed, and those their inputs imply."""

from heapq import heappop, heappush

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
    walked = list(subtopologies.values())
    _count_sinks(walked, counts, count_of)
    if any(sink not in counts for each in walked for sink in each.repartition_sink_topics):
        raise invalid_topology(_LOOP)
    if any(topic.name not in counts for each in walked for topic in each.repartition_source_topics):
        raise invalid_topology(_NO_SINK)
    return counts


def _count_sinks(walked: list[Subtopology], counts: dict[str, int], count_of: CountOf) -> None:
    """Count the topics that are written, in the order of a walk that is repeated until the end.

    A subtopology has its turn as soon as an input is known: in the same round, if the walk has not
    passed it yet. Each has one turn, so a long chain against the order of the walk costs no more.
    """
    readers: dict[str, list[int]] = {}
    turns: list[tuple[int, int]] = []
    for index, subtopology in enumerate(walked):
        if _largest_input(subtopology, counts, count_of) is not None:
            turns.append((0, index))
            continue
        for topic in subtopology.repartition_source_topics:
            readers.setdefault(topic.name, []).append(index)
    while turns:
        round_number, index = heappop(turns)
        largest = _largest_input(walked[index], counts, count_of)
        assert largest is not None, "a turn begins with a known input"
        for sink in walked[index].repartition_sink_topics:
            if sink not in counts:
                counts[sink] = largest
                for reader in readers.pop(sink, ()):
                    heappush(turns, (round_number + (reader < index), reader))


def _largest_input(
    subtopology: Subtopology, counts: dict[str, int], count_of: CountOf
) -> int | None:
    known = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
    known += map(count_of, subtopology.source_topics)
    return max((count for count in known if count is not None), default=None)
