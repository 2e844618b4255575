"""The shared parts of a world: time, network, addresses, and the visible machines.

Judges, clients and machines get the stage, not the world: none of them knows the others. The
`world` is a stage with everything on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kraft_wire.sim.addresses import Addresses
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.sim.network import Network
from kraft_wire.sim.scheduler import Scheduler, stream
from kraft_wire.sim.setup import Setup

__all__ = ["Stage"]


class Stage:
    """The ground of one run."""

    machines: Mapping[int, MachineState]

    def __init__(self, seed: int, setup: Setup, machines: Mapping[int, MachineState]) -> None:
        """`machines` may be filled later: they need a stage to be on."""
        self.seed = seed
        self.setup = setup
        self.machines = machines
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler, stream(seed, "network"))
        self.addresses = Addresses(setup, self.network, machines)
        self.events = 0
        self.useful_events = 0
        """Those after which a disk, a role, a leader or a high watermark was another one."""
        self.late_us_max = 0
        self.is_garbled = False
        """Whether a frame with flipped bits was sent: then a leader id may be any number."""
        self.marks: Counter[str] = Counter()
        """Counts of reached states: elections, truncations, installations, and so on."""
        self._late = stream(seed, "late")

    @property
    def now_us(self) -> int:
        """True time."""
        return self.scheduler.now_us

    def late_us(self) -> int:
        """Draw by how much a timer is late."""
        return int(self._late.random() * self.late_us_max) if self.late_us_max else 0
