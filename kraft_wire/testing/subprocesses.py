"""The nodes of a cluster as processes: `kraft-wire server`, each with a file of properties."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from kraft_wire.server.clock import wall_ms
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.testing.in_process import DidNotStart
from kraft_wire.testing.local_node import bind
from kraft_wire.testing.plan import ClusterPlan, Identity, Ports, format_node, node_properties
from kraft_wire.testing.seeded_random import SeededRandom

__all__ = ["Subprocesses"]

_READY_S: Final = 60.0
_STOP_S: Final = 20.0
_LOOK_S: Final = 0.005
_LOG_TAIL: Final = 2_000


class Subprocesses:
    """Runs the nodes of a plan, over one directory each."""

    def __init__(self, plan: ClusterPlan, directory: Path, seed: int) -> None:
        self._plan = plan
        self._directory = directory
        self._seed = seed
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.ports: Ports = {}
        self._reserved: list[socket.socket] = []
        """Bound and not listening: nothing but a node gets its ports, also while it is down."""

    def _file(self, node_id: int, name: str) -> Path:
        return self._directory / f"node-{node_id}.{name}"

    def _data(self, node_id: int) -> str:
        return str(self._directory / f"node-{node_id}")

    def start(self) -> None:
        """Format and start every node, and wait for all. Errors: DidNotStart."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self.ports = self._reserve_ports()
        identity = Identity.draw(self._plan, SeededRandom(self._seed))
        for node_id in self._plan.node_ids:
            if not Path(self._data(node_id)).exists():
                self._format(node_id, identity)
            properties = node_properties(self._plan, node_id, self._data(node_id), self.ports)
            lines = [f"{key}={value}\n" for key, value in properties.items()]
            self._file(node_id, "properties").write_text("".join(lines), encoding="utf-8")
        try:
            for node_id in self._plan.node_ids:
                self._begin(node_id)
            for node_id in self._plan.node_ids:
                self._await_ready(node_id)
        except BaseException:
            self.stop()
            raise

    def _format(self, node_id: int, identity: Identity) -> None:
        data = self._data(node_id)
        format_node(OsFileSystem(), data, self._plan, node_id, self.ports, identity, wall_ms())

    def start_node(self, node_id: int) -> None:
        """Start a node that was stopped or killed."""
        self._begin(node_id)
        self._await_ready(node_id)

    def _begin(self, node_id: int) -> None:
        ready = self._file(node_id, "ready")
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "kraft_wire.cli.main", "server", "--ready-file"]
        with self._file(node_id, "log").open("ab") as log:
            self._processes[node_id] = subprocess.Popen(
                [*command, str(ready), str(self._file(node_id, "properties"))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={key: text for key, text in os.environ.items() if not key.startswith("KAFKA_")},
            )

    def _await_ready(self, node_id: int) -> None:
        deadline = time.monotonic() + _READY_S
        while not self._file(node_id, "ready").exists():
            if self._processes[node_id].poll() is not None or time.monotonic() > deadline:
                text = self._file(node_id, "log").read_text(errors="replace")
                raise DidNotStart(f"node {node_id} is not ready: {text[-_LOG_TAIL:]}")
            time.sleep(_LOOK_S)
        json.loads(self._file(node_id, "ready").read_text())

    def stop_node(self, node_id: int) -> None:
        """End a node by SIGTERM, or by SIGKILL if that takes too long."""
        process = self._processes.pop(node_id, None)
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill_node(self, node_id: int) -> None:
        """End a node by SIGKILL."""
        process = self._processes.pop(node_id, None)
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """End every node."""
        for process in self._processes.values():
            process.terminate()
        for node_id in list(self._processes):
            self.stop_node(node_id)
        while self._reserved:
            self._reserved.pop().close()

    def _reserve_ports(self) -> Ports:
        ports = {}
        for node_id in self._plan.node_ids:
            bound = bind(self._plan.listeners(node_id), {})
            self._reserved += bound.values()
            ports[node_id] = {name: sock.getsockname()[1] for name, sock in bound.items()}
        return ports
