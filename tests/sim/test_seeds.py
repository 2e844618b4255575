"""Seeds of whole nodes: no invariant breaks, the quorum settles, a seed is the same run twice.

`seeds.txt` holds the seeds that once failed, each with its story; they run first.
"""

import pytest

from kraft_wire.sim.judge.invariants import SAFETY, Canary
from kraft_wire.sim.plans.plan import drawn_plan
from kraft_wire.sim.runs.run import run_plan
from tests.seeds import kept_seeds, printed_by_hash_seed

EVENTS = 1_500
BATCHES = [range(start, start + 4) for start in range(1_000, 1_024, 4)]


@pytest.mark.parametrize("seed", kept_seeds(__file__))
def test_seed_that_once_failed_holds_every_invariant(seed: int) -> None:
    assert run_plan(drawn_plan(seed)).failure is None


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_fresh_seeds_hold_every_invariant_and_settle(seeds: range) -> None:
    for seed in seeds:
        assert run_plan(drawn_plan(seed, events=EVENTS)).failure is None


def test_canary_invariant_fails() -> None:
    """A judge that sees nothing is worse than none: a false invariant is caught at once."""
    result = run_plan(drawn_plan(1, events=EVENTS), kinds=(*SAFETY, Canary))
    assert result.failure is not None
    assert result.failure.invariant == "S00 Canary"


def test_seed_has_one_trace_under_two_hash_seeds() -> None:
    program = (
        "from kraft_wire.sim.plans.plan import drawn_plan\n"
        "from kraft_wire.sim.runs.run import run_plan\n"
        "for seed in (14, 40, 41): print(run_plan(drawn_plan(seed, events=800)).trace_hash)"
    )
    one, other = printed_by_hash_seed(program)
    assert one == other != ""


def test_different_seeds_are_different_runs() -> None:
    one, other = (run_plan(drawn_plan(seed, events=300)).trace_hash for seed in (1, 2))
    assert one != other


@pytest.mark.parametrize("seed", [14, 18])  # in 18 a process dies in the middle of a turn
def test_kept_trace_changes_nothing(seed: int) -> None:
    """Watching must not disturb: the run that is shown is the run that was judged."""
    from kraft_wire.sim.runs.run import Run

    plan = drawn_plan(seed, events=600)
    shown, judged = Run(plan, keeps_trace=True).result(), run_plan(plan)
    assert shown.trace_hash == judged.trace_hash
    assert shown.marks == judged.marks
