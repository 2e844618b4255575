"""A ``kraft-wire server`` that is only a broker, as a process beside controllers elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.command_forks import run_forked
from tests.ports import free_port
from tests.process import KraftWireServer, write_properties


class BrokerProcess(KraftWireServer):
    """Format, start, stop, kill and restart one broker over one directory."""

    def __init__(
        self,
        directory: Path,
        node_id: int,
        *,
        cluster_id: str,
        voters: str,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        """`voters` as in `controller.quorum.voters`: id@host:port, separated by commas."""
        super().__init__(directory / "server.log", directory / "ready.json")
        self.directory = directory
        self.node_id = node_id
        self.data = directory / "data"
        self.bootstrap = f"127.0.0.1:{free_port()}"
        """``host:port`` for clients."""
        self.properties_file = directory / "server.properties"
        self._cluster_id = cluster_id
        self._settings = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "log.dirs": str(self.data),
            "num.partitions": "4",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "group.initial.rebalance.delay.ms": "0",
            **(overrides or {}),
        }

    def arguments(self) -> list[str]:
        return [str(self.properties_file)]

    def format(self) -> None:
        """Write the properties and format the directory."""
        write_properties(self.properties_file, self._settings)
        arguments = ["format", "-t", self._cluster_id, "-c", str(self.properties_file)]
        run_forked(arguments).check_returncode()

    def __enter__(self) -> BrokerProcess:
        self.format()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self.kill()
