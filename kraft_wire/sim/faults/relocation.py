"""An operator who moves a controller to another host (KIP-853).

One node of a run may move, as often as its plan has it: a quorum in which several voters are
unknown to the others cannot elect, in Kafka either. Every process starts with a configuration that
names the hosts of that moment (`addresses`).
"""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.judge.log_watch import newest_voters
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.setup import LISTENER
from kraft_wire.sim.world import World

__all__ = ["move", "restart_outdated", "why_unknown"]

_VOTERS_LEAST: Final = 3
"""With fewer voters the others cannot elect without the one that moves, unless it is alone."""


def move(world: World, machine: Machine) -> bool:
    """Have a controller restart on another host; False where the others need its address."""
    leader = world.leader()
    if leader is None or world.addresses.moved_id not in (None, machine.id):
        return False
    voters = leader.quorum.voters.latest.nodes
    if machine.is_broker_only or (len(voters) < _VOTERS_LEAST and list(voters) != [machine.id]):
        return False
    if machine.node is not None:
        machine.kill()
    world.addresses.move(machine, machine.wires)
    return True


def restart_outdated(world: World) -> None:
    """Restart every process whose bootstrap servers have the host that was left."""
    for machine in world.running():
        if world.addresses.is_outdated(machine.id):
            machine.kill()
            machine.start_if_down()


def why_unknown(world: World) -> str | None:
    """Return the voter with a wrong address in the leader's log, None if all are right."""
    leader = world.leader()
    if world.addresses.moved_id is None or leader is None:
        return None
    found = newest_voters(world.judge.watches[leader.id].log)
    for voter in found[0].voters if found is not None else ():
        machine = world.machines[voter.voter_id]
        hosts = {each.name: each.host for each in voter.endpoints}
        is_same = voter.voter_directory_id == machine.directory_id
        if is_same and hosts.get(LISTENER) != machine.host:
            return f"{voter.voter_id} is on {machine.host}, its voters' record says {hosts}"
    return None
