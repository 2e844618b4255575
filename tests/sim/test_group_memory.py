"""The simulator's judge of the memory that a group coordinator counts, on a real coordinator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.model import Uuid
from kraft_wire.sim.judge.group_memory import judge_group_memory
from kraft_wire.sim.judge.violation import Violation
from tests.broker.transactional import Transactional, commit_plain

GROUP = "another"


@pytest.fixture
def broker() -> Transactional:
    """Committed offsets, one of them in an open transaction, and a group of each new kind."""
    broker = Transactional()
    commit_plain(broker, 3)
    broker.commit_offset(5)
    broker.answer()
    shard = shard_of(broker)
    consumers = ConsumerGroup("consumers", shard.env.memory)
    consumers.put_member(ConsumerMember("m", client_id="client", client_host="host"))
    consumers.put_target("m", {Uuid(b"t" * 16): (0, 1)})
    streams = StreamsGroup("streams", shard.env.memory)
    streams.put_target("m", ({"0": (0, 1)}, {"1": (0,)}, {}))
    for group in (consumers, ShareGroup("share", shard.env.memory), streams):
        shard.other_groups[group.group_id] = group
    pending = ClassicGroup(GROUP, shard.env.memory, 0)
    pending.add_pending("given")
    shard.groups[GROUP] = pending
    return broker


def shard_of(broker: Transactional) -> GroupShard:
    (partition,) = broker.broker.groups.runtime._shards.values()
    return partition.shard


def judged(broker: Transactional) -> bool:
    machine: Any = SimpleNamespace(id=1, node=SimpleNamespace(broker=broker.broker))
    return judge_group_memory(machine)


def test_coordinator_counts_what_it_holds(broker: Transactional) -> None:
    assert judged(broker)


def test_broker_without_groups_holds_nothing() -> None:
    broker: Any = SimpleNamespace(broker=SimpleNamespace(_groups=None))
    assert not judged(broker)


@pytest.mark.parametrize("group_id", ["consumers", "share", "streams", GROUP])
def test_group_that_counts_something_else_is_found(broker: Transactional, group_id: str) -> None:
    shard = shard_of(broker)
    group = shard.groups.get(group_id) or shard.other_groups[group_id]
    group._resize(1)
    with pytest.raises(Violation, match=f"S25 BoundedMemory node 1: {group_id} "):
        judged(broker)


@pytest.mark.parametrize("change_bytes", [-1, 1])
def test_offsets_that_are_counted_twice_or_not_are_found(
    broker: Transactional, change_bytes: int
) -> None:
    shard_of(broker).env.memory.add(change_bytes)
    with pytest.raises(Violation, match="groups and offsets"):
        judged(broker)
