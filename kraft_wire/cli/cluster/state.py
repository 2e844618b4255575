"""The nodes of a cluster of processes: their ids, addresses and processes.

Plain values; `ClusterFiles` reads and writes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = [
    "APACHE",
    "BROKER",
    "COMBINED",
    "CONTROLLER",
    "OURS",
    "ClusterState",
    "NetworkCut",
    "NodeState",
]

OURS: Final = "kraft-wire"
APACHE: Final = "apache"
CONTROLLER: Final = "controller"
BROKER: Final = "broker"
COMBINED: Final = "broker,controller"


class NetworkCut(NamedTuple):
    """A direction in which nothing arrives."""

    sender: int
    receiver: int


@dataclass(slots=True)
class NodeState:
    """One node as `cluster up` sees it."""

    node_id: int
    make: str
    port: int
    role: str = CONTROLLER
    """Its process.roles."""
    host: str = "127.0.0.1"
    pid: int | None = None
    is_paused: bool = False
    note: str = ""
    """Why it does not run."""
    controller_port: int | None = None
    """Of a combined node, whose `port` serves clients."""

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{self.host}:{self.port}"

    @property
    def controller_address(self) -> str:
        """Where it listens as a controller."""
        return f"{self.host}:{self.controller_port or self.port}"

    @property
    def is_controller(self) -> bool:
        """Whether it votes, or may."""
        return self.role != BROKER

    @property
    def is_broker(self) -> bool:
        """Whether it serves clients."""
        return self.role != CONTROLLER

    @property
    def condition(self) -> str:
        """One word: running, paused or down."""
        if self.pid is None:
            return "down"
        return "paused" if self.is_paused else "running"


@dataclass(slots=True)
class ClusterState:
    """The content of the state file."""

    cluster_id: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    """Of the features that are finalised from the beginning."""
    network: int | None = None
    """The third number of the addresses, if each node has its own network."""
    nodes: dict[int, NodeState] = field(default_factory=dict)
    cuts: list[NetworkCut] = field(default_factory=list)
    """The cuts of `partition`; not in the state file."""
    is_secured: bool = False
    """Whether every listener needs a login; see `securing`."""

    @property
    def controllers(self) -> list[NodeState]:
        """The controllers: voters, and nodes that may become one."""
        return [each for each in self.nodes.values() if each.is_controller]

    @property
    def brokers(self) -> list[NodeState]:
        """The brokers, which serve clients."""
        return [each for each in self.nodes.values() if each.is_broker]

    @property
    def bootstrap(self) -> str:
        """All controllers, as --bootstrap-controller takes them."""
        return ",".join(each.controller_address for each in self.controllers)

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, as --bootstrap-server takes them."""
        return ",".join(each.address for each in self.brokers)
