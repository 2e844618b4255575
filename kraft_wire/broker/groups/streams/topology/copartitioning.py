"""Topics that are joined must have equal partition counts: repartition topics are adapted."""

from collections.abc import Collection, Iterable

from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set, java_order
from kraft_wire.broker.groups.streams.topology.failures import (
    GroupStatus,
    TopicsUnfit,
    server_error,
)
from kraft_wire.broker.groups.streams.topology.subtopologies import CountOf, Subtopologies

__all__ = ["copartition_groups", "copartitioned_counts"]


def copartition_groups(subtopologies: Subtopologies) -> list[JavaHashMap[str, None]]:
    """Return the topics of each copartition group. TopologyRefused: an index is out of range."""
    found: list[JavaHashMap[str, None]] = []
    for subtopology in subtopologies.values():
        sources = subtopology.source_topics
        repartitioned = [topic.name for topic in subtopology.repartition_source_topics]
        for group in subtopology.copartition_groups:
            names = _at(sources, group.source_topics)
            found.append(java_hash_set(names + _at(repartitioned, group.repartition_source_topics)))
    return found


def _at(names: list[str], indices: list[int]) -> list[str]:
    if any(not 0 <= index < len(names) for index in indices):
        raise server_error()
    return [names[index] for index in indices]


def copartitioned_counts(
    group: JavaHashMap[str, None],
    fixed: Collection[str],
    fixed_counts: Collection[int],
    flexible: Collection[str],
    count_of: CountOf,
) -> dict[str, int]:
    """Return the partitions that each repartition topic of a group must have.

    `fixed` and `flexible` are the repartition topics of the whole topology whose counts the client
    chose or left open; `fixed_counts` are the different counts that the fixed ones have.
    External topics decide, if the group has any; else fixed topics; else the largest count.
    TopicsUnfit: topics of the kind that decides differ, or a fixed topic differs from what is
    decided.
    """
    repartition: JavaHashMap[str, int] = JavaHashMap()
    external: JavaHashMap[str, int] = JavaHashMap()
    for name in group:
        counts = repartition if name in fixed or name in flexible else external
        counts[name] = _known(count_of, name)
    if not len(group):
        return {}
    if len(external):
        decided = _same(external.values(), external)
    elif fixed_counts:
        # All fixed topics of the topology are compared, whether they are in this group or not.
        decided = _same(fixed_counts, repartition)
    else:
        decided = max(repartition.values())
    for name, count in repartition.items():
        if name in fixed and count != decided:
            raise _unfit(
                f"Number of partitions [{count}] of repartition topic [{name}] "
                f"doesn't match number of partitions [{decided}] of the source topic."
            )
    return dict.fromkeys(repartition, decided)


def _same(counts: Iterable[int], listed: JavaHashMap[str, int]) -> int:
    different = set(counts)
    if len(different) > 1:
        raise _unfit(
            f"Following topics do not have the same number of partitions: [{_text(listed)}]"
        )
    return different.pop()


def _text(counts: JavaHashMap[str, int]) -> str:
    names = sorted(counts, key=java_order)
    return "{" + ", ".join(f"{name}={counts[name]}" for name in names) + "}"


def _known(count_of: CountOf, name: str) -> int:
    count = count_of(name)
    if count is None:
        raise server_error()
    return count


def _unfit(message: str) -> TopicsUnfit:
    return TopicsUnfit(GroupStatus.INCORRECTLY_PARTITIONED_TOPICS, message)
