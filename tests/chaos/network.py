"""Networks of the nodes of a campaign: those of `kraft-wire cluster`, for as long as it runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType

from kraft_wire.cli.cluster.files import NetworkCut
from kraft_wire.cli.cluster.network import ClusterNetwork, free_network, host_in


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
