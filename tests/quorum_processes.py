"""Several ``kraft-wire server`` processes on 127.0.0.1 that are one quorum with static voters.

Each has a properties file and a directory that ``kraft-wire format`` made; ports are chosen once,
because voters are listed with theirs. A port is free while its server is down, and another test may
take it: a cluster id of its own keeps a quorum from obeying, or disturbing, one that did. Does not
look inside the servers.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from itertools import islice
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
from tests.command_forks import run_forked
from tests.ports import free_port
from tests.process import KRAFT_WIRE, KraftWireServer, Process, write_properties
from tests.server.wire_client import WireClient
from tests.waiting import until


def cluster_id_of(directory: Path) -> str:
    """Return an id as Kafka writes it: 16 bytes, and no dash in front, which would be an option."""
    digest = hashlib.sha256(str(directory.resolve()).encode()).digest()
    return base64.urlsafe_b64encode(b"kw" + digest[:14]).rstrip(b"=").decode()


class QuorumNode(KraftWireServer):
    """One of ours, with its files beside its directory."""

    def __init__(self, directory: Path, node_id: int, program: Sequence[str]) -> None:
        name = f"node-{node_id}"
        super().__init__(directory / f"{name}.log", directory / f"{name}.ready")
        self.program = program
        self._properties_file = directory / f"{name}.properties"

    def arguments(self) -> list[str]:
        return [str(self._properties_file)]


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
        self.controller_ports = {node_id: free_port() for node_id in range(1, size + 1)}
        self.client_ports = {node_id: free_port() for node_id in range(1, size + 1)}
        self.nodes = {node_id: self._node(node_id, program) for node_id in self.controller_ports}

    @property
    def node_ids(self) -> list[int]:
        """Everybody, running or not."""
        return list(self.controller_ports)

    @property
    def running(self) -> list[int]:
        """The nodes that were started and not ended."""
        return [node_id for node_id, node in self.nodes.items() if node.is_running]

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
            file = self.properties_file(node_id)
            write_properties(file, self.properties(node_id))
            arguments = ["format", "-t", self.cluster_id, *self.format_options, "-c", str(file)]
            run_forked(arguments).check_returncode()

    def start(self, node_id: int) -> None:
        """Start a process, and wait until it is ready: beside a broker, until there is a leader."""
        self.nodes[node_id].start()

    def log(self, node_id: int) -> str:
        """What a node has written."""
        return self.nodes[node_id].text

    def kill(self, node_id: int) -> None:
        """SIGKILL."""
        self.nodes[node_id].kill()

    def stop(self, node_id: int) -> int:
        """SIGTERM; returns the exit code."""
        return self.nodes[node_id].stop()

    def leader(self, *, other_than: int = -1) -> int:
        """Wait until a running node says that it leads, and return its id."""

        def found() -> list[int]:
            asked = (each for each in self.running if each != other_than)
            leads = (each for each in asked if self.describe(each).error_code == ErrorCode.NONE)
            return [*islice(leads, 1)]

        return until(found, lambda: [self.log(each) for each in self.running])[0]

    def describe(self, node_id: int) -> ResponsePartitionData:
        """Ask a controller to describe the quorum."""
        topic = TopicData(
            topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]
        )
        with WireClient(self.controller(node_id)) as client:
            answer = client.call(DescribeQuorumRequest(topics=[topic]), 2, DescribeQuorumResponse)
        return answer.topics[0].partitions[0]

    def properties_file(self, node_id: int) -> Path:
        """A node's server.properties."""
        return self.directory / f"node-{node_id}.properties"

    def _node(self, node_id: int, program: Sequence[str]) -> Process:
        return QuorumNode(self.directory, node_id, program)

    def __enter__(self) -> QuorumProcesses:
        self.format()
        try:
            for node in self.nodes.values():
                node.begin()
            for node in self.nodes.values():
                node.await_ready()
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
        for node in self.nodes.values():
            node.kill()
