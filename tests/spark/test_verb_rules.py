"""Rules of the verbs that need no session: triggers, lines of a campaign, unknown times."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from rich.console import Console

from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.metadata.partition_tables import TIME_MS_MAX, _offset_and_timestamp_columns
from kraft_wire.spark.verbs import ingest as ingest_module
from kraft_wire.spark.verbs import progress as progress_module
from kraft_wire.spark.verbs.ingest import Ingest, start_ingest
from kraft_wire.spark.verbs.progress import SeedBar
from kraft_wire.spark.workers import Amount


class Reached(Exception):
    """The trigger was accepted."""


@pytest.mark.parametrize(
    ("trigger", "is_right"),
    [
        ("available-now", True),
        ("10 seconds", True),
        (" 1 minute ", True),
        ("sometimes", False),
        ("", False),
        ("10", False),
    ],
)
def test_trigger_is_all_that_is_there_or_an_interval(
    monkeypatch: pytest.MonkeyPatch, trigger: str, is_right: bool
) -> None:
    def reached(_: Ingest) -> None:
        raise Reached

    monkeypatch.setattr(ingest_module, "_refuse_strangers", reached)
    asked = Ingest("b:1", "t", "out", "checkpoint", trigger=trigger)
    with pytest.raises(Reached if is_right else PipelineError) as raised:
        start_ingest(cast(Any, None), asked)
    if not is_right:
        assert str(raised.value).startswith(f"--trigger {trigger!r} is neither")


def test_campaign_without_a_terminal_has_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    written = io.StringIO()
    updated: list[dict[str, Any]] = []
    shown = SimpleNamespace(
        disable=True,
        console=Console(file=written, width=200),
        add_task=lambda *_, **__: 1,
        update=lambda _, **fields: updated.append(fields),
    )
    bar = SeedBar(cast(Any, shown), 40)
    for at_s, gained in ((159.0, 1_000), (160.0, 2_000), (200.0, 5_000), (220.0, 4_000)):
        now_s = at_s
        bar.tell(Amount(files=2, records=gained))
    assert written.getvalue().splitlines() == [
        "4/40 seeds, 3,000 events, 50 a second",
        "8/40 seeds, 12,000 events, 100 a second",
    ]
    assert [each["completed"] for each in updated] == [2, 4, 6, 8]


def test_times_that_no_timestamp_can_hold_are_null() -> None:
    stamps = [-1, 0, 1, TIME_MS_MAX, TIME_MS_MAX + 1]
    rows = np.array([[at - 1, stamp] for at, stamp in enumerate(stamps)], np.int64)
    offsets, times = _offset_and_timestamp_columns(rows)
    assert offsets.to_pylist() == [None, 0, 1, 2, 3]
    found = times.cast("int64").to_pylist()
    assert found == [None, 0, 1_000, TIME_MS_MAX * 1_000, None]
