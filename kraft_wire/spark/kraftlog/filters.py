"""The reader that takes filters, used only with the option `pushdown`.

Spark refuses a reader that takes filters while `spark.sql.python.filterPushdown.enabled` is false,
which is its default. A filter on topic, partition, node or offset narrows down the plan; every
filter is returned to Spark too, so none is ever half applied.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kraft_wire.spark.kraftlog.options import Pushed
from kraft_wire.spark.kraftlog.tasks import LogReader

__all__ = ["PushdownReader"]

_CHOOSING: Final = {
    "records": ("topic", "partition"),
    "batches": ("topic", "partition", "node"),
    "segments": ("topic", "partition", "node"),
}
_WITH_OFFSETS: Final = ("records", "metadata")


class PushdownReader(LogReader):
    """A reader whose plan leaves out the parts that filters exclude."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Narrow the plan by the filters, and return all of them."""
        view, pushed = self.options.view, self.options.pushed
        for each in filters:
            name = ".".join(getattr(each, "attribute", ()))
            if name in _CHOOSING.get(view, ()):
                pushed = _chosen(pushed, name, each)
            elif name == "offset" and view in _WITH_OFFSETS:
                pushed = _bounded(pushed, each)
        self.options = replace(self.options, pushed=pushed)
        return filters


def _chosen(pushed: Pushed, name: str, by: Filter) -> Pushed:
    match by:
        case EqualTo(value=value):
            return replace(pushed, chosen=(*pushed.chosen, (name, (value,))))
        case In(value=values):
            return replace(pushed, chosen=(*pushed.chosen, (name, tuple(values))))
    return pushed


def _bounded(pushed: Pushed, by: Filter) -> Pushed:
    match by:
        case EqualTo(value=value):
            return _narrowed(pushed, value, value + 1)
        case GreaterThan(value=value):
            return _narrowed(pushed, value + 1, None)
        case GreaterThanOrEqual(value=value):
            return _narrowed(pushed, value, None)
        case LessThan(value=value):
            return _narrowed(pushed, pushed.start_offset, value)
        case LessThanOrEqual(value=value):
            return _narrowed(pushed, pushed.start_offset, value + 1)
    return pushed


def _narrowed(pushed: Pushed, start: int, end: int | None) -> Pushed:
    if end is not None and pushed.end_offset is not None:
        end = min(end, pushed.end_offset)
    start = max(start, pushed.start_offset)
    return replace(pushed, start_offset=start, end_offset=pushed.end_offset if end is None else end)
