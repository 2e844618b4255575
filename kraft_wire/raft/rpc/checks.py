"""Common checks of the quorum's RPCs, in the order of 4.3.1.

1. the cluster id, if given; 2. exactly one topic with one partition, the metadata log's; 3. for
RPCs that only a leader serves: epoch, leadership, shutdown. And common fields of their answers: the
leader and its address.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from kraft_wire.model import NO_REPLICA, ONE_UUID, Uuid
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import leader_address, learn, set_aside
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Endpoints, Leader
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.primitives import STRING_BYTES_MAX
from kraft_wire.wire.varint import utf8_from_text

__all__ = [
    "METADATA_PARTITION",
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "EndpointLike",
    "accept_answer",
    "is_of_other_cluster",
    "leader_only_error",
    "leading_node",
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


class VoterAnswer(IndexedPartition, Protocol):
    """The partition in a voter's answer."""

    error_code: int
    leader_id: int
    leader_epoch: int


AnswerT = TypeVar("AnswerT", bound=VoterAnswer, covariant=True)


class VoterResponse(Protocol[AnswerT]):
    """An answer to Vote, BeginQuorumEpoch or EndQuorumEpoch."""

    error_code: int

    @property
    def topics(self) -> Sequence[NamedTopic[AnswerT]]: ...

    @property
    def node_endpoints(self) -> "Sequence[NodeLike]": ...


class EndpointLike(Protocol):
    """Name, host and port of a listener, of any message."""

    name: str
    host: str
    port: int


class NodeLike(Protocol):
    """Node id, host and port, of any message."""

    node_id: int
    host: str
    port: int


NodeT = TypeVar("NodeT", covariant=True)


class NodeClass(Protocol[NodeT]):
    """The class of an answer's node endpoints, of any message."""

    def __call__(self, *, node_id: int, host: str, port: int) -> NodeT: ...


def is_of_other_cluster(quorum: Quorum, cluster_id: str | None) -> bool:
    """Return whether a request names another cluster; a null name is accepted."""
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
    """Check the sender of BeginQuorumEpoch or EndQuorumEpoch."""
    assert quorum.epoch >= 0, quorum.epoch
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender_id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def leader_only_error(quorum: Quorum, epoch: int | None) -> ErrorCode:
    """Check an epoch (None if the request has none), leadership and shutdown, in order."""
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


def leading_node(
    quorum: Quorum, event: RequestReceived, node: NodeClass[NodeT], *, since: int
) -> list[NodeT]:
    """Return the `node_endpoints` of an answer: the leader, if it is known (KIP-853).

    Its address is that of the listener which received the request. Versions below `since` have no
    such field.
    """
    address = leader_address(quorum, event.listener) if event.version >= since else None
    assert address is None or quorum.leader_id != NO_REPLICA
    if address is None:
        return []
    return [node(node_id=quorum.leader_id, host=address.host, port=address.port)]


def point_to_leader(leader_id: int, nodes: Sequence[NodeLike]) -> Address | None:
    """Return the leader's address in an answer."""
    for node in nodes:
        if node.node_id == leader_id and node.host and node.port > 0:
            return Address(node.host, node.port)
    return None


def accept_answer(
    quorum: Quorum, sent: SendRequest, response: VoterResponse[AnswerT], now_ms: int
) -> AnswerT | None:
    """Adopt epoch and leader from a voter's answer, and return its partition.

    None if the answer has no further effect: it was ignored for a named reason.
    """
    assert sent.node_id != quorum.config.key.id, sent
    if response.error_code != ErrorCode.NONE:
        set_aside(quorum, sent, Ignored.TOP_LEVEL_ERROR, now_ms)
        return None
    answer = sole_partition(response.topics)
    if answer is None:
        set_aside(quorum, sent, Ignored.BAD_SHAPE, now_ms)
        return None
    leader_id = answer.leader_id
    if _is_mistaken_for_leader(quorum, leader_id, answer.leader_epoch):
        # A granted vote counts anyway: without it the quorum may never elect a leader.
        quorum.ignored.count(Ignored.NAMED_AS_LEADER)
        leader_id = NO_REPLICA
    address = point_to_leader(leader_id, response.node_endpoints)
    error = answer.error_code
    if not learn(quorum, sent, error, leader_id, answer.leader_epoch, address, now_ms):
        return None
    if error != ErrorCode.NONE:
        set_aside(quorum, sent, Ignored.PARTITION_ERROR, now_ms)
        return None
    return answer


def _is_mistaken_for_leader(quorum: Quorum, leader_id: int, leader_epoch: int) -> bool:
    """Return whether a peer names this replica as leader of an epoch that it does not lead.

    It led before it lost its disk, or never: then the message was corrupted.
    """
    own = quorum.config.key.id
    assert own != NO_REPLICA, "observers ask for no votes"
    return leader_id == own and leader_epoch == quorum.epoch and quorum.leader_id != own


def named_endpoints(endpoints: Sequence[EndpointLike]) -> Endpoints:
    """Return listeners by upper-case name; skip those without name, host or port.

    Letters in upper case may take more bytes than they were sent in: a listener whose name is too
    long for a record then is skipped, too.
    """
    found = {
        name: Address(one.host, one.port)
        for one, name in ((each, each.name.upper()) for each in endpoints)
        if 0 < len(utf8_from_text(name)) <= STRING_BYTES_MAX and one.host and one.port > 0
    }
    assert len(found) <= len(endpoints)
    return found
