"""One combined Apache Kafka node (broker and controller) on free ports of 127.0.0.1.

The peer that every client harness and every tool must pass first: what fails against it is a
mistake of the test. Formatting and starting take seconds, so tests share one per session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS, JavaFailed, java_command, run_java
from tests.ports import free_port
from tests.process import Process, accepts, write_properties

CLUSTER_ID = "kWjudgeAAAAAAAAAAAAAAA"


class ApacheNode(Process):
    """Format a directory, start one node over it, 4.3.1 by default, stop it, start it again."""

    cluster_id = CLUSTER_ID
    format_options: Sequence[str] = ()

    def __init__(
        self,
        directory: Path,
        *,
        overrides: Mapping[str, str] | None = None,
        heap_mb: int = 384,
        flags: Sequence[str] = (*LEAN_FLAGS, "-Xms64m"),
        release: str = jars.RELEASE,
        port: int = 0,
    ) -> None:
        super().__init__(directory / "apache.log")
        self.directory = directory
        self.directory_of_work = directory
        self.data = directory / "data"
        self._heap_mb = heap_mb
        self._release = release
        self._flags = list(flags)
        self._port = port or free_port()
        self._controller_port = free_port()
        self._overrides = dict(overrides or {})

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the broker's listener."""
        return f"127.0.0.1:{self._port}"

    @property
    def controller_bootstrap(self) -> str:
        """``host:port`` of the controller's listener."""
        return f"127.0.0.1:{self._controller_port}"

    @property
    def properties_file(self) -> Path:
        """The server.properties that the node runs with."""
        return self.directory / "server.properties"

    def properties(self) -> dict[str, str]:
        """Everything that is set, our overrides last."""
        internal = {
            f"{topic}.{setting}": value
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            for setting, value in (("replication.factor", "1"), ("num.partitions", "4"))
        }
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"{self._overrides.get('node.id', 1)}@"
            f"127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},"
            f"CONTROLLER://127.0.0.1:{self._controller_port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data),
            "num.partitions": "4",
            "auto.create.topics.enable": "true",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # Or every ten minutes empty groups go, wherever a test has got to.
            "offsets.retention.check.interval.ms": "86400000",
            **internal,
            **self._overrides,
        }

    def configure(self) -> None:
        """Write the properties, and format nothing."""
        write_properties(self.properties_file, self.properties())

    def format(self) -> None:
        """Write the properties and format the data directory with Apache's own tool."""
        self.configure()
        arguments = ["format", "-t", self.cluster_id, "-c", str(self.properties_file)]
        done = run_java(
            "kafka.tools.StorageTool", [*arguments, *self.format_options], release=self._release
        )
        if done.exit_code != 0:
            raise JavaFailed(done.text)

    def command(self) -> list[str]:
        return java_command(
            "kafka.Kafka",
            [str(self.properties_file)],
            release=self._release,
            heap_mb=self._heap_mb,
            base_flags=self._flags,
            flags=["-Djudge.level=WARN"],
        )

    def is_ready(self) -> bool:
        return accepts(self._port)

    def __enter__(self) -> Self:
        jars.jar_directory(self._release)
        self.format()
        return super().__enter__()
