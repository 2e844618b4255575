"""Judges when a leader proposes a smaller ISR, from the fetches that reach it.

S60 StaleReplicaLeaves: a leader does not keep a replica in the ISR that has not fetched for much
longer than `replica.lag.time.max.ms`, and lacks records. A proposal that waits for the controller
is enough.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.broker.partition import Partition
from kraft_wire.model import Uuid
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState

__all__ = ["IsrWatch"]

_LAGS: Final = 3
"""A leader checks its followers every half of the lag."""
_SLACK_US: Final = 500_000
_Since = tuple[int, Uuid, int, tuple[int, ...], bool]
"""Life, topic, leader epoch, ISR, and whether no proposal is in progress.

A topic that is deleted and created again has the name, the epoch and maybe the ISR of the former.
"""


class IsrWatch:
    """Remembers since when each leader has the ISR that it has."""

    def __init__(self, judge: ReplicaJudge) -> None:
        self._judge = judge
        self._since: dict[tuple[int, str, int], tuple[_Since, int]] = {}
        self._whole: dict[tuple[int, str, int, int], int] = {}
        """Leader, partition and member: when the member had the whole log, by its fetches."""

    def after(self, machine: MachineState) -> None:
        """A timer of a broker has fired: check the partitions that it leads."""
        node = machine.node
        if node is None or machine.is_paused:
            return
        for partition in node.broker.partitions.values():
            if partition.leadership is not None and partition.is_leader and not partition.offline:
                self._look_at(machine, partition)

    def _look_at(self, machine: MachineState, partition: Partition) -> None:
        leadership, now_us = partition.leadership, self._judge.stage.now_us
        assert leadership is not None, partition.topic_partition
        isr, is_settled = leadership.isr, leadership.change is None
        state = (machine.life, partition.topic_id, partition.leader_epoch, isr, is_settled)
        key = (machine.id, partition.topic, partition.partition)
        known, since_us = self._since.get(key, (None, now_us))
        if known != state:
            since_us = now_us
            self._since[key] = (state, since_us)
        if not is_settled or machine.id not in isr:
            return
        self._judge.looked["S60 StaleReplicaLeaves"] += 1
        lag_us = self._judge.stage.setup.data.lag_ms * 1_000_000 // machine.clock.rate_permille
        bound_us = _LAGS * lag_us + _SLACK_US + self._judge.stage.late_us_max
        end = partition.log.log_end_offset
        for member in isr:
            follower = leadership.followers.get(member)
            if follower is not None and follower.log_end_offset == end:
                self._whole[(*key, member)] = now_us
            whole_us = self._whole.get((*key, member), 0)
            heard_us = max(since_us, whole_us, machine.heard.get(member, 0), machine.disturbed_us)
            if member != machine.id and now_us - heard_us > bound_us:
                facts = (partition.topic, partition.partition, "ISR", isr, "has", member)
                late_us = now_us - heard_us
                raise Violation("S60 StaleReplicaLeaves", machine.id, *facts, "silent for", late_us)
