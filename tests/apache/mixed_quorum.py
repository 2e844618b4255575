"""A quorum of which some controllers are Apache's and the others are ours, as processes.

Same ports and voters, one cluster id; each directory is formatted by its own side's tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.apache.jars import RELEASE
from tests.apache.java_process import JavaFailed, java_command, run_java
from tests.process import Process, accepts, write_properties
from tests.quorum_processes import QuorumProcesses


class ApacheController(Process):
    """One of Apache's, which is ready when it accepts clients."""

    def __init__(self, directory: Path, node_id: int, port: int, release: str) -> None:
        super().__init__(directory / f"node-{node_id}.log")
        self.directory_of_work = directory
        self._properties_file = directory / f"node-{node_id}.properties"
        self._port = port
        self._release = release

    def command(self) -> list[str]:
        arguments, flags = [str(self._properties_file)], ["-Djudge.level=INFO"]
        return java_command(
            "kafka.Kafka", arguments, release=self._release, heap_mb=256, flags=flags
        )

    def is_ready(self) -> bool:
        return accepts(self._port)


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
        self.apache_ids = sorted(apache_ids)
        self.release = release
        super().__init__(directory, size, format_options=options)

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
            write_properties(self.properties_file(node_id), settings)
            arguments = ["format", "-t", self.cluster_id, *self.format_options]
            arguments += ["-c", str(self.properties_file(node_id))]
            done = run_java("kafka.tools.StorageTool", arguments, release=self.release)
            if done.exit_code != 0:
                raise JavaFailed(done.text)

    def _node(self, node_id: int, program: Sequence[str]) -> Process:
        if node_id not in self.apache_ids:
            return super()._node(node_id, program)
        port = self.controller_ports[node_id]
        return ApacheController(self.directory, node_id, port, self.release)

    def metadata_log(self, node_id: int) -> bytes:
        """The bytes of the first segment of a node's metadata log."""
        side = "apache" if node_id in self.apache_ids else "node"
        partition = self.directory / f"{side}-{node_id}" / "__cluster_metadata-0"
        return (partition / f"{0:020}.log").read_bytes()
