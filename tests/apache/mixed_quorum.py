"""A quorum of which some controllers are Apache's and the others are ours, as processes.

Same ports and voters, one cluster id; each directory is formatted by its own side's tool.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from tests.apache.jars import RELEASE
from tests.apache.java_process import JavaFailed, java_command, run_java
from tests.quorum_processes import SECONDS_MAX, QuorumProcesses


class MixedQuorum(QuorumProcesses):
    """Controllers 1 to ``size``; those of ``apache_ids`` are Apache's."""

    def __init__(
        self,
        directory: Path,
        apache_ids: Iterable[int],
        size: int = 3,
        *,
        release: str = RELEASE,
        metadata_version: str | None = None,
    ) -> None:
        """`metadata_version` is what the cluster begins with; None for the newest of ours."""
        options = [] if metadata_version is None else ["--release-version", metadata_version]
        super().__init__(directory, size, format_options=options)
        self.apache_ids = sorted(apache_ids)
        self.release = release

    @property
    def our_ids(self) -> list[int]:
        """The controllers that are ours."""
        return [node_id for node_id in self.node_ids if node_id not in self.apache_ids]

    def format(self) -> None:
        """Let each side format its own."""
        super().format()
        for node_id in self.apache_ids:
            settings = self.properties(node_id)
            settings["listener.security.protocol.map"] = "CONTROLLER:PLAINTEXT"
            settings["log.dirs"] = str(self.directory / f"apache-{node_id}")
            lines = [f"{key}={value}\n" for key, value in settings.items()]
            self._file(node_id, "properties").write_text("".join(lines))
            arguments = ["format", "-t", self.cluster_id, *self.format_options]
            arguments += ["-c", str(self._file(node_id, "properties"))]
            done = run_java("kafka.tools.StorageTool", arguments, release=self.release)
            if done.exit_code != 0:
                raise JavaFailed(done.text)

    def begin(self, node_id: int) -> None:
        """Start a controller."""
        if node_id not in self.apache_ids:
            super().begin(node_id)
            return
        command = java_command(
            "kafka.Kafka",
            [str(self._file(node_id, "properties"))],
            release=self.release,
            heap_mb=256,
            flags=["-Djudge.level=INFO"],
        )
        with self._file(node_id, "log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.directory
            )
        self._processes[node_id] = process

    def await_ready(self, node_id: int) -> None:
        """Wait until a controller is ready; Apache's is taken for that when it accepts clients."""
        if node_id not in self.apache_ids:
            super().await_ready(node_id)
            return
        process = self._processes[node_id]
        deadline = time.monotonic() + SECONDS_MAX
        while not self._accepts(node_id):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(self.log(node_id)[-4_000:])
            time.sleep(0.05)

    def metadata_log(self, node_id: int) -> bytes:
        """The bytes of the first segment of a node's metadata log."""
        side = "apache" if node_id in self.apache_ids else "node"
        partition = self.directory / f"{side}-{node_id}" / "__cluster_metadata-0"
        return (partition / f"{0:020}.log").read_bytes()

    def _accepts(self, node_id: int) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.controller_ports[node_id])).close()
            return True
        return False
