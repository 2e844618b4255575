"""Faults in the node that a client can see: each must be found by the case that is named for it.

`python -m tests.conformance.faults [ID …]` runs them, which takes a quarter of an hour. The faults
are random mutants (`mutants/random`) of handlers, groups, producing, fetching, the controller's
topics and settings and the quorum's RPCs. They were drawn with seed 20 before the cases were looked
at; `faults.toml` has those of the first 130 that one node can show to a client, 15 of a later draw
with seed 2026, 27 of one with seed 2027 over newer groups and transactions, 60 of one with seed
2029 over the broker, the controller's and the quorum's handlers and the wire, and 51 of one with
seed 2031 over the broker and the controller. A fault whose lines are gone is listed, and counts as
neither found nor missed.
"""

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from mutants.campaign import probe_in
from mutants.catalogue import Check
from mutants.overlay import Overlay
from mutants.random.candidates import source_of
from mutants.random.coverage_map import product_files
from mutants.random.drawing import Drawn, all_mutants

__all__ = ["main"]

FAULTS = Path(__file__).with_name("faults.toml")
BUDGET_S = 300


def main(only: Sequence[str] = ()) -> int:
    """Run the faults, and return how many were missed."""
    listed = tomllib.loads(FAULTS.read_text(encoding="utf-8"))["fault"]
    wanted = [each for each in listed if each["case"] and (not only or each["id"] in only)]
    sources = {each["path"]: source_of(each["path"]) for each in wanted}
    known = {each.id: each for each in (*_of_the_product(), *all_mutants(sources))}
    overlay, missed = Overlay(), 0
    try:
        for each in wanted:
            drawn = known.get(each["id"])
            verdict = "gone" if drawn is None else _judged(overlay, drawn, sources, each["case"])
            missed += verdict == "missed"
            print(f"{each['id']} {verdict:7} {each['case']}", flush=True)
    finally:
        overlay.remove()
    return missed


def _of_the_product() -> list[Drawn]:
    """Return all mutants: which fields have one type depends on the modules beside."""
    return all_mutants({path: source_of(path) for path in map(str, product_files())})


def _judged(overlay: Overlay, fault: Drawn, sources: dict[str, str], case: str) -> str:
    changed = {fault.path: fault.applied(sources[fault.path])}
    with overlay.changed(changed):
        verdict = probe_in(overlay, Check("conform", names=(case,)), BUDGET_S)
    return "found" if not isinstance(verdict, str) and verdict["failed"] else "missed"


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
