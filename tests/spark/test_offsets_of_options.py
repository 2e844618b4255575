"""Where a read begins and ends by its options, and in how many tasks it is divided."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kraft_wire.columnar import PartitionFiles
from kraft_wire.model import TopicPartition
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.spark.kraftlog.offset_ranges import offset_range
from kraft_wire.spark.kraftlog.options import LogOptions, Pushed, parse_log_options
from kraft_wire.spark.kraftwire.offsets import EARLIEST, LATEST
from kraft_wire.spark.kraftwire.wire_offsets import PartitionRange, split_ranges

KEY = TopicPartition("t", 0)
PHYSICAL = -(1 << 63)
FILES = PartitionFiles("1", "t", 0, "/t-0", [], log_start_offset=20, log_end_offset=90)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (None, None, (20, None)),
        (EARLIEST, LATEST, (20, None)),
        (30, 50, (30, 50)),
        (20, 20, (20, 20)),
        (7, 50, (20, 50)),
        (30, EARLIEST, (30, 20)),
    ],
)
def test_a_range_is_within_what_consumers_see(
    start: int | None, end: int | None, found: tuple[int, int | None]
) -> None:
    """A start that was deleted moves to the earliest offset, as for a consumer."""
    options = LogOptions(
        paths=("/",),
        starting_offsets=None if start is None else {KEY: start},
        ending_offsets=None if end is None else {KEY: end},
        is_start_explicit=start is not None,
    )
    range_ = offset_range(SimFileSystem(), FILES, options)
    assert (range_.start, range_.end) == found
    pushed = replace(options, pushed=Pushed(start_offset=35, end_offset=40))
    narrower = offset_range(SimFileSystem(), FILES, pushed)
    assert narrower.start == max(35, found[0])
    assert narrower.end == min(40, 40 if found[1] is None else found[1])


@pytest.mark.parametrize(
    ("view", "starting", "begin"),
    [
        ("records", None, 20),
        ("records", "physical", PHYSICAL),
        ("records", "earliest", 20),
        ("batches", None, PHYSICAL),
        ("batches", "earliest", 20),
        ("batches", "physical", PHYSICAL),
    ],
)
def test_what_is_below_the_log_start_is_shown_where_it_is_asked_for(
    view: str, starting: str | None, begin: int
) -> None:
    given = {"path": "/logs", "view": view}
    if starting is not None:
        given["startingOffsets"] = starting
    assert offset_range(SimFileSystem(), FILES, parse_log_options(given)).start == begin


@pytest.mark.parametrize(
    ("sizes", "wanted", "tasks"),
    [
        ((5, 5), 3, (2, 2)),
        ((10, 10, 10), 4, (1, 1, 1)),
        ((100, 1), 4, (3, 1)),
        ((60, 40), 5, (3, 2)),
        ((75, 25), 6, (5, 2)),
        ((2,), 9, (2,)),
        ((0, 8), 2, (0, 2)),
    ],
)
def test_tasks_are_as_many_as_those_of_sparks_connector(
    sizes: tuple[int, ...], wanted: int, tasks: tuple[int, ...]
) -> None:
    """`KafkaOffsetRangeCalculator`: shares are rounded, halves upwards; small ones stay whole."""
    keys = [TopicPartition("t", number) for number in range(len(sizes))]
    ranges = [PartitionRange(key, 10, 10 + size) for key, size in zip(keys, sizes, strict=True)]
    found = split_ranges(ranges, wanted, None)
    counts = Counter(each.key for each in found)
    assert tuple(counts[key] for key in keys) == tasks
    for key, size in zip(keys, sizes, strict=True):
        offsets = [n for each in found if each.key == key for n in range(each.start, each.end)]
        assert offsets == list(range(10, 10 + size))
