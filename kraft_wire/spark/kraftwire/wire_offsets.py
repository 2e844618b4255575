"""From options to offsets: which partitions there are, where a query begins and ends, its tasks.

One task a partition, as Spark's own connector has it; `minPartitions` and `maxRecordsPerPartition`
split the larger ones by the connector's own arithmetic, so that the tasks are the same.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from kraft_wire.client import BrokerConnectionError
from kraft_wire.client.cluster import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ClusterClient,
    ClusterRefused,
)
from kraft_wire.model import TopicPartition
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftwire.offsets import EARLIEST, LATEST
from kraft_wire.spark.kraftwire.wire_options import Bound, WireOptions

__all__ = [
    "PartitionRange",
    "asking",
    "bounded",
    "prorated",
    "split_ranges",
    "subscribed",
]


_TASKS_MAX: Final = 1_000_000
"""Of one query or micro-batch: more fit neither into a driver nor into a day."""


class PartitionRange(NamedTuple):
    """Offsets [start, end) of one partition."""

    key: TopicPartition
    start: int
    end: int


@contextmanager
def asking() -> Iterator[None]:
    """Raise a cluster's refusal as a PipelineError."""
    try:
        yield
    except (ClusterRefused, BrokerConnectionError) as error:
        raise PipelineError(str(error)) from None


def subscribed(cluster: ClusterClient, options: WireOptions) -> list[TopicPartition]:
    """Return the partitions that the options choose, in order."""
    if options.assign is not None:
        counts = cluster.partitions_of(sorted({key.topic for key in options.assign}))
        for key in sorted(options.assign):
            if key.partition >= counts[key.topic]:
                raise ClusterRefused(
                    f"option assign: {key} does not exist, {key.topic} has"
                    f" {counts[key.topic]} partitions"
                )
        return sorted(options.assign)
    if options.topics is not None:
        topics = sorted(set(options.topics))
    else:
        pattern = re.compile(options.topics_pattern or "")
        topics = [name for name in cluster.topic_names() if pattern.fullmatch(name)]
    counts = cluster.partitions_of(topics) if topics else {}
    return [TopicPartition(name, n) for name in topics for n in range(counts[name])]


def bounded(
    cluster: ClusterClient,
    options: WireOptions,
    bound: Bound,
    keys: Sequence[TopicPartition],
) -> dict[TopicPartition, int]:
    """Return the offset of a bound in each partition."""
    committed = options.fetch.read_committed
    if bound.word is not None:
        at = EARLIEST_TIMESTAMP if bound.word == "earliest" else LATEST_TIMESTAMP
        return cluster.offsets_at(dict.fromkeys(keys, at), read_committed=committed)
    if bound.offsets is not None:
        _check_all_named(bound.name, bound.offsets, keys)
        return _resolved(cluster, bound.offsets, committed)
    if bound.timestamps is not None:
        _check_all_named(bound.name, bound.timestamps, keys)
        wanted = dict(bound.timestamps)
    else:
        assert bound.timestamp is not None, bound
        wanted = dict.fromkeys(keys, bound.timestamp)
    found = cluster.offsets_at(wanted, read_committed=committed)
    missing = [key for key, offset in found.items() if offset < 0]
    is_start = bound.name.startswith("starting")
    if missing and is_start and not options.latest_if_no_later_record:
        raise PipelineError(
            f"option {bound.name}: {missing[0]} has no record at {wanted[missing[0]]} or later; set"
            " startingOffsetsByTimestampStrategy to latest to begin at its end"
        )
    ends = dict.fromkeys(missing, LATEST_TIMESTAMP)
    return found | cluster.offsets_at(ends, read_committed=committed)


