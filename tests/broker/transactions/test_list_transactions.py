"""ListTransactions: filters that must all hold."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kraft_wire.broker.transactions.transactional_id import TransactionalId
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.coordinating import Coordinating, Markers


@pytest.fixture
def listed(node: Coordinating, markers: Markers) -> Coordinating:
    """One id in each of four states; the oldest transaction began 2 seconds ago."""
    for name in ("empty", "ongoing", "committed", "aborted"):
        producer = node.producer(name)
        producer.init()
        if name != "empty":
            producer.add(0)
            node.advance(500)
        if name in ("committed", "aborted"):
            producer.end(commit=name == "committed")
    node.advance(500)
    return node


def names(node: Coordinating, version: int = 2, **filters: Any) -> list[str]:
    response = node.listed(version, **filters)
    assert response.error_code == E.NONE
    return sorted(each.transactional_id for each in response.transaction_states)


ALL = ["aborted", "committed", "empty", "ongoing"]


@pytest.mark.parametrize("version", range(3))
def test_everything_is_listed_without_filters(listed: Coordinating, version: int) -> None:
    response = listed.listed(version)
    states = {each.transactional_id: each.transaction_state for each in response.transaction_states}
    assert states == {
        "empty": "Empty",
        "ongoing": "Ongoing",
        "committed": "CompleteCommit",
        "aborted": "CompleteAbort",
    }
    for each in response.transaction_states:
        assert each.producer_id == listed.entry(each.transactional_id).metadata.producer_id


def test_states_are_named_exactly_and_unknown_ones_are_returned(listed: Coordinating) -> None:
    wanted = ["Ongoing", "Empty", "ongoing", "Nonsense", "Nonsense"]
    response = listed.listed(state_filters=wanted)
    assert response.unknown_state_filters == ["ongoing", "Nonsense"]
    assert names(listed, state_filters=wanted) == ["empty", "ongoing"]
    assert names(listed, state_filters=["Nonsense"]) == []
    assert listed.listed(state_filters=["PrepareEpochFence", "Dead"]).unknown_state_filters == []


def test_filters_must_all_hold(listed: Coordinating) -> None:
    ongoing = listed.entry("ongoing").metadata.producer_id
    assert names(listed, producer_id_filters=[ongoing]) == ["ongoing"]
    assert names(listed, producer_id_filters=[ongoing], state_filters=["Empty"]) == []


def test_durations_are_counted_from_the_start_of_the_transaction(listed: Coordinating) -> None:
    """An id that is Empty has no start, and passes any duration up to now."""
    assert names(listed, 1, duration_filter=-1) == ALL
    assert names(listed, 1, duration_filter=0) == ALL
    assert names(listed, 1, duration_filter=1_499) == ["committed", "empty", "ongoing"]
    assert names(listed, 1, duration_filter=1_999) == ["empty", "ongoing"]
    assert names(listed, 1, duration_filter=2_000) == ["empty"]
    assert names(listed, 1, duration_filter=listed.wall_ms + 1) == []


def test_a_transaction_that_began_this_millisecond_lasts_no_longer_than_zero(
    listed: Coordinating,
) -> None:
    """As `TransactionStateManager.listTransactionStates`: longer than the filter, not as long."""
    fresh = listed.producer("fresh")
    fresh.init()
    fresh.add(0)
    assert names(listed, 1, duration_filter=0) == ALL
    assert names(listed, 1, duration_filter=-1) == sorted([*ALL, "fresh"])
    listed.advance(1)
    assert names(listed, 1, duration_filter=1) == ALL
    assert names(listed, 1, duration_filter=0) == sorted([*ALL, "fresh"])


def test_a_pattern_matches_whole_ids(listed: Coordinating) -> None:
    assert names(listed, transactional_id_pattern="") == ALL
    assert names(listed, transactional_id_pattern="ong") == []
    assert names(listed, transactional_id_pattern="ong.*|a[a-b]orted") == ["aborted", "ongoing"]
    response = listed.listed(transactional_id_pattern="(")
    assert response.error_code == E.INVALID_REGULAR_EXPRESSION
    assert response.transaction_states == []


def test_a_pattern_that_would_hold_the_node_is_refused(listed: Coordinating) -> None:
    """Whatever the ids are, also those that would match before the work is too much."""
    source = random.Random(66)
    entry = listed.entry("empty")
    shard = listed.node.broker.transactions.shard_of("empty")
    assert not isinstance(shard, E)
    for _ in range(5_000):
        name = "".join(source.choices("abcde-7", k=40))
        shard.ids[name] = TransactionalId(name, entry.metadata)
    response = listed.listed(transactional_id_pattern=".*[ab].{15}")
    assert (response.error_code, response.transaction_states) == (E.INVALID_REGULAR_EXPRESSION, [])
    assert len(names(listed, transactional_id_pattern="[a-e7-]{1,1000}")) == 5_000


def test_while_a_partition_is_loaded_nothing_is_listed_or_counted(
    listed: Coordinating, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`TransactionStateManager.listTransactionStates`: before it reads the pattern."""
    coordinator = listed.node.broker.transactions
    assert sum(coordinator.ids_by_state().values()) == len(ALL)
    loading = E.COORDINATOR_LOAD_IN_PROGRESS
    monkeypatch.setattr(coordinator.runtime, "shards", lambda: loading)
    for filters in ({}, {"transactional_id_pattern": "("}):
        response = listed.listed(2, **filters)
        assert (response.error_code, response.transaction_states) == (loading, [])
    assert coordinator.ids_by_state() == {}
