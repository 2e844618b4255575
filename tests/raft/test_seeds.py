"""Seeds of the swarm: no invariant breaks, the quorum settles, and a seed is the same day twice.

`seeds.txt` and `bad_disk_seeds.txt` hold the seeds that once failed, each with its story.
"""

import pytest

from tests.raft.invariants import Broken, Canary
from tests.raft.swarm import Day
from tests.seeds import kept_seeds, printed_by_hash_seed

EVENTS = 700
BATCHES = [range(start, start + 10) for start in range(0, 120, 10)]


@pytest.mark.parametrize("seed", kept_seeds(__file__))
def test_seed_that_once_failed_holds_every_invariant(seed: int) -> None:
    Day(seed, 2_000).run()


@pytest.mark.parametrize("seed", kept_seeds(__file__, "bad_disk_seeds.txt"))
def test_seed_of_bad_disks_that_once_failed_is_in_the_model_and_settles(seed: int) -> None:
    day = Day(seed, 2_000, bad_disks=True)
    day.cluster.holds_against_model = True
    day.run()


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_fresh_seeds_hold_every_invariant_and_settle(seeds: range) -> None:
    for seed in seeds:
        Day(seed, EVENTS).run()


@pytest.mark.parametrize("seeds", BATCHES[::3], ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_bad_disks_break_no_invariant_and_the_quorum_settles(seeds: range) -> None:
    """Flushes take their time while all else goes on, and fetched snapshots have wrong bits."""
    for seed in seeds:
        Day(seed, EVENTS, bad_disks=True).run()


@pytest.mark.parametrize("bad_disks", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_elections_without_end_break_no_invariant_and_end(seed: int, bad_disks: bool) -> None:
    """Short timeouts, no pre-votes, and everything lost, doubled and late, until all is healed."""
    Day(seed, EVENTS, storm=True, bad_disks=bad_disks).run()


def test_canary_invariant_fails() -> None:
    """A judge that sees nothing is worse than none: a false invariant is caught at once."""
    day = Day(3, EVENTS)
    day.cluster.judges.append(Canary())
    with pytest.raises(Broken, match="S00 Canary"):
        day.run()


def test_seed_has_one_trace_under_two_hash_seeds() -> None:
    program = "from tests.raft.swarm import Day; print(Day(11, 400).run(), Day(24, 400).run())"
    one, other = printed_by_hash_seed(program)
    assert one == other != ""


def test_different_seeds_are_different_days() -> None:
    assert Day(1, 300).run() != Day(2, 300).run()
