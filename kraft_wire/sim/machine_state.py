"""The visible state of one machine of the simulated cluster: its disk, clocks, process and peers.

Judges and clients read it; `machine` changes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from kraft_wire.node.node import Node
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.network import SimConnection
from kraft_wire.sim.scheduler import Clock, Scheduler, SeededRandomSource
from kraft_wire.sim.setup import Setup, directory_id, host_of

__all__ = ["DiskBehavior", "MachineState", "newest_leader", "running"]


@dataclass(slots=True)
class DiskBehavior:
    """How a machine's disk behaves."""

    flush_us: int = 300
    ordered: bool = True
    """Whether writes reach the platter in their order, so that a crash leaves a prefix of them."""


class MachineState:
    """The present state of a machine."""

    def __init__(self, scheduler: Scheduler, setup: Setup, node_id: int) -> None:
        self.id = node_id
        self.setup = setup
        self.clock = Clock()
        self.disk = DiskBehavior()
        self.generation = 0
        """How often its disk was replaced."""
        self.life = 0
        """How often its process was started."""
        self.fs = SimFileSystem()
        self.node: Node | None = None
        self.is_paused = False
        self.is_stopping = False
        self.losses = 0
        self.serves_clients = node_id not in setup.brokers
        """Whether clients may connect; those of a controller may do so early."""
        self.is_broker_only = node_id in setup.brokers
        self.random_source = SeededRandomSource()
        self.leaning = ""
        """Which way its chance leans: see `SeededRandomSource`."""
        self.host = host_of(node_id)
        """The name that others reach it by; an operator may change it while it is down."""
        self.links: dict[int, SimConnection] = {}
        """Connections that the node has opened and not closed, by link."""
        self.served: dict[int, SimConnection] = {}
        """Connections that others opened to it, by number."""
        self.disturbed_us = 0
        """When it was stopped and resumed, or its clock interfered with, last."""
        self.leads_since_us = 0
        """When its role changed last."""
        self.heard_us = 0
        """When a hostile client's request came last; pauses and changes of the clock reset it."""
        self.heard: dict[int, int] = {}
        """When the last request of each other node came."""
        self.is_between_outputs = False
        """Whether it carries out the outputs of a call, which itself is over."""
        self._scheduler = scheduler

    @property
    def is_up(self) -> bool:
        """Whether a process runs."""
        return self.node is not None

    @property
    def directory_id(self) -> bytes:
        """The id of the directory that it has now."""
        return directory_id(self.id, self.generation)

    @property
    def may_lose_power(self) -> bool:
        """Whether acknowledged data survives a loss of power: not if a broker does not flush."""
        return not self.is_broker_only or self.setup.data.flushes

    @property
    def now_ms(self) -> int:
        """Its monotonic time."""
        return self.clock.now_ms(self._scheduler.now_us)

    @property
    def wall_ms(self) -> int:
        """Its wall-clock time."""
        return self.clock.wall_ms(self._scheduler.now_us)

    @property
    def quorum(self) -> Quorum:
        """The state of the running node's replica."""
        assert self.node is not None, self.id
        return self.node.raft.replica.quorum


AnyMachine = TypeVar("AnyMachine", bound=MachineState)


def running(machines: Iterable[AnyMachine]) -> list[AnyMachine]:
    """Return the machines whose process runs."""
    return [machine for machine in machines if machine.node is not None]


def newest_leader(machines: Iterable[AnyMachine]) -> AnyMachine | None:
    """Return the running leader of the highest epoch."""
    leaders = [each for each in running(machines) if isinstance(each.quorum.role, Leader)]
    return max(leaders, key=lambda machine: machine.quorum.epoch, default=None)
