"""T13: the memory of a transaction coordinator equals its log.

A coordinator has read the whole log of its election, and counts its own records once they are
committed.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from kraft_wire.broker.partition import Partition
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.replica_watch import ReplicaWatch
from kraft_wire.sim.judge.transactions.id_records import IdFold, IdRecord
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState

__all__ = ["judge_memory", "shard_of"]

_ID: str = "T13 MemoryIsTheLog"


def shard_of(machine: MachineState, number: int) -> Any:
    """Return a coordinator's state of a partition, None if it is not loaded."""
    node = machine.node
    coordinator = None if node is None else node.broker._transactions
    return None if coordinator is None else coordinator.runtime._shards.get(number)


def judge_memory(
    judge: ReplicaJudge, watch: ReplicaWatch, partition: Partition, fold: IdFold
) -> None:
    """Compare the ids of a loaded shard with the fold of its log, which is brought up to date."""
    if not partition.is_leader or watch.truth.leader != watch.machine.id:
        return
    shard = shard_of(watch.machine, partition.partition)
    if shard is None or partition.leader_epoch != watch.truth.leader_epoch:
        return
    batches = watch.log.batches
    count = bisect_right(watch.log.ends, partition.log.high_watermark)
    fold.follow(batches, count)
    judge.looked[_ID] += 1
    found = {
        name: _shown(entry.metadata)
        for name, entry in shard.ids.items()
        if entry.metadata.producer_epoch >= 0
    }
    if found != fold.ids:
        different = sorted(
            name for name in {**found, **fold.ids} if found.get(name) != fold.ids.get(name)
        )
        name = different[0]
        facts = (name, found.get(name), "in memory, in the log", fold.ids.get(name))
        raise Violation(_ID, watch.machine.id, *facts)


def _shown(metadata: Any) -> IdRecord:
    partitions = frozenset((each.topic, each.partition) for each in metadata.partitions)
    return IdRecord(
        metadata.state.log_id,
        (metadata.producer_id, metadata.producer_epoch),
        partitions,
        metadata.next_producer_id,
        metadata.client_version,
        metadata.timeout_ms,
        metadata.start_ms,
    )
