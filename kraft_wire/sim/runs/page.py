"""One run as a self-contained page: a lane per node, messages as arrows, faults as bands.

The template is `page.html` beside this file; the run goes into it as JSON, and nothing is loaded
from anywhere. Not here: the kept events of a run (`trace`).
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Final

from kraft_wire.sim.runs.run import Result
from kraft_wire.sim.trace import Trace
from kraft_wire.sim.world import World

__all__ = ["page_of"]

_PLACE_OF_DATA: Final = "/*DATA*/"


def page_of(world: World, result: Result) -> str:
    """Return the page of a run that kept its trace."""
    assert world.trace.keeps, "nothing was kept to show"
    content = {
        "seed": result.seed,
        "events": result.events,
        "virtual_us": result.virtual_us,
        "trace_hash": result.trace_hash,
        "failure": None if result.failure is None else result.failure.text,
        "nodes": list(world.setup.nodes),
        "clients": _places_outside(world.trace),
        "entries": world.trace.entries,
    }
    data = json.dumps(content, separators=(",", ":")).replace("</", "<\\/")
    template = files("kraft_wire.sim.runs").joinpath("page.html").read_text(encoding="utf-8")
    assert template.count(_PLACE_OF_DATA) == 1, "the template has one place for the run"
    return template.replace(_PLACE_OF_DATA, data)


def _places_outside(trace: Trace) -> list[int]:
    """Return the clients and the operator that sent or got anything."""
    places: dict[int, bool] = {}
    for entry in trace.entries:
        if entry["kind"] == "message":
            for key in ("from", "to"):
                place = entry[key]
                if isinstance(place, int) and place < 0:
                    places[place] = True
    return sorted(places, reverse=True)
