"""Seeds of whole clusters: brokers, partitions and clients under faults, every event judged.

`cluster_seeds.txt` holds the seeds that once failed, each with its story; they run first, as they
were drawn before there was upkeep. Those of `cluster_upkeep_seeds.txt` are drawn with it, and those
of `cluster_transaction_seeds.txt` with transactions besides, those of `long_transaction_seeds.txt`
for twice as many events, those of `cluster_elr_seeds.txt` with eligible leader replicas.
"""

from collections import Counter
from dataclasses import replace

import pytest

from kraft_wire.sim.judge.invariants import SAFETY, Canary
from kraft_wire.sim.plans.cluster_plan import drawn_cluster_plan
from kraft_wire.sim.plans.metadata_upkeep_plan import with_metadata_upkeep
from kraft_wire.sim.plans.plan import Plan, plan_from_json, plan_to_json
from kraft_wire.sim.runs.campaign import drawn
from kraft_wire.sim.runs.page import page_of
from kraft_wire.sim.runs.run import Run, run_plan
from kraft_wire.sim.runs.shrink import shrink
from kraft_wire.sim.setup import Setup
from tests.seeds import kept_seeds, printed_by_hash_seed

EVENTS = 1_500
CALM = Plan(seed=1, setup=Setup(voters=(1,), brokers=(11, 12, 13), clients=0), events=1_500)
"""Everybody takes part, and nothing goes wrong."""
BATCHES = [range(1_000, 1_002), range(1_002, 1_004)]


@pytest.mark.parametrize("seed", kept_seeds(__file__, "cluster_seeds.txt"))
def test_seed_that_once_failed_holds_every_invariant(seed: int) -> None:
    assert run_plan(drawn_cluster_plan(seed, events=4_000, has_upkeep=False)).failure is None


@pytest.mark.parametrize("seed", kept_seeds(__file__, "cluster_upkeep_seeds.txt"))
def test_seed_with_upkeep_that_once_failed_holds_every_invariant(seed: int) -> None:
    plan = with_metadata_upkeep(drawn_cluster_plan(seed, events=4_000))
    assert run_plan(plan).failure is None


@pytest.mark.parametrize("seed", kept_seeds(__file__, "cluster_transaction_seeds.txt"))
def test_seed_with_transactions_that_once_failed_holds_every_invariant(seed: int) -> None:
    plan = drawn(seed, events=2_000, nodes=None, brokers=0, focus="transactions")
    assert run_plan(plan).failure is None


@pytest.mark.parametrize("seed", kept_seeds(__file__, "long_transaction_seeds.txt"))
def test_long_seed_with_transactions_that_once_failed_holds_every_invariant(seed: int) -> None:
    plan = drawn(seed, events=4_000, nodes=None, brokers=0, focus="transactions")
    assert run_plan(plan).failure is None


@pytest.mark.parametrize("seed", kept_seeds(__file__, "cluster_elr_seeds.txt"))
def test_seed_with_eligible_replicas_that_once_failed_holds_every_invariant(seed: int) -> None:
    plan = drawn(seed, events=4_000, nodes=None, brokers=0, focus="eligible-replicas")
    assert run_plan(plan).failure is None


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_fresh_seeds_with_transactions_hold_every_invariant_and_settle(seeds: range) -> None:
    for seed in seeds:
        plan = drawn(seed, events=EVENTS, nodes=None, brokers=0, focus="transactions")
        result = run_plan(plan)
        assert result.failure is None
        assert result.marks["cluster settled"] == 1


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_fresh_seeds_hold_every_invariant_and_settle(seeds: range) -> None:
    for seed in seeds:
        result = run_plan(drawn_cluster_plan(seed, events=EVENTS))
        assert result.failure is None
        assert result.marks["cluster settled"] == 1


def test_seeds_with_eligible_replicas_hold_every_invariant_and_elect_them() -> None:
    marks: Counter[str] = Counter()
    for seed in (9_500_002, 9_500_008):
        plan = drawn(seed, events=3_000, nodes=None, brokers=0, focus="eligible-replicas")
        result = run_plan(plan)
        assert result.failure is None
        marks += result.marks
    assert min(marks["eligible replica elected"], marks["last known leader elected"]) > 0


def test_canary_of_the_partitions_fails_and_is_shrunk() -> None:
    """A judge that sees nothing is worse than none; what it finds is replayed by a short plan."""
    kinds = (*SAFETY, Canary)
    plan = drawn_cluster_plan(2, events=EVENTS)
    failure = run_plan(plan, kinds=kinds).failure
    assert failure is not None
    assert failure.invariant == "S00 Canary"
    assert "committed up to" in failure.text
    found = shrink(plan, failure, lambda each: run_plan(each, kinds=kinds).failure, runs_max=12)
    assert found.failure.invariant == "S00 Canary"
    assert len(found.plan.faults) <= len(plan.faults)
    again = plan_from_json(plan_to_json(found.plan))
    assert again == found.plan
    assert run_plan(again, kinds=kinds).failure == found.failure


def test_seed_has_one_trace_under_two_hash_seeds() -> None:
    program = (
        "from kraft_wire.sim.plans.cluster_plan import drawn_cluster_plan\n"
        "from kraft_wire.sim.runs.run import run_plan\n"
        "for seed in (7, 8, 9):\n"
        "    print(run_plan(drawn_cluster_plan(seed, events=1_000)).trace_hash)"
    )
    one, other = printed_by_hash_seed(program)
    assert one == other != ""


def test_as_many_brokers_as_a_seed_draws_make_the_same_run() -> None:
    plan = drawn_cluster_plan(5)
    brokers, nodes = len(plan.setup.brokers), len(plan.setup.voters)
    assert drawn_cluster_plan(5, nodes=nodes, brokers=brokers) == plan
    assert len(drawn_cluster_plan(5, brokers=brokers + 1).setup.brokers) == brokers + 1


def test_page_shows_brokers_and_their_frames() -> None:
    run = Run(CALM, keeps_trace=True)
    result = run.result()
    assert run_plan(CALM).trace_hash == result.trace_hash
    page = page_of(run.world, result)
    assert "ProduceRequest" in page
    assert "BrokerHeartbeatRequest" in page


def test_workload_reaches_what_it_is_there_for() -> None:
    """The known misses of good simulators were in what they asked for, not in how they judged."""
    data = replace(CALM.setup.data, transactors=2, twins=1, stable_readers=1)
    result = run_plan(replace(CALM, setup=replace(CALM.setup, data=data), events=3_000))
    assert result.failure is None
    reached = result.marks + result.operations
    for name in (
        "produce acknowledged",
        "batches read",
        "offset committed",
        "generation joined",
        "cluster settled",
        "transaction told True",
        "transaction told False",
        "transactor fenced",
        "aborted batch read and left out",
        "last stable offset held back",
    ):
        assert reached[name] > 0, name
