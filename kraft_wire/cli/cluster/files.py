"""The directory of a cluster of processes: what stands where, and the state that verbs share.

`cluster.json` says who belongs to the cluster and what runs; only `cluster up` writes it, as long
as it runs, which the lock tells. Another command changes the cluster by a signal to a node's
process, or, to have one started, by leaving a request that `cluster up` finds. A process is only
ever signalled when its command line names the node's own file: process ids are used again.
"""

import fcntl
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from kraft_wire.node.disks.formatting import DEFAULT_LEVELS

__all__ = [
    "APACHE",
    "BROKER",
    "CONTROLLER",
    "OURS",
    "CannotRun",
    "ClusterFiles",
    "ClusterState",
    "NetworkCut",
    "NodeState",
]

OURS: Final = "kraft-wire"
APACHE: Final = "apache"
CONTROLLER: Final = "controller"
BROKER: Final = "broker"


class CannotRun(Exception):
    """Why a command cannot do its work, as one line."""


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

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{self.host}:{self.port}"

    @property
    def condition(self) -> str:
        """One word: running, paused or down."""
        if self.pid is None:
            return "down"
        return "paused" if self.is_paused else "running"


@dataclass(slots=True)
class ClusterState:
    """What the state file says."""

    cluster_id: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    """Of the features that are finalised from the beginning."""
    network: int | None = None
    """The third number of the addresses where each node has a network of its own."""
    nodes: dict[int, NodeState] = field(default_factory=dict)
    cuts: list[NetworkCut] = field(default_factory=list)
    """What `partition` cut; no part of the state file."""

    @property
    def controllers(self) -> list[NodeState]:
        """Who votes, or may."""
        return [each for each in self.nodes.values() if each.role == CONTROLLER]

    @property
    def brokers(self) -> list[NodeState]:
        """Who serves clients."""
        return [each for each in self.nodes.values() if each.role == BROKER]

    @property
    def bootstrap(self) -> str:
        """All controllers, as --bootstrap-controller takes them."""
        return ",".join(each.address for each in self.controllers)

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, as --bootstrap-server takes them."""
        return ",".join(each.address for each in self.brokers)


class ClusterFiles:
    """The files of one cluster."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def properties(self, node_id: int) -> Path:
        """The node's server.properties."""
        return self.directory / f"node-{node_id}.properties"

    def data(self, node_id: int) -> Path:
        """The node's log directory."""
        return self.directory / f"node-{node_id}"

    def log(self, node_id: int) -> Path:
        """What the node's processes wrote."""
        return self.directory / f"node-{node_id}.log"

    def start_request(self, node_id: int) -> Path:
        """A file that is there while somebody wants the node started."""
        return self.directory / f"node-{node_id}.start"

    @property
    def state_file(self) -> Path:
        """The state that verbs share."""
        return self.directory / "cluster.json"

    # -- the state -------------------------------------------------------------------------------

    def load(self) -> ClusterState | None:
        """Return the state, None where no cluster has been. Errors: CannotRun."""
        try:
            said = json.loads(self.state_file.read_text(encoding="utf-8"))
            nodes = [NodeState(**each) for each in said["nodes"]]
            return ClusterState(
                said["cluster_id"],
                said["overrides"],
                said.get("levels", DEFAULT_LEVELS),
                said.get("network"),
                {each.node_id: each for each in nodes},
                self.cuts(),
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CannotRun(f"{self.state_file}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise CannotRun(f"{self.state_file} is not a cluster's state file: {error}") from error

    def save(self, state: ClusterState) -> None:
        """Replace the state, whole."""
        said = {
            "cluster_id": state.cluster_id,
            "overrides": dict(state.overrides),
            "levels": dict(state.levels),
            "network": state.network,
            "nodes": [asdict(each) for each in state.nodes.values()],
        }
        temporary = self.state_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, self.state_file)

    # -- what is cut -----------------------------------------------------------------------------

    def cut(self, cut: NetworkCut) -> Path:
        """A file that is there while a direction is cut."""
        return self.directory / f"cut-{cut.sender}-{cut.receiver}"

    def cuts(self) -> list[NetworkCut]:
        """Return every direction that is cut."""
        names = [
            re.fullmatch(r"cut-(\d+)-(\d+)", path.name) for path in self.directory.glob("cut-*")
        ]
        return sorted(NetworkCut(int(name[1]), int(name[2])) for name in names if name is not None)

    # -- who runs --------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the one `cluster up` of this directory. Errors: CannotRun."""
        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise CannotRun(f"a cluster runs in {self.directory} already") from error
        try:
            yield
        finally:
            os.close(descriptor)

    @property
    def is_supervised(self) -> bool:
        """Whether `cluster up` runs."""
        try:
            descriptor = os.open(self._lock_file, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    @property
    def _lock_file(self) -> Path:
        return self.directory / "cluster.lock"

    def runs(self, node: NodeState) -> bool:
        """Tell whether the process in the state file is there, and is that node."""
        return node.pid is not None and str(self.properties(node.node_id)) in _command(node.pid)


def _command(pid: int) -> str:
    """Return the command line of a process; empty for a dead one, also where nobody reaped it."""
    with suppress(OSError):
        return (
            Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode("utf-8", "replace")
        )
    if Path("/proc/self").exists():
        return ""
    with suppress(OSError):
        asked = ["ps", "-o", "command=", "-p", str(pid)]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    return ""
