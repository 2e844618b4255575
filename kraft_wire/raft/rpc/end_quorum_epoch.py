"""EndQuorumEpoch, API key 54, versions 0-1 (KIP-595 "EndQuorumEpoch", KIP-853 candidates).

Builder, request side, response side. A leader that resigned names its successors; each waits
according to its place in the list, so that the most advanced one is elected without a timeout.
"""

from kraft_wire.model import ReplicaId
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import adopt
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Resigned
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
from kraft_wire.raft.timing import end_quorum_backoff_ms
from kraft_wire.wire.generated.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    NodeEndpoint,
    PartitionData,
    ReplicaInfo,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["build_request", "on_request", "on_response"]


def build_request(quorum: Quorum, role: Resigned) -> EndQuorumEpochRequest:
    """Tell a voter that this epoch's leader has resigned, with the preferred successors.

    Successors are named by id for version 0 and by key for version 1.
    """
    assert quorum.leader_id == quorum.config.key.id, "only the former leader can end the epoch"
    partition = PartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=quorum.config.key.id,
        leader_epoch=quorum.epoch,
        preferred_successors=[key.id for key in role.preferred],
        preferred_candidates=[
            ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in role.preferred
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=quorum.config.cluster_id,
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
    )


def on_request(
    quorum: Quorum, event: RequestReceived, request: EndQuorumEpochRequest, now_ms: int
) -> None:
    """Note that the leader resigned; a follower campaigns after the wait of its place.

    Errors, first match wins: INCONSISTENT_CLUSTER_ID and INVALID_REQUEST at the top; for the
    partition FENCED_LEADER_EPOCH, INVALID_REQUEST (id), UNKNOWN_SERVER_ERROR for a second leader of
    one epoch. INCONSISTENT_VOTER_SET is never returned.
    Effects: PersistElectionState where epoch or leader changed, then one Reply.
    """
    if is_of_other_cluster(quorum, request.cluster_id):
        error = EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        quorum.effects.append(Reply(event.reply_to, error))
        return
    ended = sole_partition(request.topics)
    if ended is None:
        error = EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST)
        quorum.effects.append(Reply(event.reply_to, error))
        return
    assert ended.partition_index == METADATA_PARTITION
    code = voter_only_error(quorum, ended.leader_epoch, ended.leader_id)
    if code is ErrorCode.NONE:
        code = _prepare(quorum, request, ended, now_ms)
    _answer(quorum, event, code)


def _prepare(
    quorum: Quorum, request: EndQuorumEpochRequest, ended: PartitionData, now_ms: int
) -> ErrorCode:
    endpoints = named_endpoints(request.leader_endpoints)
    reason = adopt(
        quorum, ended.leader_epoch, ended.leader_id, endpoints, now_ms, is_first_hand=True
    )
    if reason is not None:
        quorum.ignored.count(reason)
        return ErrorCode.UNKNOWN_SERVER_ERROR
    role = quorum.role
    quorum.ended_epoch = quorum.epoch
    if isinstance(role, Follower) and quorum.leader_id == ended.leader_id:
        wait_ms = _successor_wait_ms(quorum, ended)
        assert wait_ms >= 0, wait_ms
        role.fetch_deadline_ms = now_ms + wait_ms
        role.has_fetched = False  # the leader itself says that its epoch needs a successor
    return ErrorCode.NONE


def _successor_wait_ms(quorum: Quorum, ended: PartitionData) -> int:
    """Return the wait of this replica; one that is not in the list waits like the last one."""
    candidates = ended.preferred_candidates
    if candidates:
        places = [quorum.is_me(c.candidate_id, c.candidate_directory_id) for c in candidates]
    else:
        places = [voter == quorum.config.key.id for voter in ended.preferred_successors]
    place = places.index(True) if True in places else len(places)
    assert 0 <= place <= len(places)
    backoff_max_ms = quorum.config.timing.election_backoff_max_ms
    return end_quorum_backoff_ms(place, len(places), backoff_max_ms)


def _answer(quorum: Quorum, event: RequestReceived, error: ErrorCode) -> None:
    partition = ResponsePartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
    )
    response = EndQuorumEpochResponse(
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )
    response.node_endpoints = leading_node(quorum, event, NodeEndpoint, since=1)
    quorum.effects.append(Reply(event.reply_to, response))


def on_response(
    quorum: Quorum, sent: SendRequest, response: EndQuorumEpochResponse, now_ms: int
) -> None:
    """Note a voter's answer; follow a newer leader, also during a stop."""
    role = quorum.role
    if accept_answer(quorum, sent, response, now_ms) is None:
        return
    assert sent.node_id != quorum.config.key.id, sent
    if quorum.role is not role or not isinstance(role, Resigned):
        quorum.ignored.count(Ignored.ROLE_CHANGED)
    else:
        role.acknowledged[ReplicaId(sent.node_id)] = True
