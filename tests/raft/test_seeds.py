"""Seeds of the swarm: no invariant breaks, the quorum settles, and a seed is the same day twice.

`seeds.txt` holds the seeds that once failed, each with its story; they run first.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.raft.invariants import Broken, Canary
from tests.raft.swarm import Day
from tests.tidiness import CHECKOUT

EVENTS = 700
BATCHES = [range(start, start + 10) for start in range(0, 120, 10)]
KEPT = Path(__file__).with_name("seeds.txt")


def kept_seeds() -> list[int]:
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("seed", kept_seeds())
def test_seed_that_once_failed_holds_every_invariant(seed: int) -> None:
    Day(seed, 2_000).run()


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_fresh_seeds_hold_every_invariant_and_settle(seeds: range) -> None:
    for seed in seeds:
        Day(seed, EVENTS).run()


def test_canary_invariant_fails() -> None:
    """A judge that sees nothing is worse than none: a false invariant is caught at once."""
    day = Day(3, EVENTS)
    day.cluster.judges.append(Canary())
    with pytest.raises(Broken, match="S00 Canary"):
        day.run()


def test_seed_has_one_trace_under_two_hash_seeds() -> None:
    program = "from tests.raft.swarm import Day; print(Day(11, 400).run(), Day(24, 400).run())"
    traces = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert traces[0] == traces[1] != ""


def test_different_seeds_are_different_days() -> None:
    assert Day(1, 300).run() != Day(2, 300).run()
