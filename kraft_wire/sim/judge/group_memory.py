"""S25: the memory that a group coordinator counts is that of what it holds.

Each kind of group adds and takes away with every change; here everything is counted again, so that
a change that was forgotten, or counted twice, is seen before it adds up.
"""

from __future__ import annotations

from typing import Any, Final

from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.member import Member
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.object_sizes import (
    GROUP_BYTES,
    MEMBER_BYTES,
    OFFSET_BYTES,
    PARTITION_BYTES,
    PENDING_MEMBER_BYTES,
)
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.group_topology import topology_size_bytes
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState

__all__ = ["group_bytes", "judge_group_memory", "offsets_bytes"]

_ID: Final = "S25 BoundedMemory"


def judge_group_memory(machine: MachineState) -> bool:
    """Compare what a broker counts with what it holds; return whether there is anything."""
    coordinator = None if machine.node is None else machine.node.broker._groups
    if coordinator is None:
        return False
    runtime = coordinator.runtime
    loading = [each.shard for each in runtime._loading.values()]
    held_bytes = 0
    for shard in (each.shard for each in (*runtime._shards.values(), *loading)):
        groups: list[Any] = [*shard.groups.values(), *shard.other_groups.values()]
        for group in groups:
            found_bytes = group_bytes(group)
            _compare(machine, group.group_id, found_bytes, group.size_bytes)
            held_bytes += found_bytes
        held_bytes += offsets_bytes(shard)
    _compare(machine, "groups and offsets", held_bytes, coordinator.env.memory.total_bytes)
    return held_bytes > 0


def _compare(machine: MachineState, what: str, found_bytes: int, counted_bytes: int) -> None:
    if found_bytes != counted_bytes:
        facts = (what, found_bytes, "bytes, counted", counted_bytes)
        raise Violation(_ID, machine.id, *facts)


def group_bytes(group: Any) -> int:
    """Return the memory of a group of any kind: its members, its targets, and what else it has."""
    found = GROUP_BYTES + len(group.group_id) + sum(map(_member_bytes, group.members.values()))
    if isinstance(group, ClassicGroup):
        found += sum(PENDING_MEMBER_BYTES + len(each) for each in group.pending_members)
        awaited = {} if group.awaited is None else group.awaited.by_member
        return found + sum(map(len, awaited.values()))
    found += sum(map(_target_bytes, group.targets.values()))
    if isinstance(group, ConsumerGroup):
        return found + sum(each.size_bytes for each in group.regexes.values())
    if isinstance(group, StreamsGroup):
        return found + topology_size_bytes(group.topology)
    assert isinstance(group, ShareGroup), group
    return found + (0 if group.state_partitions is None else group.state_partitions.size_bytes)


def _member_bytes(member: Any) -> int:
    if isinstance(member, Member):
        named = sum(len(name) + len(metadata) for name, metadata in member.protocols.items())
        return MEMBER_BYTES + named + len(member.assignment)
    size_bytes: int = member.size_bytes
    return size_bytes


def _target_bytes(target: Any) -> int:
    """Return the size of a target: partitions by topic, or three kinds of tasks."""
    maps = target if isinstance(target, tuple) else (target,)
    return PARTITION_BYTES * sum(len(each) for topics in maps for each in topics.values())


def offsets_bytes(shard: GroupShard) -> int:
    """Return the size of committed offsets, those of transactions, and those that they replace."""
    found = sum(OFFSET_BYTES + len(committed.metadata) for _, committed, _ in shard.offsets)
    for replaced in shard.uncommitted._before.values():
        found += sum(OFFSET_BYTES + len(each.metadata if each else "") for each in replaced)
    return found
