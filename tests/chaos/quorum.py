"""Three combined nodes of ours as processes, each in a namespace where there is a network.

Combined, because a broker's listener is where quotas are read and producer ids are drawn; what is
written goes to the controllers' listeners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.chaos.network import Network
from tests.mixed.controller import OURS, Controller
from tests.mixed.quorum import SHORT, MixedQuorum
from tests.ports import free_port

NODES = (1, 2, 3)
OVERRIDES = {
    "metadata.log.max.record.bytes.between.snapshots": "200000",
    "metadata.max.retention.bytes": "-1",
    "metadata.max.retention.ms": "-1",
}
"""Snapshots are taken, and the whole log is kept for the judge."""


class Member(Controller):
    """A node that may live in a namespace."""

    def __init__(
        self, node_id: int, home: Path, hosts: Mapping[int, str], ports: Mapping[int, int]
    ) -> None:
        self._prefix: Sequence[str] = ()
        self.host = hosts[node_id]
        self.client_port = free_port()
        voters = ",".join(f"{each}@{hosts[each]}:{ports[each]}" for each in hosts)
        listeners = f"CONTROLLER://{self.host}:{ports[node_id]}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},PLAINTEXT://{self.host}:{self.client_port}",
            "controller.quorum.voters": voters,
            "log.dirs": str(home / f"node-{node_id}"),
            **SHORT,
            **OVERRIDES,
        }
        super().__init__(node_id, OURS, home, ports[node_id], properties)

    @property
    def address(self) -> str:
        """Where its controller listens."""
        return f"{self.host}:{self.port}"

    @property
    def client_address(self) -> str:
        """Where its broker listens."""
        return f"{self.host}:{self.client_port}"

    def live_in(self, network: Network) -> None:
        """Run inside a namespace from the next start on."""
        self._prefix = network.prefix(self.node_id)

    def command(self) -> Sequence[str]:
        return [*self._prefix, *super().command()]


class ChaosQuorum(MixedQuorum):
    """Three members; without a network they share the loopback."""

    def __init__(self, home: Path, network: Network | None) -> None:
        super().__init__(home, dict.fromkeys(NODES, OURS), voters=NODES)
        hosts = {each: "127.0.0.1" if network is None else network.host(each) for each in NODES}
        self.members = {each: Member(each, home, hosts, self._ports) for each in NODES}
        for member in self.members.values():
            if network is not None:
                member.live_in(network)
        self.nodes = dict(self.members)
