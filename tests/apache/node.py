"""One combined Apache Kafka node (broker and controller) on free ports of 127.0.0.1.

The peer that every client harness and every tool must pass first: what fails against it is a
mistake of the test. Formatting and starting take seconds, so tests share one per session.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS, JavaFailed, java_command, run_java
from tests.ending import end
from tests.ports import free_port

CLUSTER_ID = "kWjudgeAAAAAAAAAAAAAAA"
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60


class ApacheNode:
    """Format a directory, start one 4.3.1 node over it, stop it, start it again."""

    def __init__(
        self,
        directory: Path,
        *,
        overrides: Mapping[str, str] | None = None,
        heap_mb: int = 384,
        flags: Sequence[str] = (*LEAN_FLAGS, "-Xms64m"),
    ) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "apache.log"
        self._heap_mb = heap_mb
        self._flags = list(flags)
        self._port = free_port()
        self._controller_port = free_port()
        self._overrides = dict(overrides or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the broker's listener."""
        return f"127.0.0.1:{self._port}"

    @property
    def controller_bootstrap(self) -> str:
        """``host:port`` of the controller's listener."""
        return f"127.0.0.1:{self._controller_port}"

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        assert self._process is not None, "the node is not running"
        return self._process.pid

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
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
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

    def format(self) -> None:
        """Write the properties and format the data directory with Apache's own tool."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}={value}\n" for key, value in self.properties().items()]
        self.properties_file.write_text("".join(lines))
        arguments = ["format", "-t", CLUSTER_ID, "-c", str(self.properties_file)]
        done = run_java("kafka.tools.StorageTool", arguments)
        if done.exit_code != 0:
            raise JavaFailed(done.text)

    def start(self) -> None:
        """Start the node and wait until its listener answers."""
        assert self._process is None, "the node is running"
        command = java_command(
            "kafka.Kafka",
            [str(self.properties_file)],
            heap_mb=self._heap_mb,
            base_flags=self._flags,
            flags=["-Djudge.level=WARN"],
        )
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.directory
            )
        try:
            self._await_listener()
        except BaseException:
            self.kill()
            raise

    def _await_listener(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise JavaFailed(self.log.read_text(errors="replace")[-4000:])
            time.sleep(0.1)

    def stop(self) -> int:
        """SIGTERM: a controlled shutdown that leaves clean logs."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """A graceful stop and a new start over the same data."""
        self.stop()
        self.start()

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return 0
        return end(process, number, STOP_SECONDS_MAX)

    def __enter__(self) -> ApacheNode:
        jars.jar_directory()
        self.format()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
