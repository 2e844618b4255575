"""S75: what a coordinator holds is what its log says.

A coordinator applies each change that it writes, and its successor reads the records. Both are
parts of the product; if they differ, groups or share states change when their coordinator moves.

Not compared: what no record has, such as joining members, sessions and requests that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from kraft_wire.broker.coordination.log import CoordinatorLog
from kraft_wire.broker.coordination.runtime import CoordinatorRuntime
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.replay import CoordinatorReplay
from kraft_wire.broker.groups.replayed_shard import ReplayedGroups, ReplayedShard
from kraft_wire.broker.share_state.replay import Replay
from kraft_wire.broker.share_state.state_table import StateTable
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.wire.records.memory_records import AnyBatch

__all__ = [
    "CoordinatorReplayJudge",
    "groups_in_log",
    "kept_of_groups",
    "kept_of_share_states",
]

_ID: Final = "S75 StateIsTheLog"
_PIECE_BYTES: Final = 1 << 20
_SETTLED: Final = (GroupState.STABLE, GroupState.EMPTY)
"""In the other states the newest record of a classic group is of a generation before."""
_SETTLED_IN_LOG: Final = (GroupState.STABLE,)
"""The record of an empty group is not written again if its append was refused, as in Kafka."""
_EPOCHS: Final = ("epoch", "metadata_hash", "assignment_epoch", "assignment_timestamp_ms")
_FIELDS: Final = {
    GroupType.CONSUMER: (*_EPOCHS, "members", "targets", "regexes", "static_members"),
    GroupType.SHARE: (*_EPOCHS, "members", "targets", "state_partitions"),
    GroupType.STREAMS: (*_EPOCHS, "members", "targets", "topology", "validated_topology_epoch"),
}

Kept = dict[Any, Any]
"""What records keep, under the name that a violation shows."""


class CoordinatorReplayJudge:
    """Reads the logs of a broker's coordinators again once they have grown."""

    def __init__(self, *, may_refuse: bool = False) -> None:
        """`may_refuse`: whether an ISR may be too small for an append."""
        self._may_refuse = may_refuse
        self._compared: dict[tuple[int, str, int], tuple[object, int]] = {}
        """Shard and log end of the last look, by broker, topic and partition."""

    def after(self, machine: MachineState) -> int:
        """Compare the coordinators of a broker with their logs; return how many were compared."""
        node = machine.node
        if node is None:
            return 0
        count, broker = 0, node.broker
        is_refused = self._may_refuse or node.appends_refused_count > 0
        settled = _SETTLED_IN_LOG if is_refused else _SETTLED
        if broker._groups is not None:
            runtime: Any = broker._groups.runtime
            count += self._judge(machine, runtime, *_group_readers(settled))
        made = vars(broker._share_states) if broker._share_states is not None else {}
        if "coordinator" in made:
            runtime = made["coordinator"].runtime
            count += self._judge(machine, runtime, _held_share_states, _replayed_share_states)
        return count

    def _judge(
        self,
        machine: MachineState,
        runtime: CoordinatorRuntime[Any],
        held: Callable[[Any], Kept],
        replayed: Callable[[Any, Iterator[AnyBatch]], Kept],
    ) -> int:
        count = 0
        for partition, shard in runtime._shards.items():
            name = (machine.id, runtime.topic.name, partition)
            state = (shard, runtime._log.end_offset(partition))
            if self._compared.get(name) == state:
                continue
            batches = _batches(runtime._log, partition)
            if batches is None:
                continue
            self._compared[name] = state
            _compare(machine.id, held(shard), replayed(shard, iter(batches)))
            count += 1
        return count


def _batches(log: CoordinatorLog, partition: int) -> list[AnyBatch] | None:
    """Return all batches of a partition's log; None while it cannot be read."""
    batches: list[AnyBatch] = []
    offset = 0
    while True:
        stretch = log.read(partition, offset, _PIECE_BYTES)
        if stretch is None:
            return None
        batches.extend(stretch.batches)
        if stretch.is_end:
            return batches
        offset = stretch.next_offset


def _compare(node_id: int, held: Kept, replayed: Kept) -> None:
    for name in dict.fromkeys((*held, *replayed)):
        if held.get(name) != replayed.get(name):
            facts = (name, "holds", held.get(name), "its log has", replayed.get(name))
            raise Violation(_ID, node_id, *facts)


# --- groups ------------------------------------------------------------------------------------


def groups_in_log(machine: MachineState) -> tuple[int, ReplayedGroups] | None:
    """Return the log end of a broker's only partition of groups, and what that log has.

    None if the broker does not coordinate it.
    """
    groups = None if machine.node is None else machine.node.broker._groups
    if groups is None or len(groups.runtime._shards) != 1:
        return None
    log, (partition,) = groups.runtime._log, groups.runtime._shards
    batches = _batches(log, partition)
    return None if batches is None else (log.end_offset(partition), _replayed(iter(batches)))


def _group_readers(
    settled: Sequence[GroupState],
) -> tuple[Callable[[Any], Kept], Callable[[Any, Iterator[AnyBatch]], Kept]]:
    """Return what reads a partition of groups, and what reads its log, to be compared."""

    def held(partition: Any) -> Kept:
        return kept_of_groups(partition.shard, partition.shard, settled)

    def replayed(partition: Any, batches: Iterator[AnyBatch]) -> Kept:
        return kept_of_groups(_replayed(batches), partition.shard, settled)

    return held, replayed


def _replayed(batches: Iterator[AnyBatch]) -> ReplayedGroups:
    state = ReplayedGroups()
    replay = CoordinatorReplay(state)
    for batch in batches:
        replay.batch(batch)
    return state


def kept_of_groups(
    state: ReplayedShard,
    coordinator: ReplayedShard,
    settled: Sequence[GroupState] = _SETTLED,
) -> Kept:
    """Return the offsets of a state, and what records have of its groups.

    Classic groups are left out while the coordinator's are in other states than `settled`.
    """
    kept: Kept = {(key, producer_id): found for key, found, producer_id in state.offsets}
    for group in state.groups.values():
        now = coordinator.groups.get(group.group_id)
        if (now is None or now.state in settled) and group.generation_id:
            kept[group.group_id] = _classic(group)
    for other in state.other_groups.values():
        for field in _FIELDS[other.kind]:
            kept[other.group_id, field] = getattr(other, field)
    return kept


def _classic(group: ClassicGroup) -> tuple[object, ...]:
    members = {
        each.member_id: (
            each.group_instance_id,
            each.assignment,
            each.protocols.get(group.protocol_name or ""),
        )
        for each in group.members.values()
    }
    return (group.generation_id, group.protocol_type, group.protocol_name, members)


# --- share states ------------------------------------------------------------------------------


def _held_share_states(shard: Any) -> Kept:
    return kept_of_share_states(shard.table)


def _replayed_share_states(shard: Any, batches: Iterator[AnyBatch]) -> Kept:
    table = StateTable(shard.env.updates_per_snapshot)
    replay = Replay(table)
    for batch in batches:
        replay.batch(batch)
    return kept_of_share_states(table)


def kept_of_share_states(table: StateTable) -> Kept:
    """Return the state of each share partition."""
    return {
        key: replace(entry.state, batches=tuple(entry.state.batches))
        for key, entry in table.entries.items()
    }
