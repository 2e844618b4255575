"""A ``kraft-wire server`` that is only a broker, as a process beside controllers elsewhere."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.ending import end
from tests.ports import free_port
from tests.quorum_processes import KRAFT_WIRE, SECONDS_MAX


class BrokerProcess:
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
        self.directory = directory
        self.node_id = node_id
        self.data = directory / "data"
        self.port = free_port()
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
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def properties_file(self) -> Path:
        """The server.properties that it runs with."""
        return self.directory / "server.properties"

    def log(self) -> str:
        """What it has written."""
        return (self.directory / "server.log").read_text(errors="replace")

    def format(self) -> None:
        """Write the properties and format the directory."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}={value}\n" for key, value in self._settings.items()]
        self.properties_file.write_text("".join(lines))
        command = [KRAFT_WIRE, "format", "-t", self._cluster_id, "-c", str(self.properties_file)]
        subprocess.run(command, check=True, capture_output=True)

    def start(self) -> dict[str, object]:
        """Start the process and wait until it runs; return what its ready file says."""
        self.begin()
        ready = self.directory / "ready.json"
        assert self._process is not None
        deadline = time.monotonic() + SECONDS_MAX
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(self.log())
            time.sleep(0.002)
        facts: dict[str, object] = json.loads(ready.read_text())
        return facts

    def begin(self) -> None:
        """Start the process."""
        assert self._process is None, "the broker is running"
        ready = self.directory / "ready.json"
        ready.unlink(missing_ok=True)
        command = [KRAFT_WIRE, "server", str(self.properties_file), "--ready-file", str(ready)]
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def wait(self) -> int:
        """Wait until the process ends by itself, and give its exit code."""
        assert self._process is not None
        process, self._process = self._process, None
        return process.wait(SECONDS_MAX)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        return 0 if process is None else end(process, number, SECONDS_MAX)

    def __enter__(self) -> BrokerProcess:
        self.format()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
