"""BeginQuorumEpoch, API key 53, versions 0-1 (KIP-595 "BeginQuorumEpoch", KIP-853 endpoints).

Builder, request side, response side. A leader asserts its epoch towards voters that do not fetch.
"""

from kraft_wire.model import ReplicaId, ReplicaKey
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import adopt
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.raft.rpc.checks import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    accept_answer,
    is_of_other_cluster,
    leading_node,
    named_endpoints,
    sole_partition,
    voter_only_error,
)
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    LeaderEndpoint,
    NodeEndpoint,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["build_request", "on_request", "on_response"]


def build_request(quorum: Quorum, voter: ReplicaKey) -> BeginQuorumEpochRequest:
    """Announce the leader and its endpoints to one voter."""
    assert isinstance(quorum.role, Leader), quorum.role
    partition = PartitionData(
        partition_index=METADATA_PARTITION,
        voter_directory_id=voter.directory_id,
        leader_id=quorum.config.key.id,
        leader_epoch=quorum.epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=quorum.config.cluster_id,
        voter_id=voter.id,
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            LeaderEndpoint(name=name, host=address.host, port=address.port)
            for name, address in quorum.config.endpoints.items()
        ],
    )


def on_request(
    quorum: Quorum, event: RequestReceived, request: BeginQuorumEpochRequest, now_ms: int
) -> None:
    """Follow the leader that sends this request.

    Errors, first match wins: INCONSISTENT_CLUSTER_ID and INVALID_REQUEST at the top; for the
    partition FENCED_LEADER_EPOCH, INVALID_REQUEST (id), UNKNOWN_SERVER_ERROR for a second leader of
    one epoch, INVALID_VOTER_KEY, the last one after the leader was followed.
    Effects: PersistElectionState where epoch or leader changed, then one Reply.
    """
    if is_of_other_cluster(quorum, request.cluster_id):
        error = BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        quorum.effects.append(Reply(event.reply_to, error))
        return
    begun = sole_partition(request.topics)
    if begun is None:
        error = BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
        quorum.effects.append(Reply(event.reply_to, error))
        return
    assert begun.partition_index == METADATA_PARTITION
    code = voter_only_error(quorum, begun.leader_epoch, begun.leader_id)
    if code is ErrorCode.NONE:
        code = _follow(quorum, request, begun, now_ms)
    _answer(quorum, event, code)


def _follow(
    quorum: Quorum, request: BeginQuorumEpochRequest, begun: PartitionData, now_ms: int
) -> ErrorCode:
    assert begun.leader_epoch >= quorum.epoch, (begun, quorum.epoch)
    endpoints = named_endpoints(request.leader_endpoints)
    reason = adopt(
        quorum, begun.leader_epoch, begun.leader_id, endpoints, now_ms, is_first_hand=True
    )
    if reason is not None:
        quorum.ignored.count(reason)
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if request.voter_id >= 0 and not quorum.is_me(request.voter_id, begun.voter_directory_id):
        return ErrorCode.INVALID_VOTER_KEY
    return ErrorCode.NONE


def _answer(quorum: Quorum, event: RequestReceived, error: ErrorCode) -> None:
    partition = ResponsePartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
    )
    response = BeginQuorumEpochResponse(
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )
    response.node_endpoints = leading_node(quorum, event, NodeEndpoint, since=1)
    quorum.effects.append(Reply(event.reply_to, response))


def on_response(
    quorum: Quorum, sent: SendRequest, response: BeginQuorumEpochResponse, now_ms: int
) -> None:
    """Record a voter's endorsement, or adopt a newer leader."""
    role = quorum.role
    if accept_answer(quorum, sent, response, now_ms) is None:
        return
    assert sent.node_id != quorum.config.key.id, sent
    if not isinstance(role, Leader):
        quorum.ignored.count(Ignored.ROLE_CHANGED)
    else:
        assert quorum.role is role, "only a message of a higher epoch ends a leader"
        role.endorsements[ReplicaId(sent.node_id)] = True
