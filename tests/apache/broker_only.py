"""An Apache Kafka 4.3.1 broker (`process.roles=broker`) beside controllers that run elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.apache.java_process import JavaFailed, run_java
from tests.apache.node import ApacheNode


class ApacheBroker(ApacheNode):
    """A broker that finds its controllers by their addresses."""

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
        super().__init__(directory, overrides=overrides, heap_mb=256)
        self.node_id = node_id
        self._cluster_id = cluster_id
        self._voters = voters

    def properties(self) -> dict[str, str]:
        """Those of a single node, but for the controller in it."""
        return {
            **super().properties(),
            "process.roles": "broker",
            "node.id": str(self.node_id),
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.quorum.voters": self._voters,
            **self._overrides,
        }

    def format(self) -> None:
        """Format with Apache's own tool, for the cluster of the controllers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}={value}\n" for key, value in self.properties().items()]
        self.properties_file.write_text("".join(lines))
        arguments = ["format", "-t", self._cluster_id, "-c", str(self.properties_file)]
        done = run_java("kafka.tools.StorageTool", arguments)
        if done.exit_code != 0:
            raise JavaFailed(done.text)
