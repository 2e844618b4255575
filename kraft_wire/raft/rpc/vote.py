"""Vote, API key 52, versions 0-2 (KIP-595 "Vote", KIP-853 voter keys, KIP-996 pre-votes).

Builder, request side, response side. An answer does not show whether it is for a vote or a
pre-vote: the sender's role does, and a change of role drops outstanding requests.
"""

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, ReplicaId, ReplicaKey
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.elections import grants_pre_vote, grants_vote, is_up_to_date
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.quorum import EPOCH_MAX, Quorum
from kraft_wire.raft.roles import Candidate, Prospective
from kraft_wire.raft.rpc.checks import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    accept_answer,
    is_of_other_cluster,
    leading_node,
    sole_partition,
)
from kraft_wire.raft.transitions import Trigger
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.vote import (
    NodeEndpoint,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
    VoteRequest,
    VoteResponse,
)

__all__ = ["build_request", "on_request", "on_response"]


def build_request(quorum: Quorum, voter: ReplicaId, *, pre_vote: bool) -> VoteRequest:
    """Ask one voter; a pre-vote has the current epoch, a vote the epoch raised for it."""
    assert isinstance(quorum.role, Prospective if pre_vote else Candidate), quorum.role
    partition = PartitionData(
        partition_index=METADATA_PARTITION,
        replica_epoch=quorum.epoch,
        replica_id=quorum.config.key.id,
        replica_directory_id=quorum.config.key.directory_id,
        voter_directory_id=quorum.voters.latest.nodes[voter].key.directory_id,
        last_offset_epoch=quorum.log.last_epoch,
        last_offset=quorum.log.log_end_offset,
        pre_vote=pre_vote,
    )
    return VoteRequest(
        cluster_id=quorum.config.cluster_id,
        voter_id=voter,
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
    )


def on_request(quorum: Quorum, event: RequestReceived, request: VoteRequest, now_ms: int) -> None:
    """Answer a candidate or a replica that may become one.

    Errors, first match wins: INCONSISTENT_CLUSTER_ID and INVALID_REQUEST at the top; for the
    partition INVALID_REQUEST (offsets, epochs), FENCED_LEADER_EPOCH, INVALID_REQUEST (id),
    INVALID_VOTER_KEY, the last one after the higher epoch was adopted. A refusal is not an error.
    Effects: PersistElectionState where epoch or vote changed, then one Reply.
    """
    if is_of_other_cluster(quorum, request.cluster_id):
        _refuse(quorum, event, ErrorCode.INCONSISTENT_CLUSTER_ID)
        return
    asked = sole_partition(request.topics)
    assert quorum.epoch <= EPOCH_MAX, quorum.epoch
    if asked is None:
        _refuse(quorum, event, ErrorCode.INVALID_REQUEST)
        return
    error = _number_error(quorum, asked)
    if error is ErrorCode.NONE and asked.replica_epoch > quorum.epoch:
        quorum.become_unattached(Trigger.HIGHER_EPOCH, LeaderEpoch(asked.replica_epoch), now_ms)
    is_for_other = request.voter_id >= 0 and not quorum.is_me(
        request.voter_id, asked.voter_directory_id
    )
    if error is ErrorCode.NONE and is_for_other:
        error = ErrorCode.INVALID_VOTER_KEY
    granted = error is ErrorCode.NONE and _decide(quorum, asked, now_ms)
    _answer(quorum, event, error, granted=granted)


