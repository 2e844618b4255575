"""Faults of a cluster's nodes, one at a time: SIGKILL and a start, a pause, or a one-way cut.

A cut needs a cluster with a network: one direction between a node and some others carries nothing.
Clients reach every node all the time.
"""

from __future__ import annotations

import random
import time

from tests.chaos.network import CUT_S
from tests.clients.cluster import Cluster
from tests.mixed.controller import Controller

__all__ = ["FaultFinder"]

PAUSES_S = (0.5, 8.0)
"""Shorter and longer than a broker's session."""
AWAY_S = (0.0, 4.0)
BETWEEN_S = (0.2, 3.0)
CONTROLLERS = 0.2
"""Of all faults."""
KILL, PAUSE, CUT = "killed", "paused", "cut off"
CHANCES = {KILL: 0.4, PAUSE: 0.3, CUT: 0.3}


class FaultFinder:
    """Draws faults from a seed, and has them."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self.had: dict[str, int] = {}
        """How many of each kind."""

    def have(self, count: int) -> None:
        """Have so many, with time between them, and wait until all is as it was."""
        for _ in range(count):
            time.sleep(self._random.uniform(*BETWEEN_S))
            self._one()
        self._cluster.await_whole()

    def _one(self) -> None:
        cluster = self._cluster
        is_controller = self._random.random() < CONTROLLERS
        nodes = cluster.quorum.nodes if is_controller else cluster.brokers
        node = nodes[self._random.choice(sorted(nodes))]
        kinds = [each for each in CHANCES if each != CUT or cluster.network is not None]
        (kind,) = self._random.choices(kinds, [CHANCES[each] for each in kinds])
        told = f"{'controller' if is_controller else 'broker'} {kind}"
        self.had[told] = self.had.get(told, 0) + 1
        {KILL: self._kill, PAUSE: self._pause, CUT: self._cut}[kind](node)
        if not is_controller:
            cluster.await_whole()

    def _kill(self, node: Controller) -> None:
        node.kill()
        time.sleep(self._random.uniform(*AWAY_S))
        node.start()

    def _pause(self, node: Controller) -> None:
        node.pause()
        time.sleep(self._random.uniform(*PAUSES_S))
        node.resume()

    def _cut(self, node: Controller) -> None:
        network = self._cluster.network
        assert network is not None, "only where there are namespaces"
        others = [*self._cluster.quorum.nodes, *self._cluster.brokers]
        others.remove(node.node_id)
        network.cut_some(node.node_id, others, self._random)
        time.sleep(self._random.uniform(*CUT_S))
        network.heal()
