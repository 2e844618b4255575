"""Seeds of clusters with consumer, share and streams groups, every event judged.

Sources: KIP-848, KIP-932, KIP-1071.

`group_seeds.txt` holds the seeds that once failed, each with its story; they run first.
"""

from collections import Counter
from functools import cache

import pytest

from kraft_wire.sim.plans.group_plan import with_groups
from kraft_wire.sim.plans.plan import plan_from_json, plan_to_json
from kraft_wire.sim.runs.campaign import drawn
from kraft_wire.sim.runs.run import Failure, run_plan
from tests.seeds import kept_seeds, printed_by_hash_seed

BATCHES = [range(start, start + 2) for start in range(2_000, 2_008, 2)]


@cache
def long_run(seed: int) -> tuple[Failure | None, Counter[str]]:
    """Return the failure of a run, and how often each thing was reached; a run is of its seed."""
    result = run_plan(drawn(seed, events=4_000, nodes=None, brokers=0, focus="groups"))
    return result.failure, result.operations + result.looked


@pytest.mark.parametrize("seed", kept_seeds(__file__, "group_seeds.txt"))
def test_seed_with_groups_that_once_failed_holds_every_invariant(seed: int) -> None:
    failure, _ = long_run(seed)
    assert failure is None


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_fresh_seeds_with_groups_hold_every_invariant_and_settle(seeds: range) -> None:
    for seed in seeds:
        result = run_plan(drawn(seed, events=2_500, nodes=None, brokers=0, focus="groups"))
        assert result.failure is None
        assert result.marks["cluster settled"] == 1


def test_seed_has_one_trace_under_two_hash_seeds() -> None:
    program = (
        "from kraft_wire.sim.runs.campaign import drawn\n"
        "from kraft_wire.sim.runs.run import Failure, run_plan\n"
        "for seed in (0, 5, 8):\n"
        "    plan = drawn(seed, events=1_500, nodes=None, brokers=0, focus='groups')\n"
        "    print(run_plan(plan).trace_hash)"
    )
    one, other = printed_by_hash_seed(program)
    assert one == other != ""


def test_plan_with_groups_is_its_json_again() -> None:
    plan = drawn(5, events=100, nodes=None, brokers=0, focus="groups")
    assert plan_from_json(plan_to_json(plan)) == plan


@pytest.mark.parametrize("seed", range(1_500, 1_520))
def test_seed_without_the_focus_has_no_such_groups(seed: int) -> None:
    """So its trace is what it was before there were any."""
    plan = drawn(seed, events=100, nodes=None, brokers=0)
    data = plan.setup.data
    assert (data.consumer_members, data.share_members, data.streams_members) == (0, 0, 0)
    data = with_groups(plan).setup.data
    assert data.consumer_members or data.share_members
    assert not data.may_elect_uncleanly


def test_members_reach_what_they_are_there_for() -> None:
    reached: Counter[str] = Counter()
    for seed in (0, 1, 3, 10, 15):
        _, found = long_run(seed)
        reached += found
    for name in (
        "consumer assignment told",
        "consumer member read",
        "stray commit STALE_MEMBER_EPOCH",
        "stray commit UNKNOWN_MEMBER_ID",
        "C01 OneOwner",
        "C02 EpochsGrow",
        "share batches acquired",
        "share batches acquired again",
        "share acknowledge NONE",
        "C03 AcceptedIsOver",
        "C04 DeliveriesCount",
        "C05 OneHolder",
        "C06 EverythingDelivered",
        "streams assignment told",
        "streams partition revoked",
        "streams member read",
        "streams member committed",
    ):
        assert reached[name] > 0, name