def _number_error(quorum: Quorum, asked: PartitionData) -> ErrorCode:
    epoch, last_epoch = asked.replica_epoch, asked.last_offset_epoch
    assert asked.partition_index == METADATA_PARTITION
    is_last_epoch_too_high = last_epoch > epoch if asked.pre_vote else last_epoch >= epoch
    if asked.last_offset < 0 or last_epoch < 0 or is_last_epoch_too_high:
        return ErrorCode.INVALID_REQUEST
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if asked.replica_id < 0 or epoch > EPOCH_MAX:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _decide(quorum: Quorum, asked: PartitionData, now_ms: int) -> bool:
    """Grant or refuse, now in the sender's epoch; a vote is recorded, once."""
    assert asked.replica_epoch == quorum.epoch, (asked, quorum.epoch)
    theirs = OffsetAndEpoch(Offset(asked.last_offset), LeaderEpoch(asked.last_offset_epoch))
    ours = OffsetAndEpoch(quorum.log.log_end_offset, quorum.log.last_epoch)
    up_to_date = is_up_to_date(theirs, ours)
    if asked.pre_vote:
        granted = grants_pre_vote(quorum.role, up_to_date, now_ms)
        rival = ReplicaId(asked.replica_id)
        if isinstance(quorum.role, Prospective) and rival in quorum.voters.latest.nodes:
            _heed_rival(quorum, quorum.role, rival, now_ms, granted=granted)
        return granted
    candidate = ReplicaKey(ReplicaId(asked.replica_id), asked.replica_directory_id)
    granted = grants_vote(quorum.role, quorum.election, candidate, up_to_date)
    if granted and quorum.election.voted_id < 0:
        quorum.become_unattached_voted(candidate, now_ms)
    return granted


def _heed_rival(
    quorum: Quorum, role: Prospective, rival: ReplicaId, now_ms: int, *, granted: bool
) -> None:
    """Use the fact that the sender of a pre-vote, a voter, misses the leader as well.

    A rival that got a pre-vote may campaign first for a moment: two candidates at the same time
    split the votes, and wait for an election timeout. A refused rival may have refused this replica
    only because it still had the leader, and is asked again.
    """
    assert quorum.role is role, quorum.role
    if granted and role.stands_from_ms is None:
        role.stands_from_ms = now_ms + quorum.config.timing.draw_precedence_ms(quorum.random_source)
    elif not granted and role.answers.get(rival) is False:
        del role.answers[rival]
    elif not granted and rival not in role.answers:
        role.rivals.add(rival)


def _refuse(quorum: Quorum, event: RequestReceived, error: ErrorCode) -> None:
    assert error is not ErrorCode.NONE
    quorum.effects.append(Reply(event.reply_to, VoteResponse(error_code=error)))


def _answer(quorum: Quorum, event: RequestReceived, error: ErrorCode, *, granted: bool) -> None:
    assert error is ErrorCode.NONE or not granted, error
    partition = ResponsePartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        vote_granted=granted,
    )
    response = VoteResponse(
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )
    response.node_endpoints = leading_node(quorum, event, NodeEndpoint, since=1)
    quorum.effects.append(Reply(event.reply_to, response))


def on_response(quorum: Quorum, sent: SendRequest, response: VoteResponse, now_ms: int) -> None:
    """Count a voter's answer; if the voter has no pre-votes, become a candidate at once."""
    asked_role = quorum.role
    assert sent.node_id != quorum.config.key.id, sent
    if (
        response.error_code == ErrorCode.UNSUPPORTED_VERSION
        and isinstance(asked_role, Prospective)
        and quorum.epoch < EPOCH_MAX
    ):
        quorum.ignored.count(Ignored.VERSION_WITHOUT_PRE_VOTE)
        quorum.become_candidate(Trigger.PRE_VOTE_UNSUPPORTED, now_ms)
        return
    answer = accept_answer(quorum, sent, response, now_ms)
    if answer is None:
        return
    if quorum.role is not asked_role or not isinstance(asked_role, Candidate | Prospective):
        quorum.ignored.count(Ignored.ROLE_CHANGED)
    else:
        voter = ReplicaId(sent.node_id)
        is_outdated = isinstance(asked_role, Prospective) and voter in asked_role.rivals
        if isinstance(asked_role, Prospective):
            asked_role.rivals.discard(voter)
        if answer.vote_granted or not is_outdated:
            asked_role.answers[voter] = answer.vote_granted
