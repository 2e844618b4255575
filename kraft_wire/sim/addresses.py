"""Where controllers listen, and an operator who moves one of them to another host (KIP-853).

One node of a run may move, as often as its faults want: a quorum in which several voters are
unknown to the others cannot elect, in Kafka either. Every process starts with a configuration that
names the hosts of that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kraft_wire.node.config import NodeConfig, load_config, settings_of_file
from kraft_wire.sim.log_watch import newest_voters
from kraft_wire.sim.setup import LISTENER, host_of, node_config

if TYPE_CHECKING:
    from kraft_wire.sim.machine import Machine
    from kraft_wire.sim.world import World

__all__ = ["Addresses"]

_VOTERS_LEAST: Final = 3
"""With fewer voters the others cannot elect without the one that moves."""


class Addresses:
    """The hosts of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.moved_id: int | None = None
        """The node that moves in this run."""
        self.moves = 0
        self._known: dict[int, int] = {}
        """By node: how many moves its process knew when it started."""

    def config_of(self, node_id: int) -> NodeConfig:
        """Return the configuration that a process begins with now."""
        self._known[node_id] = self.moves
        setup = self._world.setup
        if self.moved_id is None:
            return node_config(setup, node_id)
        # A host name ends at its colon, so "node1:" is not part of "node11:".
        old, new = host_of(self.moved_id), self._world.machines[self.moved_id].host
        text = setup.properties(node_id).replace(f"{old}:", f"{new}:")
        return load_config(settings_of_file(text, "server.properties"), {})

    def move(self, machine: Machine) -> bool:
        """Have a controller restart on another host; False where the others need its address."""
        leader = self._world.leader()
        if leader is None or self.moved_id not in (None, machine.id):
            return False
        if len(leader.quorum.voters.latest) < _VOTERS_LEAST or machine.is_broker_only:
            return False
        self.moved_id = machine.id
        self.moves += 1
        if machine.node is not None:
            machine.kill()
        machine.move(f"{host_of(machine.id)}-{self.moves}")
        return True

    def restart_ignorant(self) -> None:
        """Restart every process whose bootstrap servers name the host that was left."""
        for machine in self._world.running():
            if self._known[machine.id] < self.moves:
                machine.kill()
                machine.start_if_down()

    def is_stale(self, node_id: int, host: str) -> bool:
        """Tell whether a voter set names a host that the node has left."""
        return node_id == self.moved_id and host != self._world.machines[node_id].host

    def why_unknown(self) -> str | None:
        """Return which voter the leader's log names wrongly, None where all are right."""
        leader = self._world.leader()
        if self.moved_id is None or leader is None:
            return None
        found = newest_voters(self._world.judge.watches[leader.id].log)
        for voter in found[0].voters if found is not None else ():
            machine = self._world.machines[voter.voter_id]
            hosts = {each.name: each.host for each in voter.endpoints}
            is_same = voter.voter_directory_id == machine.directory_id
            if is_same and hosts.get(LISTENER) != machine.host:
                return f"{voter.voter_id} is on {machine.host}, its voters' record says {hosts}"
        return None
