"""Faults of a cluster's nodes, one at a time: SIGKILL and a start, or a pause."""

from __future__ import annotations

import random
import time

from tests.clients.cluster import Cluster

__all__ = ["FaultFinder"]

PAUSES_S = (0.5, 8.0)
"""Shorter and longer than a broker's session."""
AWAY_S = (0.0, 4.0)
BETWEEN_S = (0.2, 3.0)
CONTROLLERS = 0.2
"""Of all faults."""
PAUSED = 0.4


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
        is_controller = self._random.random() < CONTROLLERS
        nodes = self._cluster.quorum.nodes if is_controller else self._cluster.brokers
        node = nodes[self._random.choice(sorted(nodes))]
        is_paused = self._random.random() < PAUSED
        kind = (
            f"{'controller' if is_controller else 'broker'} {'paused' if is_paused else 'killed'}"
        )
        self.had[kind] = self.had.get(kind, 0) + 1
        if is_paused:
            node.pause()
            time.sleep(self._random.uniform(*PAUSES_S))
            node.resume()
        else:
            node.kill()
            time.sleep(self._random.uniform(*AWAY_S))
            node.start()
        if not is_controller:
            self._cluster.await_whole()
