"""S25: the memory that a group coordinator counts is that of what it holds.

Each kind of group adds and takes away with every change; here everything is counted again, so that
a change that was forgotten, or counted twice, is seen before it adds up.
"""

from __future__ import annotations

from typing import Any

from kraft_wire.broker.groups.object_sizes import (
    GROUP_BYTES,
    MEMBER_BYTES,
    OFFSET_BYTES,
    PARTITION_BYTES,
    PENDING_MEMBER_BYTES,
)
from kraft_wire.broker.groups.streams.group_topology import topology_size_bytes
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState

__all__ = ["judge_group_memory"]

_ID = "S25 BoundedMemory"


def judge_group_memory(machine: MachineState) -> bool:
    """Compare what a broker counts with what it holds; return whether there is anything."""
    node = machine.node
    coordinator = None if node is None else node.broker._groups
    if coordinator is None:
        return False
    runtime = coordinator.runtime
    loading: list[Any] = [each.shard for each in runtime._loading.values()]
    served: list[Any] = [*runtime._shards.values()]
    shards = [each.shard for each in (*served, *loading)]
    held_bytes = 0
    for shard in shards:
        for group in (*shard.groups.values(), *shard.other_groups.values()):
            group_bytes = _group_bytes(group)
            if group_bytes != group.size_bytes:
                facts = (group_bytes, "bytes, counted", group.size_bytes)
                raise Violation(_ID, machine.id, group.group_id, *facts)
            held_bytes += group_bytes
        held_bytes += _offsets_bytes(shard)
    for shard in shards[:1]:
        if shard.env.memory.total_bytes != held_bytes:
            facts = (held_bytes, "bytes, counted", shard.env.memory.total_bytes)
            raise Violation(_ID, machine.id, "groups and offsets", *facts)
    return held_bytes > 0


def _group_bytes(group: Any) -> int:
    """Return the size of one group of any kind."""
    found = GROUP_BYTES + len(group.group_id) + sum(map(_member_bytes, group.members.values()))
    if hasattr(group, "pending_members"):
        found += sum(PENDING_MEMBER_BYTES + len(each) for each in group.pending_members)
        awaited = {} if group.awaited is None else group.awaited.by_member
        return found + sum(map(len, awaited.values()))
    found += sum(map(_target_bytes, group.targets.values()))
    if hasattr(group, "regexes"):
        found += sum(each.size_bytes for each in group.regexes.values())
    if hasattr(group, "state_partitions") and group.state_partitions is not None:
        found += group.state_partitions.size_bytes
    if hasattr(group, "topology"):
        found += topology_size_bytes(group.topology)
    return found


def _member_bytes(member: Any) -> int:
    """Return the size of a member; one of a classic group has its protocols."""
    if not hasattr(member, "protocols"):
        size_bytes: int = member.size_bytes
        return size_bytes
    named = sum(len(name) + len(metadata) for name, metadata in member.protocols.items())
    return MEMBER_BYTES + named + len(member.assignment)


def _target_bytes(target: Any) -> int:
    """Return the size of a target: partitions by topic, or three kinds of tasks."""
    maps = target if isinstance(target, tuple) else (target,)
    return PARTITION_BYTES * sum(len(each) for topics in maps for each in topics.values())


def _offsets_bytes(shard: Any) -> int:
    """Return the size of committed offsets, those of transactions, and those that they replace."""
    found = sum(OFFSET_BYTES + len(committed.metadata) for _, committed, _ in shard.offsets)
    for replaced in shard.uncommitted._before.values():
        found += sum(OFFSET_BYTES + len(each.metadata if each else "") for each in replaced)
    return found
