"""Several ``kraft-wire server`` processes on 127.0.0.1 that are one quorum with static voters.

Each has a properties file and a directory that ``kraft-wire format`` made; ports are chosen once,
because voters are listed with theirs. A port is free while its server is down, and another test may
take it: a cluster id of its own keeps a quorum from obeying, or disturbing, one that did. Does not
look inside the servers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.ending import end
from tests.ports import free_port
from tests.server.wire_client import WireClient
from tests.waiting import HANG_S

SECONDS_MAX = HANG_S
KRAFT_WIRE = str(Path(sys.executable).parent / "kraft-wire")


def cluster_id_of(directory: Path) -> str:
    """Return an id as Kafka writes it: 16 bytes, and no dash in front, which would be an option."""
    digest = hashlib.sha256(str(directory.resolve()).encode()).digest()
    return base64.urlsafe_b64encode(b"kw" + digest[:14]).rstrip(b"=").decode()


class QuorumProcesses:
    """Processes by node id, 1 to ``size``; ``combined`` ones are brokers too."""

    def __init__(
        self,
        directory: Path,
        size: int = 3,
        *,
        is_combined: bool = False,
        overrides: Mapping[str, str] | None = None,
        format_options: Sequence[str] = (),
        program: Sequence[str] = (KRAFT_WIRE,),
    ) -> None:
        self.directory = directory
        self.cluster_id = cluster_id_of(directory)
        self.is_combined = is_combined
        self.overrides = dict(overrides or {})
        self.format_options = list(format_options)
        self.program = list(program)
        self.controller_ports = {node_id: free_port() for node_id in range(1, size + 1)}
        self.client_ports = {node_id: free_port() for node_id in range(1, size + 1)}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def node_ids(self) -> list[int]:
        """Everybody, running or not."""
        return list(self.controller_ports)

    @property
    def running(self) -> list[int]:
        """Who was started and not ended."""
        return sorted(self._processes)

    def controller(self, node_id: int) -> str:
        """``host:port`` of a node's controller listener."""
        return f"127.0.0.1:{self.controller_ports[node_id]}"

    def client(self, node_id: int) -> str:
        """``host:port`` of a combined node's listener for clients."""
        return f"127.0.0.1:{self.client_ports[node_id]}"

    def properties(self, node_id: int) -> dict[str, str]:
        """A node's server.properties."""
        listeners = [f"CONTROLLER://{self.controller(node_id)}"]
        if self.is_combined:
            listeners.append(f"PLAINTEXT://{self.client(node_id)}")
        voters = [f"{each}@{self.controller(each)}" for each in self.node_ids]
        return {
            "process.roles": "broker,controller" if self.is_combined else "controller",
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": str(self.directory / f"node-{node_id}"),
            **self.overrides,
        }

    def format(self) -> None:
        """Write the properties and format the directories."""
        for node_id in self.node_ids:
            lines = [f"{key}={value}\n" for key, value in self.properties(node_id).items()]
            self._file(node_id, "properties").write_text("".join(lines))
            command = [KRAFT_WIRE, "format", "-t", self.cluster_id, *self.format_options]
            command += ["-c", str(self._file(node_id, "properties"))]
            subprocess.run(command, check=True, capture_output=True)

    def start(self, node_id: int) -> None:
        """Start a process and wait until it says that it is ready."""
        self.begin(node_id)
        self.await_ready(node_id)

    def begin(self, node_id: int) -> None:
        """Start a process; a broker beside a controller is ready once there is a majority."""
        assert node_id not in self._processes, node_id
        ready = self._file(node_id, "ready")
        ready.unlink(missing_ok=True)
        with self._file(node_id, "log").open("ab") as log:
            process = subprocess.Popen(
                [*self.program, "server", self._file(node_id, "properties"), "--ready-file", ready],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self._processes[node_id] = process

    def await_ready(self, node_id: int) -> None:
        """Wait until a process that was started says that it is ready."""
        process, ready = self._processes[node_id], self._file(node_id, "ready")
        deadline = time.monotonic() + SECONDS_MAX
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(self.log(node_id))
            time.sleep(0.002)

    def ready(self, node_id: int) -> dict[str, object]:
        """What a node's ready file says."""
        facts: dict[str, object] = json.loads(self._file(node_id, "ready").read_text())
        return facts

    def log(self, node_id: int) -> str:
        """What a node has written."""
        return self._file(node_id, "log").read_text(errors="replace")

    def kill(self, node_id: int) -> None:
        """SIGKILL."""
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int) -> int:
        """SIGTERM; returns the exit code."""
        return self._end(node_id, signal.SIGTERM)

    def leader(self, *, other_than: int = -1) -> int:
        """Wait until a running node says that it leads, and return its id."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            for node_id in self.running:
                if node_id != other_than and self.describe(node_id).error_code == ErrorCode.NONE:
                    return node_id
            time.sleep(0.02)
        raise AssertionError({node_id: self.log(node_id) for node_id in self.running})

    def describe(self, node_id: int) -> ResponsePartitionData:
        """Ask a controller to describe the quorum."""
        topic = TopicData(
            topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]
        )
        with WireClient(self.controller(node_id)) as client:
            answer = client.call(DescribeQuorumRequest(topics=[topic]), 2, DescribeQuorumResponse)
        return answer.topics[0].partitions[0]

    def _file(self, node_id: int, kind: str) -> Path:
        return self.directory / f"node-{node_id}.{kind}"

    def _end(self, node_id: int, number: signal.Signals) -> int:
        process = self._processes.pop(node_id)
        return end(process, number, SECONDS_MAX)

    def __enter__(self) -> QuorumProcesses:
        self.format()
        try:
            for node_id in self.node_ids:
                self.begin(node_id)
            for node_id in self.node_ids:
                self.await_ready(node_id)
        except BaseException:
            self._kill_all()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill_all()

    def _kill_all(self) -> None:
        for node_id in list(self._processes):
            self.kill(node_id)
