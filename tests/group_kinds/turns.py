"""One node whose directory both makes take turns on, at one address, while groups are alive."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic

from tests.apache.node import ApacheNode
from tests.ports import free_port
from tests.process import Process
from tests.server_process import ServerProcess

__all__ = ["TURNS", "TakingTurns"]

TURNS = "turns"
NODE_ID = 1
PATIENCE_S = 60.0
SINGLE = {
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class _Apache(ApacheNode):
    """Apache's node over a directory that it did not format."""

    def __init__(
        self, directory: Path, data: Path, port: int, overrides: Mapping[str, str]
    ) -> None:
        super().__init__(directory, overrides={**overrides, "log.dirs": str(data)})
        self.data = data
        self._port = port
        self.configure()


class TakingTurns:
    """A cluster for a campaign: it stops the running node, and starts the other make instead."""

    def __init__(
        self,
        home: Path,
        *,
        overrides: Mapping[str, str] | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        settings = {**(overrides or {}), **SINGLE}
        port = free_port()
        self.bootstrap = f"127.0.0.1:{port}"
        self.brokers: dict[int, ServerProcess | _Apache] = {}
        self._say = say
        self._ours = ServerProcess(home, overrides=settings, port=port)
        (home / "apache").mkdir()
        self._apache = _Apache(home / "apache", self._ours.data, port, settings)
        self._running: ServerProcess | _Apache = self._ours
        self._turns = 0

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(PATIENCE_S)

    def kill_broker(self, node_id: int, away_s: float = 0.0) -> None:
        """Hand the directory over: every second time after SIGKILL, otherwise after a clean end."""
        self._turns += 1
        ended: Process = self._running
        if self._turns % 4 > 1:
            ended.kill()
        else:
            ended.stop()
        time.sleep(away_s)
        self._running = self._apache if ended is self._ours else self._ours
        self._running.start()
        self.brokers = {NODE_ID: self._running}
        self._say(f"{type(self._running).__name__} takes over")

    def __enter__(self) -> Self:
        self._ours.start()
        self.brokers = {NODE_ID: self._ours}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running.kill()
