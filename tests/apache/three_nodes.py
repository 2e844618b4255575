"""Three combined Apache Kafka nodes (broker and controller each) as one cluster of processes.

Each is an `ApacheNode` with its own directory; starting and stopping goes side by side, because a
broker waits for a quorum. What they leave in `log.dirs` is what Apache's replicas really look like.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from tests.apache import jars
from tests.apache.node import ApacheNode

NODE_IDS = (1, 2, 3)


class ClusterNode(ApacheNode):
    """One node of a cluster; the voters are known once all have chosen their ports."""

    stop_seconds_max = 25

    def __init__(self, directory: Path, node_id: int, overrides: Mapping[str, str]) -> None:
        super().__init__(directory, overrides=overrides)
        self.node_id = node_id
        self.voters = ""

    def properties(self) -> dict[str, str]:
        """Those of a single node, but for what makes it one of several."""
        internal = {
            f"{topic}.{setting}": value
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            for setting, value in (("replication.factor", "3"), ("num.partitions", "3"))
        }
        return {
            **super().properties(),
            **internal,
            "node.id": str(self.node_id),
            "controller.quorum.voters": self.voters,
            "transaction.state.log.min.isr": "2",
            "share.coordinator.state.topic.min.isr": "2",
            "auto.create.topics.enable": "false",
            **self._overrides,
        }

    def stop_or_kill(self) -> None:
        """SIGTERM, and SIGKILL for a node that does not end."""
        with suppress(subprocess.TimeoutExpired):
            self.stop()


class ThreeNodes:
    """Format three directories below one, start the nodes, stop them, kill and restart one."""

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        self.nodes = {
            node_id: ClusterNode(directory / f"node-{node_id}", node_id, overrides or {})
            for node_id in NODE_IDS
        }
        voters = ",".join(
            f"{node_id}@{node.controller_bootstrap}" for node_id, node in self.nodes.items()
        )
        for node in self.nodes.values():
            node.voters = voters

    @property
    def bootstrap(self) -> str:
        """The listeners of all brokers."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    @property
    def data(self) -> list[Path]:
        """The log directory of each node."""
        return [node.data for node in self.nodes.values()]

    def start(self) -> None:
        """Format and start all."""
        jars.jar_directory()
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(ClusterNode.format, self.nodes.values()))
            list(pool.map(ClusterNode.start, self.nodes.values()))

    def stop(self) -> None:
        """Stop all at once; a last one that waits for the quorum that is gone is killed."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(ClusterNode.stop_or_kill, self.nodes.values()))

    def kill(self) -> None:
        """SIGKILL for all that run."""
        for node in self.nodes.values():
            node.kill()

    def __enter__(self) -> ThreeNodes:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()
