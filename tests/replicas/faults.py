"""How nodes are hurt, and made good again.

- `kill`: SIGKILL, and a new start 0.1 to 5 s later: before its session has ended or after.
- `strand`: the other brokers stand still for half a second while a broker that leads takes records,
  and then it is killed: it has records that nobody else has, and must be cut when it comes back.
- `pause`: SIGSTOP until its session, or the quorum's patience, has ended.
- `cut`: one direction between a node and some others carries nothing; it needs a network.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from tests.chaos.network import CUT_S
from tests.replicas.cluster import Node, ReplicaCluster

DEAD_S = (0.1, 5.0)
STANDING_S = 0.5
BEHIND_SESSION_S = (0.5, 2.5)
"""How much longer than its session a broker is paused."""
PAUSED_CONTROLLER_S = (2.0, 4.0)
TWO_AT_ONCE = 0.1
A_BROKER = 0.65
THE_ACTIVE_ONE = 0.5


class Faults:
    """Draws faults for a cluster."""

    def __init__(
        self, cluster: ReplicaCluster, kinds: Sequence[str], hurts_controllers: bool, seed: int
    ) -> None:
        self.done: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()
        """SIGKILLs by make and role."""
        self.led: Counter[str] = Counter()
        """Partitions that were led by whoever was killed, by make."""
        self._cluster = cluster
        self._kinds = kinds
        self._hurts_controllers = hurts_controllers
        self._draw = random.Random(seed)

    def hurt(self) -> tuple[list[Node], float, str]:
        """Hurt somebody; return who is hurt, for how long, and the story."""
        kind = self._draw.choice(self._kinds)
        self.done[kind] += 1
        victims = self._victims(kind)
        leads = ", ".join(f"{each.node_id} leads {self._leads(each)}" for each in victims)
        if kind == "cut":
            return victims, self._draw.uniform(*CUT_S), f"{self._cut(victims[0])}; {leads}"
        bystanders = self._bystanders(victims) if kind == "strand" else []
        for victim in victims:
            if kind == "pause":
                victim.pause()
            else:
                self._kill(victim)
        for each in bystanders:
            each.resume()
        held_s = self._draw.uniform(*DEAD_S)
        if kind == "pause":
            # Non-obvious 29: the kernel keeps the answer that was under way.
            held_s = self._paused_s(victims[0])
        names = [each.node_id for each in victims]
        return victims, held_s, f"{kind} {names}; {leads}"

    def heal(self) -> None:
        """Make good whatever is wrong; who has died by itself stays dead."""
        if self._cluster.network is not None:
            self._cluster.network.heal()
        for node in self._cluster.nodes.values():
            if node.is_paused:
                node.resume()
            elif not node.is_running:
                node.start()

    def _victims(self, kind: str) -> list[Node]:
        cluster, draw = self._cluster, self._draw
        brokers, controllers = list(cluster.brokers.values()), list(cluster.controllers.values())
        if kind == "strand":
            leaders = set(cluster.leaders().values())
            return [draw.choice([each for each in brokers if each.node_id in leaders] or brokers)]
        victim = draw.choice(brokers)
        if self._hurts_controllers and draw.random() > A_BROKER:
            victim = draw.choice(controllers)
            if draw.random() < THE_ACTIVE_ONE:
                victim = cluster.controllers[cluster.quorum.leader()]
        if kind == "cut" or draw.random() > TWO_AT_ONCE:
            return [victim]
        others = brokers + (controllers if self._hurts_controllers else [])
        return [victim, draw.choice([each for each in others if each is not victim])]

    def _paused_s(self, victim: Node) -> float:
        """Longer than it is waited for."""
        if victim.node_id in self._cluster.controllers:
            return self._draw.uniform(*PAUSED_CONTROLLER_S)
        return self._cluster.session_s + self._draw.uniform(*BEHIND_SESSION_S)

    def _kill(self, victim: Node) -> None:
        make = "ours" if victim.is_ours else "Apache"
        self.kills[f"{make} {victim.properties['process.roles']}"] += 1
        self.led[make] += self._leads(victim)
        victim.kill()

    def _leads(self, node: Node) -> int:
        return list(self._cluster.leaders().values()).count(node.node_id)

    def _bystanders(self, leaders: Sequence[Node]) -> list[Node]:
        """Let the other brokers stand still while records come in."""
        others = [each for each in self._cluster.brokers.values() if each not in leaders]
        for each in others:
            each.pause()
        time.sleep(STANDING_S)
        return others

    def _cut(self, victim: Node) -> str:
        network = self._cluster.network
        assert network is not None, "only where there are namespaces"
        others = [each for each in self._cluster.nodes if each != victim.node_id]
        return network.cut_some(victim.node_id, others, self._draw)
