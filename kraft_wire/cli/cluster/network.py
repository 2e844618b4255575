"""A separate network for each node of a cluster, where single directions can be cut.

Linux namespaces on one bridge, whose other end is the machine itself, so that clients reach every
node. A direction is cut where it begins: the sender gets a wrong hardware address for the receiver,
and its packets are dropped silently, while the other direction works. That needs root and the
command `ip`, and no kernel module beyond veth and bridge. Names are made of the cluster's id, so
that the next `up` finds and replaces the remains of a killed one.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Final

from kraft_wire.cli.cluster.files import CannotRun
from kraft_wire.cli.cluster.state import ClusterState, NetworkCut

__all__ = ["ClusterNetwork", "free_network", "host_in", "missing"]

_NOWHERE: Final = "02:00:00:00:de:ad"
_MACHINE: Final = 254
"""The last number of the machine's own address; ids of nodes are far below."""
_NETWORKS: Final = 250


def missing() -> str | None:
    """Return why nodes cannot have separate networks here, None if they can."""
    if shutil.which("ip") is None:
        return "the command `ip` (package iproute2) is not on the PATH"
    if os.geteuid() != 0:
        return "root is required"
    probe = f"kw{os.getpid()}p"
    done = _asked("netns", "add", probe)
    if done.returncode:
        return f"ip netns add: {' '.join(done.stderr.split())}"
    _ip("netns", "del", probe)
    return None


def free_network(cluster_id: str) -> int:
    """Return the third number of unused addresses."""
    taken = _asked("-4", "-o", "addr").stdout
    first = hashlib.sha256(cluster_id.encode()).digest()[0]
    for number in range(first, first + _NETWORKS):
        if f" {host_in(number % _NETWORKS, _MACHINE)}/" not in taken:
            return number % _NETWORKS
    raise CannotRun("all networks of 10.92.0.0/16 are in use: stop another cluster")


def host_in(network: int, node_id: int) -> str:
    """Return a node's address in a network."""
    return f"10.92.{network}.{node_id}"


class ClusterNetwork:
    """The namespaces of one cluster."""

    def __init__(self, cluster_id: str, network: int, node_ids: Iterable[int]) -> None:
        """`network` is the third number of the addresses (`free_network`)."""
        self._network = network
        self._node_ids = list(node_ids)
        self._name = f"kw{hashlib.sha256(cluster_id.encode()).hexdigest()[:6]}"

    @classmethod
    def of(cls, state: ClusterState) -> "ClusterNetwork":
        """Return the networks of a cluster whose nodes have separate ones."""
        assert state.network is not None, "the nodes share the machine's network"
        return cls(state.cluster_id, state.network, state.nodes)

    def command(self, node_id: int, command: list[str]) -> list[str]:
        """Return a command as it is run inside; the process that it becomes is the same."""
        return ["ip", "netns", "exec", self._namespace(node_id), *command]

    def make(self) -> None:
        """Make everything again. Errors: CannotRun."""
        self.remove()
        _ip("link", "add", self._name, "type", "bridge")
        _ip("addr", "add", f"{host_in(self._network, _MACHINE)}/24", "dev", self._name)
        _ip("link", "set", self._name, "up")
        for node_id in self._node_ids:
            self._add(node_id)

    def remove(self) -> None:
        """Remove all existing parts of it."""
        for node_id in self._node_ids:
            _asked("netns", "del", self._namespace(node_id))
            _asked("link", "del", self._outside(node_id))  # a namespace outlives its processes
        _asked("link", "del", self._name)

    def cut(self, cuts: Iterable[NetworkCut]) -> None:
        """Let nothing arrive from now on."""
        for cut in cuts:
            self._point(cut, _NOWHERE)

    def heal(self, cuts: Iterable[NetworkCut]) -> None:
        """Let everything arrive again."""
        for cut in cuts:
            self._point(cut, self._hardware(cut.receiver))

    def _add(self, node_id: int) -> None:
        inside, outside = self._namespace(node_id), self._outside(node_id)
        _ip("netns", "add", inside)
        _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", inside)
        _ip("link", "set", outside, "master", self._name, "up")
        _ip("-n", inside, "link", "set", "eth0", "address", self._hardware(node_id))
        own = f"{host_in(self._network, node_id)}/24"
        _ip("-n", inside, "addr", "add", own, "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", inside, "link", "set", device, "up")

    def _point(self, cut: NetworkCut, hardware: str) -> None:
        where = ("neigh", "replace", host_in(self._network, cut.receiver), "lladdr", hardware)
        _ip("-n", self._namespace(cut.sender), *where, "dev", "eth0", "nud", "permanent")

    def _namespace(self, node_id: int) -> str:
        return f"{self._name}n{node_id}"

    def _outside(self, node_id: int) -> str:
        return f"{self._name}v{node_id}"

    def _hardware(self, node_id: int) -> str:
        return f"02:00:0a:5c:{self._network:02x}:{node_id:02x}"


def _ip(*arguments: str) -> None:
    done = _asked(*arguments)
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise CannotRun(f"ip {' '.join(arguments)}: {said}")


def _asked(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["ip", *arguments],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # Ctrl-C is for `up`, which ends in order
    )
