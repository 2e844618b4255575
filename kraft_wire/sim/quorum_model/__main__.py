"""Explores the model: `python -m kraft_wire.sim.quorum_model [--only NAME] [--states N]`.

Every scope is visited in full, or up to N states of it, then random walks go beyond. Exit codes: 0
no invariant is violated, 1 one is: the way to it is printed.
"""

from __future__ import annotations

import argparse
import sys
import time

from kraft_wire.sim.quorum_model.electing import LeaderElectable
from kraft_wire.sim.quorum_model.exploration import Found, explore, walk
from kraft_wire.sim.quorum_model.scopes import SCOPES, WALKS
from kraft_wire.sim.quorum_model.world import Scope


def main() -> int:
    """Explore and print one line for each scope."""
    parser = argparse.ArgumentParser(description="Explore the model of the metadata quorum.")
    parser.add_argument("--only", choices=[*SCOPES, "walks"], help="explore one scope")
    parser.add_argument("--states", type=int, default=5_000_000, help="limit for each scope")
    parser.add_argument("--walk", type=int, default=300_000, help="random steps behind them")
    arguments = parser.parse_args()
    try:
        for name, scope in SCOPES.items():
            if arguments.only in (None, name):
                _explore(name, scope, arguments.states)
        if arguments.only in (None, "walks"):
            _walk(arguments.walk)
    except Found as found:
        print(f"VIOLATION {found}")
        return 1
    return 0


def _explore(name: str, scope: Scope, states_max: int) -> None:
    began_s = time.process_time()
    judge = LeaderElectable() if scope.has_pre_votes else None
    explored = explore(scope, states_max, judge)
    seconds = time.process_time() - began_s
    extent = "all of them" if explored.is_complete else "NOT ALL"
    print(
        f"{name}: {explored.states:,} states ({extent}), {explored.steps:,} steps, "
        f"depth {explored.depth}, {seconds:.0f} s"
        + (f", a leader electable in {judge.asked:,}" if judge is not None else ""),
        flush=True,
    )
    print(f"    {scope}", flush=True)


def _walk(steps: int) -> None:
    began_s = time.process_time()
    walked = walk(WALKS, 1, steps)
    seconds = time.process_time() - began_s
    print(f"walks: {walked.steps:,} steps, {walked.states:,} states, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
