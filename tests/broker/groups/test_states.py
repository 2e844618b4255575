"""The state table: complete, and the same as the state diagram of Kafka's classic group."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.classic.group import AwaitedAssignments, ClassicGroup, set_awaited
from kraft_wire.broker.groups.classic.states import (
    CAN_REBALANCE,
    HEARTBEAT_ANSWERS,
    TRANSITIONS,
    GroupEvent,
    GroupState,
    next_state,
)
from kraft_wire.broker.groups.shard import end_classic_group

PREVIOUS_STATES = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {
        GroupState.STABLE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
    },
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.DEAD: {
        GroupState.STABLE,
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
    },
}
"""The valid previous states of each state, as ClassicGroupState of 4.3.1 has them."""


def test_transition_table_has_exactly_the_edges_of_kafka_s_state_diagram() -> None:
    edges = {
        (state, following) for state, events in TRANSITIONS.items() for following in events.values()
    }
    assert edges == {
        (previous, state) for state, many in PREVIOUS_STATES.items() for previous in many
    }


def test_every_state_has_a_row_in_every_table() -> None:
    assert list(TRANSITIONS) == list(GroupState)
    assert list(HEARTBEAT_ANSWERS) == list(GroupState)


def test_a_rebalance_can_begin_in_every_state_but_preparing_and_dead() -> None:
    assert set(CAN_REBALANCE) == set(GroupState) - {
        GroupState.PREPARING_REBALANCE,
        GroupState.DEAD,
    }


@pytest.mark.parametrize("event", list(GroupEvent))
def test_a_dead_group_takes_no_event(event: GroupEvent) -> None:
    with pytest.raises(AssertionError):
        next_state(GroupState.DEAD, event)


def test_classic_group_that_another_kind_replaces_is_dead_and_takes_no_memory() -> None:
    memory, ended = MemoryUse(lambda: 1 << 20), []
    group = ClassicGroup("g", memory, 5)
    set_awaited(group, AwaitedAssignments(7, {"m": b"assignment"}))
    timers = SimpleNamespace(cancel_all_of=ended.append)
    shard = cast(Any, SimpleNamespace(groups={"g": group}, timers=timers))
    end_classic_group(shard, group, ClockReading(1, 9))
    assert (shard.groups, ended, memory.total_bytes) == ({}, ["g"], 0)
    assert (group.state, group.state_timestamp_ms) == (GroupState.DEAD, 9)
    assert group.awaited is None
