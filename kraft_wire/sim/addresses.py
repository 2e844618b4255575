"""The addresses of nodes, and the configurations that name their present hosts.

One node of a run may move to another host, as often as its plan has it (`relocation`).
"""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.node.config.node_config import NodeConfig, load_config, settings_of_file
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.sim.network import End, Network
from kraft_wire.sim.setup import BROKER_PORT, CONTROLLER_PORT, Setup, host_of, node_config

__all__ = ["Addresses"]


class Addresses:
    """The hosts of one world."""

    def __init__(
        self, setup: Setup, network: Network, machines: Mapping[int, MachineState]
    ) -> None:
        self._setup = setup
        self._network = network
        self._machines = machines
        self.moved_id: int | None = None
        """The node that moves in this run."""
        self.moves = 0
        self._known: dict[int, int] = {}
        """By node: how many moves its process knew when it started."""

    def config_of(self, node_id: int) -> NodeConfig:
        """Return the configuration that a process begins with now."""
        self._known[node_id] = self.moves
        setup = self._setup
        if self.moved_id is None:
            return node_config(setup, node_id)
        # A host name ends at its colon, so "node1:" is not part of "node11:".
        old, new = host_of(self.moved_id), self._machines[self.moved_id].host
        text = setup.properties(node_id).replace(f"{old}:", f"{new}:")
        return load_config(settings_of_file(text, "server.properties"), {})

    def listen(self, machine: MachineState, end: End) -> None:
        """Make a machine reachable under its host."""
        listening = self._network.listening
        if not machine.is_broker_only:
            listening[machine.host, CONTROLLER_PORT] = end
        if machine.is_broker_only or machine.id in self._setup.combined:
            listening[machine.host, BROKER_PORT] = end

    def move(self, machine: MachineState, end: End) -> None:
        """Let a machine that is down be reached under another host from here on."""
        assert machine.node is None, machine.id
        assert self.moved_id in (None, machine.id), "one node of a run moves"
        self.moved_id = machine.id
        self.moves += 1
        for port in (CONTROLLER_PORT, BROKER_PORT):
            self._network.listening.pop((machine.host, port), None)
        machine.host = f"{host_of(machine.id)}-{self.moves}"
        self.listen(machine, end)

    def is_outdated(self, node_id: int) -> bool:
        """Return whether a node's process has a configured host that was left since its start."""
        return self._known[node_id] < self.moves

    def is_stale(self, node_id: int, host: str) -> bool:
        """Return whether a voter set has a host that the node has left."""
        return node_id == self.moved_id and host != self._machines[node_id].host
