"""What an ingest says of its run: batches, records, and offsets from where to where."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from kraft_wire.spark.verbs.ingest import Ingested, _note


def progress(batch: int, rows: int, start: dict[str, int] | None, end: dict[str, int]) -> Any:
    """A batch as Spark's `StreamingQueryProgress` shows it."""
    source = SimpleNamespace(
        startOffset=None if start is None else json.dumps({"t": start}),
        endOffset=json.dumps({"t": end}),
    )
    return SimpleNamespace(batchId=batch, numInputRows=rows, sources=[source])


def test_totals_are_those_of_batches_with_rows_each_counted_once() -> None:
    shown = [
        progress(3, 5, {"0": 10}, {"0": 15}),
        progress(4, 0, {"0": 15}, {"0": 15}),
        progress(5, 7, {"0": 15}, {"0": 20, "1": 2}),
    ]
    taken, told = Ingested(), []
    query: Any = SimpleNamespace(recentProgress=shown[:2])
    last = _note(query, -1, taken, lambda amount: told.append(amount.records))
    query.recentProgress = shown
    last = _note(query, last, taken, lambda amount: told.append(amount.records))
    assert last == 5
    assert (taken.batches, taken.records, told) == (2, 12, [5, 7])
    assert taken.began == {("t", 0): 10}
    assert taken.reached == {("t", 0): 20, ("t", 1): 2}


def test_first_run_began_nowhere() -> None:
    taken = Ingested()
    query: Any = SimpleNamespace(recentProgress=[progress(0, 1, None, {"0": 1})])
    _note(query, -1, taken, lambda amount: None)
    assert (taken.batches, taken.began, taken.reached) == (1, {}, {("t", 0): 1})
