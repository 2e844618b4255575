"""A short chaos run without namespaces, and its judge, which must notice what is wrong."""

from pathlib import Path

import pytest

from kraft_wire.sim.judge.history import Operation
from kraft_wire.sim.judge.ledger import PRODUCER_IDS, register_of_config
from tests.chaos.campaign import Campaign, Outcome
from tests.chaos.verdict import Verdict, judge
from tests.mixed.load import CLIENT_METRICS, KEY

CYCLES = 3
WRITES_MIN = 100
"""However little the faults let through: the judges below need some of each kind."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Outcome]:
    campaign = Campaign(tmp_path_factory.mktemp("chaos"), None, 3, print)
    return campaign, campaign.run(CYCLES, 120, WRITES_MIN)


def judged(run: tuple[Campaign, Outcome], *more: Operation) -> Verdict:
    campaign, outcome = run
    directories: dict[int, Path] = {
        node.node_id: node.data for node in campaign.quorum.nodes.values()
    }
    return judge([*outcome.operations, *more], directories, outcome.high_watermark)


def invented(kind: str, value: str, begin_us: int, end_us: int) -> Operation:
    """Something that nobody was told."""
    register = PRODUCER_IDS
    if kind != "producer-id":
        register = register_of_config(CLIENT_METRICS, "invented", KEY)
    operation = Operation(9, kind, register, value, 1, outcome="ok", is_current=True)
    operation.invoked_us, operation.returned_us = begin_us, end_us
    return operation


def test_kills_and_pauses_under_load_lose_nothing(run: tuple[Campaign, Outcome]) -> None:
    verdict = judged(run)
    assert run[1].cycles == CYCLES
    assert not run[1].died
    assert not verdict.violations
    assert verdict.acknowledged > 0
    assert verdict.registers > 0
    assert verdict.compared_bytes > 0


def test_a_write_that_is_in_no_log_counts_as_lost(run: tuple[Campaign, Outcome]) -> None:
    verdict = judged(run, invented("write", "999", 1, 2))
    assert verdict.lost == 1


def test_a_producer_id_that_was_given_twice_is_noticed(run: tuple[Campaign, Outcome]) -> None:
    given = next(
        each for each in run[1].operations if each.kind == "producer-id" and each.outcome == "ok"
    )
    assert given.value is not None
    verdict = judged(run, invented("producer-id", given.value, 1, 2))
    assert any("given twice" in each for each in verdict.violations)


def test_a_read_of_an_old_value_has_no_order(run: tuple[Campaign, Outcome]) -> None:
    writes: dict[tuple[str, ...], list[Operation]] = {}
    for each in run[1].operations:
        if each.kind == "write" and each.outcome == "ok":
            writes.setdefault(each.register, []).append(each)
    register, done = max(writes.items(), key=lambda item: len(item[1]))
    done.sort(key=lambda each: each.returned_us or 0)
    late = (done[-1].returned_us or 0) + 1
    stale = Operation(9, "read", register, done[0].value, 1, outcome="ok", is_current=True)
    stale.invoked_us, stale.returned_us = late, late + 1
    verdict = judged(run, stale)
    assert any("Linearizable" in each for each in verdict.violations)
