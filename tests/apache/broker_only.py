"""An Apache Kafka 4.3.1 broker (`process.roles=broker`) beside controllers that run elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

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
        self.cluster_id = cluster_id
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
