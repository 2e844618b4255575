"""A network namespace for each node on one bridge, where single directions can be cut.

A direction is cut where it begins: the sender gets a wrong hardware address for the receiver, so
that its packets leave and reach nobody, unnoticed, while the other direction works. That needs
`ip` and root and no kernel module beyond veth and bridge. Everything is named after this process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from types import TracebackType

NOWHERE = "02:00:00:00:de:ad"
HOST = 254


def missing() -> str | None:
    """Why there can be no namespaces here, None where there can."""
    if shutil.which("ip") is None:
        return "the command `ip` (package iproute2) is not here"
    if os.geteuid() != 0:
        return "network namespaces need root"
    probe = f"kw{os.getpid()}p"
    done = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if done.returncode:
        return f"ip netns add: {done.stderr.strip()}"
    _ip("netns", "del", probe)
    return None


class Network:
    """Namespaces by node id, each with one address; the clients' end is the host itself."""

    def __init__(self, node_ids: Iterable[int]) -> None:
        self.node_ids = list(node_ids)
        self._number = os.getpid() % 250
        self._name = f"kw{os.getpid()}"
        self._cut: set[tuple[int, int]] = set()

    def host(self, node_id: int) -> str:
        """A node's address."""
        return f"10.91.{self._number}.{node_id}"

    def prefix(self, node_id: int) -> list[str]:
        """What goes before a command that runs inside."""
        return ["ip", "netns", "exec", self._namespace(node_id)]

    def cut(self, sender: int, receiver: int) -> None:
        """From now on nothing that one sends reaches the other."""
        self._cut.add((sender, receiver))
        self._point(sender, receiver, NOWHERE)

    def heal(self) -> None:
        """Let every direction work."""
        for sender, receiver in sorted(self._cut):
            self._point(sender, receiver, self._hardware(receiver))
        self._cut.clear()

    def __enter__(self) -> Network:
        _ip("link", "add", self._name, "type", "bridge")
        _ip("addr", "add", f"{self.host(HOST)}/24", "dev", self._name)
        _ip("link", "set", self._name, "up")
        for node_id in self.node_ids:
            self._add(node_id)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node_id in self.node_ids:
            _ip("netns", "del", self._namespace(node_id))
        _ip("link", "del", self._name)

    def _add(self, node_id: int) -> None:
        inside, outside = self._namespace(node_id), f"{self._name}v{node_id}"
        _ip("netns", "add", inside)
        _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", inside)
        _ip("link", "set", outside, "master", self._name, "up")
        _ip("-n", inside, "link", "set", "eth0", "address", self._hardware(node_id))
        _ip("-n", inside, "addr", "add", f"{self.host(node_id)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", inside, "link", "set", device, "up")

    def _namespace(self, node_id: int) -> str:
        return f"{self._name}n{node_id}"

    def _hardware(self, node_id: int) -> str:
        return f"02:00:0a:5b:{self._number:02x}:{node_id:02x}"

    def _point(self, sender: int, receiver: int, hardware: str) -> None:
        where = ("neigh", "replace", self.host(receiver), "lladdr", hardware)
        _ip("-n", self._namespace(sender), *where, "dev", "eth0", "nud", "permanent")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
