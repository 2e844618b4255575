"""Upkeep of the metadata in half of the seeds: what is drawn, what stays, what is reached."""

from collections import Counter
from dataclasses import replace

import pytest

from kraft_wire.sim.judge.invariants import kinds_of
from kraft_wire.sim.plans.cluster_plan import drawn_cluster_plan
from kraft_wire.sim.plans.metadata_upkeep_plan import UPKEEP_KINDS, with_metadata_upkeep
from kraft_wire.sim.plans.plan import Fault, Plan, drawn_plan, plan_from_json, plan_to_json
from kraft_wire.sim.runs.campaign import drawn
from kraft_wire.sim.runs.run import Result, run_plan
from kraft_wire.sim.setup import Setup
from tests.seeds import kept_seeds

SEEDS = range(1_100, 1_104)


def quorum_plan(seed: int) -> Plan:
    return drawn(seed, events=1_000, nodes=None, brokers=None)


def test_half_of_the_seeds_are_what_they_were_and_the_others_keep_their_faults() -> None:
    unchanged = 0
    for seed in range(100):
        for plan in (drawn_plan(seed), drawn_cluster_plan(seed)):
            more = with_metadata_upkeep(plan)
            unchanged += more == plan
            kept = tuple(each for each in more.faults if each.kind not in UPKEEP_KINDS)
            assert (kept, more.habits, more.events) == (plan.faults, plan.habits, plan.events)
            assert more.setup.voters == plan.setup.voters
    assert 60 < unchanged < 140


@pytest.mark.parametrize("name", ["seeds.txt", "cluster_seeds.txt"])
def test_seed_that_failed_before_there_was_upkeep_has_none(name: str) -> None:
    for seed in kept_seeds(__file__, name):
        assert with_metadata_upkeep(drawn_plan(seed)) == drawn_plan(seed)


def test_every_kind_is_drawn_and_survives_a_plan_file() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(100):
        plan = quorum_plan(seed)
        kinds.update(each.kind for each in plan.faults)
        assert plan_from_json(plan_to_json(plan)) == plan
    assert set(UPKEEP_KINDS) <= set(kinds)


@pytest.mark.parametrize("seed", SEEDS)
def test_seed_with_upkeep_holds_every_invariant(seed: int) -> None:
    plan = next(plan for at in range(10) if (plan := quorum_plan(seed * 10 + at)) != base(plan))
    assert run_plan(plan).failure is None


@pytest.mark.parametrize("seed", kept_seeds(__file__, "upkeep_seeds.txt"))
def test_seed_that_once_failed_with_upkeep_holds_every_invariant(seed: int) -> None:
    plan = drawn(seed, events=2_000, nodes=None, brokers=None)
    assert run_plan(plan, kinds=kinds_of(canary=False, model=True)).failure is None


def base(plan: Plan) -> Plan:
    """Return the plan that upkeep was added to."""
    return drawn_plan(plan.seed, events=plan.events)


def lived(setup: Setup, *faults: Fault, seed: int = 1) -> Result:
    """Live through a calm run with some faults."""
    result = run_plan(Plan(seed=seed, setup=setup, faults=faults, events=2_500))
    assert result.failure is None
    return result


def every(ms: int, kind: str, **fields: object) -> tuple[Fault, ...]:
    """Return the same fault again and again."""
    plain = Fault(at_us=0, kind=kind, target="leader", span_us=200_000)
    return tuple(
        replace(plain, at_us=at * 1_000, amount=at // ms, **fields)  # type: ignore[arg-type]  # any field
        for at in range(1_000, 9_000, ms)
    )


def test_transactions_are_ended_aborted_and_left_open() -> None:
    setup = Setup(snapshot_every_bytes=300, clients=1)
    result = lived(setup, *every(700, "transaction"))
    assert result.faults["transaction"] > 5
    assert result.marks["metadata transaction ended"] > 0
    assert result.marks["metadata transaction aborted"] > 1


def test_controller_that_moves_is_followed_to_its_new_host() -> None:
    result = lived(Setup(is_dynamic=True, clients=1), *every(1_500, "move"))
    assert result.faults["move"] > 0
    assert result.marks["settled"] == 1


def test_static_quorum_is_upgraded_to_a_dynamic_one() -> None:
    upgrade = [replace(each, amount=1) for each in every(2_000, "upgrade", other="kraft.version")]
    result = lived(Setup(clients=1, fetch_timeout_ms=800), *upgrade)
    assert result.marks["UpdateFeatures 0"] > 0


def test_administrators_and_brokers_on_paper_reach_what_they_are_there_for() -> None:
    result = lived(Setup(administrators=3, paper_brokers=4, clients=0, snapshot_every_ms=500))
    for name in ("CreateTopics", "DeleteTopics", "CreatePartitions", "CreateAcls", "DeleteAcls"):
        assert result.marks[f"{name} NONE"] > 0, name
    for name in ("AlterUserScramCredentials", "AlterClientQuotas", "IncrementalAlterConfigs"):
        assert result.marks[f"{name} NONE"] > 0, name
    assert result.marks["snapshot by time"] > 2
    assert result.marks["broker fenced"] > 0
    assert result.marks["partition changed"] > 5