def _check_all_named(
    name: str, named: Collection[TopicPartition], keys: Collection[TopicPartition]
) -> None:
    """Check that exactly the partitions that are read are named."""
    absent = sorted(set(keys) - set(named))
    strange = sorted(set(named) - set(keys))
    if absent:
        raise PipelineError(
            f"option {name}: {absent[0]} is read too and must be named; -2 is the earliest offset,"
            " -1 the latest"
        )
    if strange:
        raise PipelineError(
            f"option {name}: {strange[0]} is not among the partitions that are read"
        )


def _resolved(
    cluster: ClusterClient, offsets: Mapping[TopicPartition, int], committed: bool
) -> dict[TopicPartition, int]:
    words = {EARLIEST: EARLIEST_TIMESTAMP, LATEST: LATEST_TIMESTAMP}
    wanted = {key: words[offset] for key, offset in offsets.items() if offset < 0}
    return dict(offsets) | cluster.offsets_at(wanted, read_committed=committed)


def split_ranges(
    ranges: Sequence[PartitionRange], partitions_min: int | None, records_max: int | None
) -> list[PartitionRange]:
    """Return the tasks: ranges that hold anything, the larger ones in parts.

    PipelineError where an option makes more of them than can be run.
    """
    full = [each for each in ranges if each.end > each.start]
    if records_max is not None:
        counts = [-(-(each.end - each.start) // records_max) for each in full]
        full = _all_divided(full, counts, f"maxRecordsPerPartition: {records_max}")
    if partitions_min is None or partitions_min <= len(full):
        return full
    total = sum(each.end - each.start for each in full)
    are_whole = [_share(each, total, partitions_min) == 1 for each in full]
    whole = [each for each, is_whole in zip(full, are_whole, strict=True) if is_whole]
    rest = total - sum(each.end - each.start for each in whole)
    left = max(partitions_min - len(whole), 1)
    counts = [
        1 if is_whole else _share(each, rest, left)
        for each, is_whole in zip(full, are_whole, strict=True)
    ]
    return _all_divided(full, counts, f"minPartitions: {partitions_min}")


def _all_divided(
    ranges: Sequence[PartitionRange], counts: Sequence[int], option: str
) -> list[PartitionRange]:
    """Divide each range into so many parts, or one for each offset."""
    bounded_counts = [
        min(count, each.end - each.start) for each, count in zip(ranges, counts, strict=True)
    ]
    tasks = sum(bounded_counts)
    if tasks > _TASKS_MAX:
        raise PipelineError(
            f"option {option} makes {tasks} tasks of what is read, at most {_TASKS_MAX} are made"
        )
    return [
        part
        for each, count in zip(ranges, bounded_counts, strict=True)
        for part in _divided(each, count)
    ]


def _share(each: PartitionRange, total: int, parts: int) -> int:
    """Return how many of the parts a range gets, at least one; halves are rounded up."""
    return max(int((each.end - each.start) / total * parts + 0.5), 1)


def _divided(each: PartitionRange, parts: int) -> list[PartitionRange]:
    found: list[PartitionRange] = []
    start, left = each.start, each.end - each.start
    for part in range(parts):
        size = left // (parts - part)
        left -= size
        found.append(PartitionRange(each.key, start, start + size))
        start += size
    return found


def prorated(
    began: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    most: int,
    earliest: Callable[[list[TopicPartition]], Mapping[TopicPartition, int]],
) -> dict[TopicPartition, int]:
    """Return where a micro-batch of about `most` offsets ends, each partition by its backlog.

    A small one gets at least one offset, so the sum may be a little more than `most`. `earliest`
    has the beginnings of partitions that are new to the query.
    """
    new = [key for key in ends if key not in began]
    starts = {**began, **(earliest(new) if new else {})}
    sizes = {key: end - starts[key] for key, end in ends.items() if end > starts[key]}
    total = float(sum(sizes.values()))
    reached = dict(ends)
    for key, size in sizes.items():
        share = most * (size / total)
        step = int(share) if share >= 1 else int(share > 0)
        reached[key] = min(ends[key], starts[key] + step)
    return reached
