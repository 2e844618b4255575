"""Seeds about membership: what they draw, and that they find what they are made for."""

from itertools import count

import pytest

from kraft_wire.raft.roles import Follower, Role
from kraft_wire.raft.rpc import vote
from kraft_wire.sim.plans.membership_plan import MEMBERSHIP_FAULTS, drawn_membership_plan
from kraft_wire.sim.plans.plan import Fault, Plan, plan_from_json, plan_to_json
from kraft_wire.sim.runs.run import run_plan
from kraft_wire.sim.setup import Setup
from tests.seeds import kept_seeds

LAGGING_VOTER = 7900047
"""A leader loses its disk before a new voter has read its own addition."""
EVENTS = 1_500
REMOVES_LEADER = 1
LOST = "leader lost before a voter knew of its addition"


def test_membership_plan_survives_its_file() -> None:
    for seed in range(20):
        plan = drawn_membership_plan(seed)
        assert plan_from_json(plan_to_json(plan)) == plan
        assert drawn_membership_plan(seed) == plan


def test_every_kind_of_membership_fault_is_drawn() -> None:
    plans = [drawn_membership_plan(seed) for seed in range(100)]
    drawn = {fault.kind for plan in plans for fault in plan.faults}
    assert drawn == {*MEMBERSHIP_FAULTS, "lose-leader"}
    assert all(plan.setup.is_dynamic and plan.setup.observers for plan in plans)
    assert {len(plan.setup.voters) for plan in plans} == {2, 3, 4, 5}


@pytest.mark.parametrize("seed", kept_seeds(__file__, "membership_seeds.txt"))
def test_membership_seed_that_once_failed_holds_every_invariant(seed: int) -> None:
    assert run_plan(drawn_membership_plan(seed, events=1_500)).failure is None


@pytest.mark.parametrize("seed", [LAGGING_VOTER, 8_000_000, 8_000_001, 8_000_002])
def test_membership_seeds_hold_every_invariant_and_elect_a_leader(seed: int) -> None:
    result = run_plan(drawn_membership_plan(seed, events=EVENTS))
    assert result.failure is None, result.failure
    assert result.marks["settled"] == 1
    assert result.faults["double"] > 0
    if seed == LAGGING_VOTER:
        assert result.marks[LOST] == 1
        assert result.faults["wipe"] == 1


def test_voter_that_refuses_pre_votes_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule of 4.3.1: an observer that has fetched in an epoch grants no pre-vote in it."""
    real = vote.grants_pre_vote

    def grants(role: Role, up_to_date: bool, now_ms: int) -> bool:
        if isinstance(role, Follower):
            return up_to_date and not role.has_fetched
        return real(role, up_to_date, now_ms)

    monkeypatch.setattr(vote, "grants_pre_vote", grants)
    monkeypatch.setattr("kraft_wire.sim.runs.run._SETTLES_WITHIN_US", 15_000_000)
    failure = run_plan(drawn_membership_plan(LAGGING_VOTER, events=EVENTS)).failure
    assert failure is not None
    assert failure.invariant == "L1 LeaderElected"


def test_vote_for_a_double_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def grants(role: Role, election, asker, up_to_date: bool) -> bool:  # type: ignore[no-untyped-def]  # as the real one
        voted = election.voted_id == asker.id
        return voted or real(role, election, asker, up_to_date)

    real = vote.grants_vote
    monkeypatch.setattr(vote, "grants_vote", grants)
    found = (run_plan(drawn_membership_plan(seed, events=EVENTS)).failure for seed in range(40))
    failure = next(each for each in found if each is not None)
    assert failure.invariant == "S03 OneVotePerEpoch"


def last_removal(amount: int, *faults: Fault) -> Plan:
    """A voter is removed a moment before everything is healed."""
    removal = Fault(at_us=1_600_000, kind="remove-voter", target="leader", amount=amount)
    return Plan(
        seed=1,
        setup=Setup(voters=(1, 2, 3), is_dynamic=True, clients=1),
        events=100_000,
        chaos_us=1_600_300,
        faults=(*faults, removal),
    )


@pytest.mark.parametrize("amount", [0, 1])
def test_removal_that_takes_effect_after_the_healing_may_end_all_elections(
    amount: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The story of seed 8310741: two voters remain, and one of them lost its disk."""
    monkeypatch.setattr("kraft_wire.sim.runs.run._SETTLES_WITHIN_US", 5_000_000)
    lost = Fault(at_us=1_000_000, kind="wipe", target="shortest", other="again", span_us=100_000)
    result = run_plan(last_removal(amount, lost))
    assert result.failure is None
    assert result.marks["voters changed until nobody could be elected"] == 1


def test_removal_after_the_healing_excuses_no_quorum_that_could_elect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader removes itself, and the two that remain refuse each other's pre-votes."""
    real, granted = vote.grants_pre_vote, count()

    def grants(role: Role, up_to_date: bool, now_ms: int) -> bool:
        return real(role, up_to_date, now_ms) and next(granted) < 2

    plan = last_removal(REMOVES_LEADER)
    assert run_plan(plan).failure is None
    monkeypatch.setattr(vote, "grants_pre_vote", grants)
    monkeypatch.setattr("kraft_wire.sim.runs.run._SETTLES_WITHIN_US", 5_000_000)
    result = run_plan(plan)
    assert result.failure is not None
    assert result.failure.invariant == "L1 LeaderElected"
    assert result.marks["settled"] == 1
    assert result.marks["RemoveRaftVoter 0"] == 1


def test_voter_that_stops_after_the_healing_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The story of seed 8913668: it was paused when it was asked to stop."""
    monkeypatch.setattr("kraft_wire.sim.runs.run._SETTLES_WITHIN_US", 20_000_000)
    faults = [
        Fault(at_us=1_000 + at, kind=kind, target="1", span_us=60_000_000)
        for at, kind in enumerate(("pause", "stop"))
    ]
    setup = Setup(voters=(1, 2), is_dynamic=True, clients=1)
    plan = Plan(seed=1, setup=setup, events=100_000, chaos_us=50_000, faults=(*faults,))
    assert run_plan(plan).failure is None
