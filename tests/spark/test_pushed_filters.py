"""What each filter of a query takes out of the plan, and that every filter goes back to Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from kraft_wire.spark.kraftlog.filters import PushdownReader
from kraft_wire.spark.kraftlog.options import Pushed, parse_log_options

LOWEST = -(1 << 63)
OFFSET, TOPIC, NODE = ("offset",), ("topic",), ("node",)


def pushed(*filters: Filter, view: str = "records") -> Pushed:
    reader = PushdownReader(parse_log_options({"path": "x", "view": view}), None, 1)  # type: ignore[arg-type]  # no rows are read
    given = list(filters)
    assert reader.pushFilters(given) is given
    return reader.options.pushed


@pytest.mark.parametrize(
    ("filters", "start", "end"),
    [
        ([EqualTo(OFFSET, 5)], 5, 6),
        ([GreaterThan(OFFSET, 5)], 6, None),
        ([GreaterThanOrEqual(OFFSET, 5)], 5, None),
        ([LessThan(OFFSET, 5)], LOWEST, 5),
        ([LessThanOrEqual(OFFSET, 5)], LOWEST, 6),
        ([GreaterThan(OFFSET, 5), LessThan(OFFSET, 9)], 6, 9),
        ([LessThan(OFFSET, 9), GreaterThan(OFFSET, 5)], 6, 9),
        ([LessThan(OFFSET, 9), LessThan(OFFSET, 7), LessThan(OFFSET, 8)], LOWEST, 7),
        ([GreaterThan(OFFSET, 5), GreaterThan(OFFSET, 7), GreaterThan(OFFSET, 6)], 8, None),
        ([LessThan(OFFSET, 9), EqualTo(OFFSET, 5)], 5, 6),
        ([LessThan(OFFSET, 3), EqualTo(OFFSET, 5)], 5, 3),
        ([IsNull(OFFSET)], LOWEST, None),
        ([EqualTo(("headers", "offset"), 5)], LOWEST, None),
    ],
)
def test_offsets_are_bounded(filters: list[Filter], start: int, end: int | None) -> None:
    for view in ("records", "metadata"):
        assert pushed(*filters, view=view) == Pushed(start_offset=start, end_offset=end)
    for view in ("batches", "segments", "partitions", "snapshots"):
        assert pushed(*filters, view=view) == Pushed()


@pytest.mark.parametrize(
    ("view", "names"),
    [
        ("records", {"topic", "partition"}),
        ("batches", {"topic", "partition", "node"}),
        ("segments", {"topic", "partition", "node"}),
        ("metadata", set()),
    ],
)
def test_logs_are_chosen_by_what_a_view_has(view: str, names: set[str]) -> None:
    for name in ("topic", "partition", "node", "key"):
        wanted: tuple[Any, ...] = ((name, (5,)),) if name in names else ()
        assert pushed(EqualTo((name,), 5), view=view) == Pushed(chosen=wanted)


def test_choices_add_up_and_other_filters_choose_nothing() -> None:
    found = pushed(
        EqualTo(TOPIC, "a"),
        In(NODE, (1, 2)),
        IsNull(TOPIC),
        GreaterThan(TOPIC, "b"),
        view="batches",
    )
    assert found == Pushed(chosen=(("topic", ("a",)), ("node", (1, 2))))
