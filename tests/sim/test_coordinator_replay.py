"""The simulator's judge that a coordinator holds what its log says, on real coordinators."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.broker.share_state.state import ShareState
from kraft_wire.broker.share_state.state_table import StateTable
from kraft_wire.model import Uuid
from kraft_wire.sim.judge.coordinator_replay import (
    CoordinatorReplayJudge,
    kept_of_groups,
    kept_of_share_states,
)
from kraft_wire.sim.judge.violation import Violation
from tests.broker.transactional import Transactional, commit_plain

KEY = SharePartitionKey("share", Uuid(b"t" * 16), 0)


@pytest.fixture
def broker() -> Transactional:
    """A committed offset, and one in an open transaction."""
    broker = Transactional()
    commit_plain(broker, 3)
    broker.commit_offset(5)
    broker.answer()
    return broker


def shard_of(broker: Transactional) -> GroupShard:
    (partition,) = broker.broker.groups.runtime._shards.values()
    return partition.shard


def judged(
    broker: Transactional, judge: CoordinatorReplayJudge | None = None, refused: int = 0
) -> int:
    node = SimpleNamespace(broker=broker.broker, appends_refused_count=refused)
    machine: Any = SimpleNamespace(id=1, node=node)
    return (judge or CoordinatorReplayJudge()).after(machine)


def test_coordinator_holds_what_its_log_says(broker: Transactional) -> None:
    assert len(list(shard_of(broker).offsets)) == 2
    assert judged(broker) == 1


def test_log_is_read_again_once_it_has_grown(broker: Transactional) -> None:
    judge = CoordinatorReplayJudge()
    assert [judged(broker, judge) for _ in range(2)] == [1, 0]
    commit_plain(broker, 4)
    assert judged(broker, judge) == 1


def test_node_that_is_down_or_coordinates_nothing_is_left_out() -> None:
    judge = CoordinatorReplayJudge()
    down: Any = SimpleNamespace(id=1, node=None)
    assert judge.after(down) == 0
    idle = SimpleNamespace(_groups=None, _share_states=None)
    node = SimpleNamespace(broker=idle, appends_refused_count=0)
    without: Any = SimpleNamespace(id=1, node=node)
    assert judge.after(without) == 0


def offset_lost(shard: GroupShard) -> None:
    key = next(key for key, _, producer in shard.offsets if producer is None)
    shard.offsets.remove(key)


def offset_of_a_transaction_lost(shard: GroupShard) -> None:
    producer_id = next(producer for _, _, producer in shard.offsets if producer is not None)
    shard.offsets.take_open(producer_id)


def share_group_without_records(shard: GroupShard) -> None:
    shard.other_groups["share"] = ShareGroup("share", shard.env.memory)


def generation_without_record(shard: GroupShard) -> None:
    group = shard.groups["classic"] = ClassicGroup("classic", shard.env.memory, 0)
    group.generation_id = 1


@pytest.mark.parametrize(
    "plant",
    [
        offset_lost,
        offset_of_a_transaction_lost,
        share_group_without_records,
        generation_without_record,
    ],
)
def test_state_that_the_log_does_not_have_is_found(
    broker: Transactional, plant: Callable[[GroupShard], None]
) -> None:
    plant(shard_of(broker))
    with pytest.raises(Violation, match="S75 StateIsTheLog node 1"):
        judged(broker)


@pytest.mark.parametrize(
    "state", [each for each in GroupState if each.name not in ("STABLE", "EMPTY")]
)
def test_group_between_two_generations_is_left_out(
    broker: Transactional, state: GroupState
) -> None:
    shard = shard_of(broker)
    generation_without_record(shard)
    shard.groups["classic"].state = state
    assert judged(broker) == 1
    assert "classic" not in kept_of_groups(shard, shard)


def test_empty_group_whose_record_may_have_been_refused_is_left_out(broker: Transactional) -> None:
    generation_without_record(shard_of(broker))
    assert judged(broker, CoordinatorReplayJudge(may_refuse=True)) == 1
    assert judged(broker, refused=1) == 1


def test_share_state_is_compared_as_a_whole() -> None:
    table = StateTable(lambda: 500)
    state = ShareState(0, 0, 0, 7, 0, (), 1, 1)
    table.apply(KEY, state, 0)
    assert kept_of_share_states(table) == {KEY: state}
