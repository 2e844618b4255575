"""Operators' tools in simulated clusters: their groups stay as they left them, and are shown so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kraft_wire.broker.groups.consumer.group import ConsumerGroup, ConsumerGroupState
from kraft_wire.broker.groups.offsets.table import OffsetTable
from kraft_wire.broker.groups.share import alter_offsets
from kraft_wire.broker.handlers import list_groups, list_transactions
from kraft_wire.broker.share_persister import InitialShareState
from kraft_wire.broker.transactions.listing import TransactionFilter
from kraft_wire.sim.plans.cluster_plan import drawn_cluster_plan
from kraft_wire.sim.plans.group_plan import NEVER_WITH_GROUPS
from kraft_wire.sim.plans.tool_plan import with_tools
from kraft_wire.sim.runs.campaign import drawn
from kraft_wire.sim.runs.run import Result, run_plan

WITH_TRANSACTIONS, WITH_GROUPS, WITH_SHARES = 102, 106, 116
QUESTIONS = {
    "AlterShareGroupOffsets",
    "DeleteGroups",
    "DeleteShareGroupOffsets",
    "DescribeGroups",
    "DescribeShareGroupOffsets",
    "ListGroups",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
}


def run_of(seed: int, events: int = 3_000) -> Result:
    return run_plan(drawn(seed, events=events, nodes=None, brokers=0, focus="tools"))


def test_a_plan_with_tools_is_the_seeds_plan_and_more() -> None:
    for seed in range(40):
        before = drawn_cluster_plan(seed, nodes=None, brokers=None, events=1_000)
        after = with_tools(before)
        assert after.setup.nodes == before.setup.nodes
        kept = [each for each in before.faults if each.kind not in NEVER_WITH_GROUPS]
        assert list(after.faults) == kept
        data = after.setup.data
        assert data.tools in (1, 2, 3)
        assert not data.may_elect_uncleanly
        assert data.transactors or data.consumer_members or data.share_members


def test_tools_find_their_groups_as_they_left_them() -> None:
    operations: Counter[str] = Counter()
    for seed in (WITH_TRANSACTIONS, WITH_GROUPS, WITH_SHARES):
        result = run_of(seed)
        assert result.failure is None, result.failure
        assert result.looked["S76 GroupIsAsLeft"] > 20
        operations += result.operations
        if seed == WITH_TRANSACTIONS:
            assert result.looked["S77 IdsAreShown"] > 20
    asked = {name.split()[1].removesuffix("Request") for name in operations if "tool " in name}
    assert asked == QUESTIONS
    versions = {name for name in operations if name.startswith("tool OffsetFetchRequest")}
    assert len(versions) == 10, "each version"


@pytest.mark.parametrize("seed", [6200004, 6200036, 6200061])
def test_seed_with_tools_that_once_failed_holds_every_invariant(seed: int) -> None:
    """Ids beyond what is committed, share offsets that were not noted, a commit that timed out."""
    result = run_of(seed, 8_000)
    assert result.failure is None, result.failure


def offsets_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OffsetTable, "remove", lambda *_: None)


def share_groups_begin_later(patch: pytest.MonkeyPatch) -> None:
    def later(epoch: int, offset: Any) -> InitialShareState:
        return InitialShareState(epoch, offset + 1)

    patch.setattr(alter_offsets, "InitialShareState", later)


def groups_are_always_stable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "state", ConsumerGroupState.STABLE)


def filters_of_groups_are_ignored(patch: pytest.MonkeyPatch) -> None:
    every = list_groups.list_groups
    patch.setattr(list_groups, "list_groups", lambda shard, states, types: every(shard, (), ()))


def filters_of_ids_are_ignored(patch: pytest.MonkeyPatch) -> None:
    def every(**_: object) -> TransactionFilter:
        return TransactionFilter(
            states=frozenset(),
            producer_ids=frozenset(),
            started_before_ms=None,
            matches=lambda _: True,
        )

    patch.setattr(list_transactions, "TransactionFilter", every)


@pytest.mark.parametrize(
    ("plant", "seed", "found_by"),
    [
        (offsets_stay, WITH_GROUPS, ("S75", "S76")),
        (share_groups_begin_later, WITH_SHARES, ("S76",)),
        (groups_are_always_stable, WITH_GROUPS, ("S76",)),
        (filters_of_groups_are_ignored, WITH_GROUPS, ("S76",)),
        (filters_of_ids_are_ignored, WITH_TRANSACTIONS, ("S77",)),
    ],
)
def test_a_planted_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    seed: int,
    found_by: tuple[str, ...],
) -> None:
    plant(monkeypatch)
    failure = run_of(seed).failure
    assert failure is not None
    assert failure.invariant.startswith(found_by), failure
