"""The directory of a cluster of processes: its layout, and the state that verbs share.

`cluster.json` lists the nodes of the cluster and their processes; only a running `cluster up`,
which holds the lock, writes it. Another command changes the cluster by a signal to a node's
process, or by leaving a request that `cluster up` finds: to start a node, to leave it down, to end.
A process is only ever signalled when its command line names the node's own file: process ids are
used again.
"""

import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from kraft_wire.cli.cluster.secret_files import SecretFiles
from kraft_wire.cli.cluster.state import (
    APACHE,
    BROKER,
    CONTROLLER,
    OURS,
    ClusterState,
    NetworkCut,
    NodeState,
)
from kraft_wire.foreign_text import json_value
from kraft_wire.node.disks.formatting import DEFAULT_LEVELS

__all__ = [
    "APACHE",
    "BROKER",
    "CONTROLLER",
    "HERE",
    "OURS",
    "CannotRun",
    "ClusterFiles",
    "ClusterState",
    "NetworkCut",
    "NodeState",
    "shell_line",
]
HERE: Final = Path("kraft-wire-cluster")
"""The default directory of a cluster."""


class CannotRun(Exception):
    """Why a command cannot do its work, as one line."""


class ClusterFiles:
    """The files of one cluster."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.secrets = SecretFiles(self.directory)

    def properties(self, node_id: int) -> Path:
        """The node's server.properties."""
        return self.directory / f"node-{node_id}.properties"

    def data(self, node_id: int) -> Path:
        """The node's log directory."""
        return self.directory / f"node-{node_id}"

    def log(self, node_id: int) -> Path:
        """The output of the node's processes."""
        return self.directory / f"node-{node_id}.log"

    def start_request(self, node_id: int) -> Path:
        """A file that exists while a start of the node is requested."""
        return self.directory / f"node-{node_id}.start"

    def stop_request(self, node_id: int) -> Path:
        """A file that is there while a command ends the node, which then stays down."""
        return self.directory / f"node-{node_id}.stop"

    @property
    def down_request(self) -> Path:
        """A file that exists while `cluster up` is requested to stop."""
        return self.directory / "cluster.down"

    @property
    def state_file(self) -> Path:
        """The state that verbs share."""
        return self.directory / "cluster.json"

    # -- the state -------------------------------------------------------------------------------

    def load(self) -> ClusterState | None:
        """Return the state, None if there was no cluster. Errors: CannotRun."""
        try:
            said = json_value(self.state_file.read_text(encoding="utf-8"))
            nodes = [NodeState(**each) for each in said["nodes"]]
            return ClusterState(
                said["cluster_id"],
                said["overrides"],
                said.get("levels", DEFAULT_LEVELS),
                said.get("network"),
                {each.node_id: each for each in nodes},
                self.cuts(),
                said.get("is_secured", False),
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
            "is_secured": state.is_secured,
            "nodes": [asdict(each) for each in state.nodes.values()],
        }
        temporary = self.state_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, self.state_file)

    def remove(self, state: ClusterState) -> None:
        """Remove the cluster's files, and the directory if it is empty then."""
        for node_id in state.nodes:
            shutil.rmtree(self.data(node_id), ignore_errors=True)
            requests = (self.start_request, self.stop_request)
            for path in (self.properties, self.secrets.certificate, self.log, *requests):
                path(node_id).unlink(missing_ok=True)
        for cut in self.cuts():
            self.cut(cut).unlink(missing_ok=True)
        secrets = self.secrets
        secured = (secrets.authority, secrets.admin_config, secrets.client_config)
        for file in (*secured, self.down_request, self.state_file, self._lock_file):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # files of another program are there
            self.directory.rmdir()

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
            if not self._is_lock(descriptor):
                raise CannotRun(f"the cluster in {self.directory} was wiped just now")
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

    def _is_lock(self, descriptor: int) -> bool:
        """Return whether an open file is still the lock, and not one that `down --wipe` removed."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(descriptor), self._lock_file.stat())
        return False

    @property
    def _lock_file(self) -> Path:
        return self.directory / "cluster.lock"

    def runs(self, node: NodeState) -> bool:
        """Return whether the process in the state file exists, and is that node."""
        return node.pid is not None and str(self.properties(node.node_id)) in _command(node.pid)


def shell_line(files: ClusterFiles, *words: str) -> str:
    """Return a command about a cluster as a person types it here."""
    is_here = files.directory == HERE.absolute()
    where = () if is_here else ("--dir", str(files.directory))
    return shlex.join(("kraft-wire", "cluster", *words, *where))


def _command(pid: int) -> str:
    """Return the command line of a process; empty for a dead one, also if it is a zombie."""
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
