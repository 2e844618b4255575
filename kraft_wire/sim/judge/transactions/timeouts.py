"""T17: an unhindered coordinator aborts a transaction soon after its timeout.

By its own wall clock, from the start time in the record. A coordinator with too few replicas, a
full disk, or a change in progress is not judged meanwhile.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.broker.metadata.metadata_cache import TRANSACTION_TOPIC
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.transactions.id_records import ONGOING, IdRecord
from kraft_wire.sim.judge.transactions.id_truth import IdTruth
from kraft_wire.sim.judge.transactions.memory import shard_of
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState

__all__ = ["TimeoutWatch"]

_ID: Final = "T17 NothingStaysOpen"
_BOUND_MS: Final = 4_000
"""Several times the interval in which a coordinator looks."""


class TimeoutWatch:
    """Remembers since when a transaction is overdue, and its coordinator able to abort it."""

    def __init__(self, judge: ReplicaJudge, ids: IdTruth) -> None:
        self._judge = judge
        self._ids = ids
        self._since: dict[str, tuple[tuple[int, int, IdRecord], int]] = {}

    def after(self, machine: MachineState) -> None:
        """A timer of a broker has fired."""
        for truth in self._judge.truth.of_topic(TRANSACTION_TOPIC):
            if truth.leader == machine.id and self._judge.leads(machine.id, truth):
                for name, record in self._ids.ids.items():
                    if self._ids.places[name] == truth.number and record.state == ONGOING:
                        self._look_at(machine, truth, name, record)

    def _look_at(
        self, machine: MachineState, truth: PartitionTruth, name: str, record: IdRecord
    ) -> None:
        is_overdue = machine.wall_ms > record.start_ms + record.timeout_ms
        if not is_overdue or self._is_hindered(machine, truth, name):
            self._since.pop(name, None)
            return
        self._judge.looked[_ID] += 1
        key, now_us = (machine.life, truth.leader_epoch, record), self._judge.stage.now_us
        known, since_us = self._since.get(name, (None, now_us))
        if known != key:
            self._since[name] = (key, now_us)
            return
        bound_us = _BOUND_MS * 1_000_000 // machine.clock.rate_permille
        late_us = now_us - max(since_us, machine.disturbed_us)
        if late_us > bound_us + self._judge.stage.late_us_max:
            raise Violation(_ID, machine.id, name, record, "is overdue for", late_us)

    def _is_hindered(self, machine: MachineState, truth: PartitionTruth, name: str) -> bool:
        """Return whether an abort is in progress, or cannot be written."""
        shard = shard_of(machine, truth.number)
        entry = None if shard is None else shard.ids.get(name)
        has_room = machine.fs.capacity_bytes is None and machine.fs.fault is None
        is_whole = len(truth.isr) >= self._judge.stage.setup.data.min_isr
        return entry is None or entry.pending is not None or not (has_room and is_whole)
