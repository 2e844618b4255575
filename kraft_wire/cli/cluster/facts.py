"""State of a cluster of processes: its quorum, and the partitions of its brokers.

The active controller reports the quorum, the broker with the newest metadata everything else: a
broker that is cut off, or has just restarted, would report an old state.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kraft_wire.cli.cluster.lag import offsets_behind
from kraft_wire.cli.cluster.state import ClusterState, NodeState
from kraft_wire.cli.quorum.admin import EntryPoint, QuorumAdmin, QuorumRefused
from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts
from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from kraft_wire.wire.message import UnencodableMessage

__all__ = ["BrokerFacts", "ClusterFacts", "ClusterQuestions"]

_NO_ANSWER: Final = (BrokerConnectionError, QuorumRefused, UnencodableMessage)


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """One broker that is not fenced, and the partitions that it has a replica of."""

    leads_count: int = 0
    replicas_count: int = 0
    in_sync_count: int = 0
    """Of its replicas."""
    under_replicated_count: int = 0
    """Of the partitions that it leads."""
    behind_count: int = 0
    """Offsets that its replicas outside the ISR lack."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The state of a cluster at one moment; a part without a response is None."""

    quorum: QuorumFacts | None = None
    brokers: Mapping[int, BrokerFacts] | None = None
    partitions_count: int = 0
    under_replicated_count: int = 0
    leaderless_count: int = 0

    @property
    def leader(self) -> tuple[int, int] | None:
        """The active controller and its epoch."""
        quorum = self.quorum
        return None if quorum is None else (quorum.leader_id, quorum.leader_epoch)

    @property
    def partitions(self) -> str | None:
        """The state of the partitions, as a line."""
        if self.brokers is None:
            return None
        count = self.partitions_count
        return (
            f"{count} partition{'' if count == 1 else 's'}, {self.under_replicated_count} "
            f"under-replicated, {self.leaderless_count} without a leader"
        )

    def replica(self, node_id: int) -> ReplicaFacts | None:
        """Return a node's replica of the metadata; of two disks the one that fetched last."""
        known = () if self.quorum is None else self.quorum.replicas
        found = [each for each in known if each.node_id == node_id]
        return max(found, key=lambda each: each.last_fetch_ms or 0, default=None)


class ClusterQuestions:
    """Queries one cluster, first its last known leader."""

    def __init__(self, state: ClusterState, *, patience_s: float, answer_s: float) -> None:
        """`patience_s` is how long a leader is looked for, `answer_s` one answer waited for."""
        self._state = state
        self._answer_s = answer_s
        running = [each for each in state.controllers if each.condition == "running"]
        addresses = tuple(each.controller_address for each in running or state.controllers)
        self._quorum = QuorumAdmin(
            EntryPoint(addresses, are_controllers=True),
            patience_s=patience_s,
            connection_s=answer_s,
        )

    def ask(self) -> ClusterFacts:
        """Return the present state."""
        quorum = self.quorum()
        metadata = self._metadata(quorum)
        if metadata is None:
            return ClusterFacts(quorum)
        addresses = {each.node_id: each.address for each in self._running_brokers()}
        return _facts(quorum, metadata, offsets_behind(metadata, addresses, self._answer_s))

    def quorum(self) -> QuorumFacts | None:
        """Return the active controller's description of the quorum; None without an active
        controller.
        """
        try:
            return self._quorum.describe()
        except _NO_ANSWER:
            return None

    def _metadata(self, quorum: QuorumFacts | None) -> MetadataResponse | None:
        ends = {
            each.node_id: each.log_end_offset or 0
            for each in (() if quorum is None else quorum.replicas)
        }
        for node in sorted(self._running_brokers(), key=lambda each: -ends.get(each.node_id, -1)):
            try:
                with BrokerConnection(node.address, timeout_s=self._answer_s) as connection:
                    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
                    return connection.send(request, MetadataResponse)
            except _NO_ANSWER:
                continue
        return None

    def _running_brokers(self) -> list[NodeState]:
        return [each for each in self._state.brokers if each.condition == "running"]


def _facts(
    quorum: QuorumFacts | None, metadata: MetadataResponse, behind: Mapping[int, int]
) -> ClusterFacts:
    partitions = [each for topic in metadata.topics for each in topic.partitions]
    return ClusterFacts(
        quorum,
        _broker_facts(metadata, behind),
        partitions_count=len(partitions),
        under_replicated_count=sum(len(p.isr_nodes) < len(p.replica_nodes) for p in partitions),
        leaderless_count=sum(p.leader_id < 0 for p in partitions),
    )


def _broker_facts(metadata: MetadataResponse, behind: Mapping[int, int]) -> dict[int, BrokerFacts]:
    """Return the state of each broker in the metadata."""
    leads, replicas, in_sync, under = (Counter[int]() for _ in range(4))
    for topic in metadata.topics:
        for each in topic.partitions:
            leads[each.leader_id] += 1
            replicas.update(each.replica_nodes)
            in_sync.update(each.isr_nodes)
            under[each.leader_id] += len(each.isr_nodes) < len(each.replica_nodes)
    return {
        node_id: BrokerFacts(
            leads_count=leads[node_id],
            replicas_count=replicas[node_id],
            in_sync_count=in_sync[node_id],
            under_replicated_count=under[node_id],
            behind_count=behind.get(node_id, 0),
        )
        for node_id in sorted(each.node_id for each in metadata.brokers)
    }
