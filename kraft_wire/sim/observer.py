"""Receives the events of machines, for the judge, the trace, and the counts.

Each event of a node is judged and traced after its end. With a kept trace, changes of state and the
nodes' own log lines become part of the story.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.model import TopicPartition
from kraft_wire.node.event_log import Line
from kraft_wire.node.outputs import Rejection
from kraft_wire.sim.judge.data_judge import DataJudge
from kraft_wire.sim.judge.judge import Judge
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.trace import Trace
from kraft_wire.sim.traffic import Traffic

__all__ = ["Observer"]

_COPY_GIVEN_UP: Final = ("replica_copy_dropped", "replica_copy_set_aside")


class Observer:
    """Observes machines for the judge and the trace."""

    def __init__(
        self,
        stage: Stage,
        judge: Judge,
        data_judge: DataJudge | None,
        trace: Trace,
        traffic: Traffic,
    ) -> None:
        """`data_judge` is there where the world has brokers."""
        self._stage = stage
        self._judge = judge
        self._data_judge = data_judge
        self._trace = trace
        self._traffic = traffic

    def after_turn(self, machine: MachineState, event: str) -> None:
        """An event is over: have it judged and traced."""
        stage = self._stage
        stage.events += 1
        watch = self._judge.watches[machine.id]
        before = (watch.role, watch.epoch, watch.leader_id, watch.high_watermark)
        is_useful = self._judge.after(machine)
        if machine.is_broker_only and self._data_judge is not None:
            is_useful |= self._data_judge.after(machine, event)
        stage.useful_events += is_useful
        self._trace.turn(stage.scheduler.now_us, watch, event)
        if self._trace.keeps:
            now = (watch.role, watch.epoch, watch.leader_id, watch.high_watermark)
            if now != before:
                self._keep_state(machine)

    def _keep_state(self, machine: MachineState) -> None:
        watch = self._judge.watches[machine.id]
        self._trace.keep(
            "state",
            self._stage.now_us,
            node=machine.id,
            role=watch.role_name if machine.node is not None else "Down",
            epoch=watch.epoch,
            leader=watch.leader_id,
            high_watermark=watch.high_watermark,
            log_start=watch.log.start_offset,
            log_end=watch.log.end_offset,
            durable_end=watch.log.durable_end,
        )

    # -- lives -----------------------------------------------------------------------------------

    def started(self, machine: MachineState) -> None:
        """A process was opened."""
        self._traffic.forget(machine)
        self._judge.started(machine)
        self._judge.after(machine)
        if machine.is_broker_only and self._data_judge is not None:
            self._data_judge.after(machine, "start")
        self._trace.turn(self._stage.now_us, self._judge.watches[machine.id], "start")
        if self._trace.keeps:
            self._keep_state(machine)

    def about_to_die(self, machine: MachineState) -> None:
        """A process is about to end."""
        self._judge.about_to_die(machine)
        if self._data_judge is None or not machine.is_broker_only:
            return
        if machine.is_between_outputs:
            self._data_judge.after(machine, "down")
        else:
            self._data_judge.about_to_die(machine)

    def stopped(self, machine: MachineState) -> None:
        """A process has ended."""
        watch = self._judge.watches[machine.id]
        if self._data_judge is not None:
            self._data_judge.stopped(machine)
        self._trace.turn(self._stage.now_us, watch, "down")
        if self._trace.keeps:
            self._keep_state(machine)

    def wiped(self, machine: MachineState, directory_id: bytes) -> None:
        """A disk was replaced."""
        self._judge.wiped(machine, directory_id)
        if self._data_judge is not None:
            self._data_judge.wiped(machine)

    # -- words -----------------------------------------------------------------------------------

    def refused_start(self, machine: MachineState, reason: str) -> None:
        """A node refused to start, by name; an operator repairs."""
        self._stage.marks["start refused and repaired"] += 1
        self.note(machine, f"refuses to start: {reason}")

    def repairs(self, machine: MachineState, partition: TopicPartition) -> None:
        """An operator stops a node, to repair the log of a replica that it refuses."""
        self._stage.marks["replica refused and repaired"] += 1
        self.note(machine, f"is stopped to repair {partition}")

    def reported(self, machine: MachineState, name: str, fields: dict[str, object]) -> None:
        """A node wrote a log line."""
        self._stage.marks[f"log {name}"] += 1
        if name in _COPY_GIVEN_UP and self._data_judge is not None:
            self._data_judge.copy_given_up(machine)
        if self._trace.keeps:
            text = " ".join(f"{key}={_shown(value)}" for key, value in fields.items())
            self.note(machine, f"{name} {text}")

    def closed_by_node(self, machine: MachineState, rejection: Rejection | None) -> None:
        """A node closes a connection that was opened to it."""
        if rejection is not None:
            self._stage.marks[f"rejected {rejection.reason}"] += 1
            self.note(machine, f"closes a connection: {rejection}")

    def note(self, machine: MachineState | None, text: str) -> None:
        """Write a line of the story."""
        if self._trace.keeps:
            node_id = machine.id if machine is not None else 0
            self._trace.keep("note", self._stage.now_us, node=node_id, text=text)


def _shown(value: object) -> object:
    return value.text if isinstance(value, Line) else value
