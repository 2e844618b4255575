"""A leader's description of its quorum as plain values, with derived ones.

Lags are in offsets, times are times of day in milliseconds; None means unknown to the leader. The
figures are those of `kafka-metadata-quorum describe`.
"""

from dataclasses import dataclass

from kraft_wire.model import ZERO_UUID, uuid_to_text
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumResponse,
    ReplicaState,
    ResponsePartitionData,
)

__all__ = ["QuorumFacts", "ReplicaFacts", "facts_of"]


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """One voter or observer."""

    node_id: int
    directory_id: str | None
    """22 characters; None if unknown, as in a static quorum."""
    log_end_offset: int | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None
    endpoints: tuple[str, ...]
    """NAME://host:port of each listener."""


@dataclass(frozen=True, slots=True)
class QuorumFacts:
    """A quorum, as its leader sees it."""

    cluster_id: str
    leader_id: int
    leader_epoch: int
    high_watermark: int | None
    voters: tuple[ReplicaFacts, ...]
    observers: tuple[ReplicaFacts, ...]

    @property
    def leader(self) -> ReplicaFacts | None:
        """The leader as a voter; None while it removes itself."""
        return next((each for each in self.voters if each.node_id == self.leader_id), None)

    @property
    def slowest(self) -> ReplicaFacts | None:
        """The voter whose log ends first."""
        return min(self.voters, key=lambda each: _end(each), default=None)

    @property
    def max_follower_lag(self) -> int | None:
        """How many offsets the slowest voter is behind."""
        leader, slowest = self.leader, self.slowest
        return None if leader is None or slowest is None else _end(leader) - _end(slowest)

    @property
    def max_follower_lag_ms(self) -> int | None:
        """How long it is behind; 0 for the leader itself."""
        leader, slowest = self.leader, self.slowest
        if leader is None or slowest is None:
            return None
        if leader is slowest:
            return 0
        if leader.last_caught_up_ms is None or slowest.last_caught_up_ms is None:
            return None
        return leader.last_caught_up_ms - slowest.last_caught_up_ms

    def lag(self, replica: ReplicaFacts) -> int | None:
        """How many offsets a replica is behind the leader."""
        leader = self.leader
        return None if leader is None else _end(leader) - _end(replica)

    def status(self, replica: ReplicaFacts) -> str:
        """Leader, Follower or Observer."""
        if replica.node_id == self.leader_id:
            return "Leader"
        return "Observer" if replica in self.observers else "Follower"

    @property
    def replicas(self) -> tuple[ReplicaFacts, ...]:
        """All replicas: the leader, the other voters, the observers."""
        first = [each for each in self.voters if each.node_id == self.leader_id]
        others = [each for each in self.voters if each.node_id != self.leader_id]
        return (*first, *others, *self.observers)


def facts_of(
    cluster_id: str, response: DescribeQuorumResponse, partition: ResponsePartitionData
) -> QuorumFacts:
    """Read a response without an error."""
    endpoints = {
        node.node_id: tuple(f"{each.name}://{each.host}:{each.port}" for each in node.listeners)
        for node in response.nodes
    }
    return QuorumFacts(
        cluster_id=cluster_id,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=_known(partition.high_watermark),
        voters=tuple(_replica(each, endpoints) for each in partition.current_voters),
        observers=tuple(_replica(each, endpoints) for each in partition.observers),
    )


def _replica(state: ReplicaState, endpoints: dict[int, tuple[str, ...]]) -> ReplicaFacts:
    directory_id = state.replica_directory_id
    return ReplicaFacts(
        node_id=state.replica_id,
        directory_id=None if directory_id == ZERO_UUID else uuid_to_text(directory_id),
        log_end_offset=_known(state.log_end_offset),
        last_fetch_ms=_known(state.last_fetch_timestamp),
        last_caught_up_ms=_known(state.last_caught_up_timestamp),
        endpoints=endpoints.get(state.replica_id, ()),
    )


def _known(number: int) -> int | None:
    return None if number == -1 else number


def _end(replica: ReplicaFacts) -> int:
    """Return a log end as in the response, so that a voter that never fetched is the slowest."""
    return -1 if replica.log_end_offset is None else replica.log_end_offset
