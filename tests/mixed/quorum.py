"""A quorum of controllers of either make, and what can be asked of it over the wire.

Members are named by node id; ports are chosen once. The quorum is static, by
`controller.quorum.voters`, where voters are given, else found by its bootstrap servers.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    ResponsePartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.apache.java_process import Outcome
from tests.apache.tools import run_tool
from tests.chaos.network import Network, host_of
from tests.mixed.controller import Controller
from tests.ports import free_port
from tests.server.wire_client import WireClient

SECONDS_MAX = 90.0
ASKING_AGAIN_S = 0.05
SHORT = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.request.timeout.ms": "1500",
    "controller.quorum.election.backoff.max.ms": "500",
}
SNAPSHOTS_OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "metadata.max.retention.bytes": "4000",
}

Answer = TypeVar("Answer")


class MixedQuorum:
    """Controllers by node id; see the module."""

    seconds_max = SECONDS_MAX
    """Of every wait."""

    def __init__(
        self,
        home: Path,
        makes: Mapping[int, str],
        *,
        voters: Iterable[int] = (),
        bootstrap: Iterable[int] = (),
        overrides: Mapping[str, str] | None = None,
        own: Mapping[int, Mapping[str, str]] | None = None,
        network: Network | None = None,
    ) -> None:
        """`makes` says who is whose; `own` are properties of single nodes.

        Whoever is not among `voters`, where they are given, finds them by `bootstrap`.
        """
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self._ports = {node_id: free_port() for node_id in makes}
        self._hosts = {node_id: host_of(node_id, network) for node_id in makes}
        self._voters = tuple(voters)
        self._bootstrap = tuple(bootstrap) or self._voters or tuple(makes)
        self._overrides = {**SHORT, **(overrides or {})}
        self.nodes = {
            node_id: Controller(
                node_id,
                make,
                home,
                self._ports[node_id],
                {**self._properties(node_id), **(own or {}).get(node_id, {})},
            )
            for node_id, make in makes.items()
        }
        for node in self.nodes.values():
            node.live_in(network)

    def _properties(self, node_id: int) -> dict[str, str]:
        def addresses(node_ids: Iterable[int], form: str) -> str:
            return ",".join(form.format(each, self._place(each)) for each in node_ids)

        found = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{self._place(node_id)}",
            "log.dirs": str(self.home / f"node-{node_id}"),
            **self._overrides,
        }
        if node_id in self._voters:
            found["controller.quorum.voters"] = addresses(self._voters, "{}@{}")
        else:
            servers = addresses(self._bootstrap, "{1}")
            found["controller.quorum.bootstrap.servers"] = servers
        return found

    def _place(self, node_id: int) -> str:
        return f"{self._hosts[node_id]}:{self._ports[node_id]}"

    def __getitem__(self, node_id: int) -> Controller:
        return self.nodes[node_id]

    def voter_text(self, node_id: int, directory_id: str) -> str:
        """A voter as --initial-controllers wants it."""
        return f"{node_id}@{self._place(node_id)}:{directory_id}"

    def start(self, *node_ids: int) -> None:
        """Start processes, all of them where none is named."""
        for node_id in node_ids or self.nodes:
            self.nodes[node_id].start()

    @property
    def answering(self) -> list[int]:
        """Who can be asked."""
        return [node_id for node_id, node in self.nodes.items() if node.answers]

    # -- asking ----------------------------------------------------------------------------------

    def until(self, what: str, ask: Callable[[], Answer | None]) -> Answer:
        """Ask until the answer is one; fail with everybody's log after a while."""
        deadline = time.monotonic() + self.seconds_max
        while True:
            try:
                answer = ask()
            except OSError:
                answer = None
            if answer:
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {self.seconds_max:.0f} s\n{self.logs()}")
            time.sleep(ASKING_AGAIN_S)

    def logs(self) -> str:
        """The ends of all logs."""
        return "\n".join(
            f"--- node {each.node_id} ({each.make})\n{each.text[-3000:]}"
            for each in self.nodes.values()
        )

    def ask(self, node_id: int) -> ResponsePartitionData | None:
        """What a node says of the quorum; None where it does not lead or does not answer."""
        topic = TopicData(
            topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]
        )
        request = DescribeQuorumRequest(topics=[topic])
        try:
            with WireClient(self[node_id].address) as client:
                client.sock.settimeout(2)
                answer = client.call(request, 2, DescribeQuorumResponse)
        except (OSError, AssertionError):
            return None
        if answer.error_code or not answer.topics:
            return None
        (partition,) = answer.topics[0].partitions
        return partition if partition.error_code == ErrorCode.NONE else None

    def describe(self, *, among: Iterable[int] = ()) -> ResponsePartitionData:
        """What the leader says, which must be one of `among` where given."""
        wanted = set(among) or set(self.nodes)

        def asked() -> ResponsePartitionData | None:
            found = [self.ask(node_id) for node_id in self.answering]
            led = [each for each in found if each is not None and each.leader_id in wanted]
            return max(led, key=lambda each: each.leader_epoch, default=None)

        return self.until(f"a leader among {sorted(wanted)}", asked)

    def leader(self, *, among: Iterable[int] = ()) -> int:
        """Wait for a leader."""
        return self.describe(among=among).leader_id

    def make_lead(self, *wanted: int) -> int:
        """Pause whoever else leads until one of the wanted does."""
        while (leader := self.leader()) not in wanted:
            self[leader].pause()
            self.leader(among=set(self.nodes) - {leader})
            self[leader].resume()
        return leader

    def until_listening(self, node_id: int) -> None:
        """Wait until a node takes connections, which Apache's do last when they start."""

        def connected() -> bool:
            if self[node_id].died:
                ended = f"node {node_id} ended by itself"
                raise AssertionError(f"{ended}\n{self[node_id].text[-3000:]}")
            with socket.create_connection((self[node_id].host, self[node_id].port), timeout=1):
                return True

        self.until(f"node {node_id} listens", connected)

    def has_caught_up(self, node_id: int) -> ReplicaState:
        """Wait until the leader's high watermark of this moment was fetched by a node."""
        target = self.describe().high_watermark

        def asked() -> ReplicaState | None:
            described = self.describe()
            states = [*described.current_voters, *described.observers]
            own = [each for each in states if each.replica_id == node_id]
            return next((each for each in own if each.log_end_offset >= max(target, 1)), None)

        return self.until(f"node {node_id} at {target}", asked)

    def tool(self, name: str, *arguments: str, node_id: int | None = None) -> Outcome:
        """Run one of Apache's tools against a controller (the leader's, if none is named)."""
        address = self[self.leader() if node_id is None else node_id].address
        return run_tool(name, ["--bootstrap-controller", address, *arguments])

    # -- the end ---------------------------------------------------------------------------------

    def __enter__(self) -> MixedQuorum:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes.values():
            node.kill()
