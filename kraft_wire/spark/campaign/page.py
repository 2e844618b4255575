"""A campaign as a self-contained page: every seed as a cell, rare marks, slowest seeds, violations.

The template is `campaign.html` beside this file; the figures go into it as JSON, and nothing is
loaded from anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from kraft_wire.spark.campaign.table import Row

__all__ = ["page_of", "write_page"]

_PLACE_OF_DATA: Final = "/*DATA*/"
_CELLS_MAX: Final = 20_000
_LISTED_MAX: Final = 25
_VIOLATIONS_MAX: Final = 500


def write_page(
    path: Path, about: Mapping[str, object], figures: Mapping[str, Any], rows: Sequence[Row]
) -> None:
    """Write the page in one step."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(page_of(about, figures, rows), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def page_of(about: Mapping[str, object], figures: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Return the page of rows in the order of their seeds; `figures` are those for machines."""
    step = max(-(-len(rows) // _CELLS_MAX), 1)
    slowest = sorted(rows, key=lambda row: (-row.seconds, row.result.seed))[:_LISTED_MAX]
    rare = sorted(figures["coverage"].items(), key=lambda mark: (mark[1], mark[0]))
    content = {
        "about": dict(about),
        "figures": {**figures, "violations": figures["violations"][:_VIOLATIONS_MAX]},
        "violations": len(figures["violations"]),
        "marks": rare,
        "slowest": [_line(row) for row in slowest],
        "seeds_per_cell": step,
        "cells": [_cell(rows[at : at + step]) for at in range(0, len(rows), step)],
    }
    template = files("kraft_wire.spark.campaign").joinpath("campaign.html").read_text("utf-8")
    assert template.count(_PLACE_OF_DATA) == 1, "the page has one place for its data"
    return template.replace(_PLACE_OF_DATA, json.dumps(content).replace("<", "\\u003c"))


def _cell(rows: Sequence[Row]) -> list[object]:
    """Return the first seed, the mean of the seconds, and whether all held."""
    seconds = sum(row.seconds for row in rows) / len(rows)
    is_good = all(row.result.failure is None for row in rows)
    return [rows[0].result.seed, round(seconds, 3), int(is_good)]


def _line(row: Row) -> dict[str, object]:
    return {
        "seed": row.result.seed,
        "seconds": round(row.seconds, 3),
        "events": row.result.events,
        "worker": row.worker,
        "replay": row.replay,
    }
