"""What the RPCs of the quorum check alike, in the order in which 4.3.1 checks it.

1. the cluster id, where one is given; 2. exactly one topic with one partition, the metadata log's;
3. for RPCs that only a leader serves: epoch, leadership, shutdown.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from kraft_wire.model import NO_REPLICA, ONE_UUID, Uuid
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import leader_address
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Endpoints, Leader
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "METADATA_PARTITION",
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "EndpointLike",
    "is_of_other_cluster",
    "leader_hint",
    "leader_only_error",
    "named_endpoints",
    "point_to_leader",
    "sole_partition",
    "voter_only_error",
]

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final[Uuid] = ONE_UUID
METADATA_PARTITION: Final = 0


class IndexedPartition(Protocol):
    """A partition of a request or response."""

    partition_index: int


PartitionT = TypeVar("PartitionT", bound=IndexedPartition, covariant=True)


class NamedTopic(Protocol[PartitionT]):
    """A topic of a request or response, by name."""

    @property
    def topic_name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[PartitionT]: ...


class EndpointLike(Protocol):
    """Name, host and port of a listener, of whatever message."""

    name: str
    host: str
    port: int


class NodeLike(Protocol):
    """Node id, host and port, of whatever message."""

    node_id: int
    host: str
    port: int


def is_of_other_cluster(quorum: Quorum, cluster_id: str | None) -> bool:
    """Tell whether a request names another cluster; no name is accepted."""
    assert quorum.config.cluster_id, "a replica knows its cluster"
    return cluster_id is not None and cluster_id != quorum.config.cluster_id


def sole_partition(topics: Sequence[NamedTopic[PartitionT]]) -> PartitionT | None:
    """Return the metadata partition's entry, None unless it is the only one."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    assert len(topics) == 1
    is_metadata = topic.topic_name == METADATA_TOPIC
    return partition if is_metadata and partition.partition_index == METADATA_PARTITION else None


def voter_only_error(quorum: Quorum, epoch: int, sender_id: int) -> ErrorCode:
    """Check what BeginQuorumEpoch and EndQuorumEpoch say of their sender."""
    assert quorum.epoch >= 0, quorum.epoch
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender_id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def leader_only_error(quorum: Quorum, epoch: int | None) -> ErrorCode:
    """Check an epoch (None where the request carries none), leadership and shutdown, in order."""
    assert quorum.epoch >= 0, quorum.epoch
    error = ErrorCode.NONE
    if epoch is not None and epoch < quorum.epoch:
        error = ErrorCode.FENCED_LEADER_EPOCH
    elif epoch is not None and epoch > quorum.epoch:
        error = ErrorCode.UNKNOWN_LEADER_EPOCH
    elif not isinstance(quorum.role, Leader):
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif quorum.shutdown_deadline_ms is not None:
        error = ErrorCode.BROKER_NOT_AVAILABLE
    if error is not ErrorCode.NONE:
        quorum.ignored.count(Ignored.NOT_THE_LEADER)
    return error


def leader_hint(quorum: Quorum, listener: str) -> tuple[int, Address] | None:
    """Return the leader's id and its address under the listener that a request came in on."""
    address = leader_address(quorum, listener)
    assert address is None or quorum.leader_id != NO_REPLICA
    return (quorum.leader_id, address) if address is not None else None


def point_to_leader(leader_id: int, nodes: Sequence[NodeLike]) -> Address | None:
    """Return the address that an answer gives for the leader it names."""
    for node in nodes:
        if node.node_id == leader_id and node.host and node.port > 0:
            return Address(node.host, node.port)
    assert nodes is not None
    return None


def named_endpoints(endpoints: Sequence[EndpointLike]) -> Endpoints:
    """Return listeners by upper-case name; nameless and unreachable ones are passed over."""
    found = {
        one.name.upper(): Address(one.host, one.port)
        for one in endpoints
        if one.name and one.host and one.port > 0
    }
    assert len(found) <= len(endpoints)
    return found
