"""Networks of the nodes of a campaign: those of `kraft-wire cluster`, for as long as it runs."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from types import TracebackType

from kraft_wire.cli.cluster.files import NetworkCut
from kraft_wire.cli.cluster.network import ClusterNetwork, free_network, host_in

CUT_S = (1.5, 6.0)
"""How long a direction carries nothing."""
_LOOPBACK = "127.0.0.1"


class Network:
    """A namespace for each node, each with one address; clients are on the machine itself."""

    def __init__(self, node_ids: Iterable[int]) -> None:
        name = f"campaign {os.getpid()}"
        self._number = free_network(name)
        self._network = ClusterNetwork(name, self._number, node_ids)
        self._cuts: set[NetworkCut] = set()

    def host(self, node_id: int) -> str:
        """Return a node's address."""
        return host_in(self._number, node_id)

    def prefix(self, node_id: int) -> list[str]:
        """Return what comes before a command that runs in a node's namespace."""
        return self._network.command(node_id, [])

    def cut(self, sender: int, receiver: int) -> None:
        """Let nothing that one node sends reach another."""
        self._cuts.add(NetworkCut(sender, receiver))
        self._network.cut([NetworkCut(sender, receiver)])

    def cut_some(self, node_id: int, others: Sequence[int], draw: random.Random) -> str:
        """Cut one direction between a node and some others; return which, in words."""
        hit = sorted(draw.sample(others, draw.randint(1, len(others))))
        way = "deaf to" if draw.random() < 0.5 else "mute to"
        for other in hit:
            self.cut(*((node_id, other) if way == "mute to" else (other, node_id)))
        return f"{node_id} {way} {hit}"

    def heal(self) -> None:
        """Let every direction work again."""
        self._network.heal(sorted(self._cuts))
        self._cuts.clear()

    def __enter__(self) -> Network:
        self._network.make()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._network.remove()


def host_of(node_id: int, network: Network | None) -> str:
    """Return the address of a node, in its network or on the loopback."""
    return _LOOPBACK if network is None else network.host(node_id)
