"""UpdateRaftVoter, API key 82, version 0 (KIP-853).

Builder, request side, response side. A voter sends the leader its listeners and the levels of
kraft.version that it supports. At level 0 the leader keeps them in memory: it needs those of every
voter to raise the level.
"""

from kraft_wire.model import ReplicaId, ReplicaKey
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.following import renew_fetch_timeout
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import leader_address, learn
from kraft_wire.raft.leading import note_contact
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Leader
from kraft_wire.raft.rpc.checks import (
    is_of_other_cluster,
    leader_only_error,
    named_endpoints,
)
from kraft_wire.raft.voter_changes import (
    append_voters,
    is_complete_key,
    start_error,
    uncommitted_error,
)
from kraft_wire.raft.voters import Address, VersionRange, VoterNode
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.update_raft_voter import (
    CurrentLeader,
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

__all__ = ["build_request", "on_request", "on_response"]


def build_request(quorum: Quorum) -> UpdateRaftVoterRequest:
    """Send the leader this voter's listeners and supported levels."""
    own = quorum.config.as_voter()
    assert quorum.is_voter, own
    return UpdateRaftVoterRequest(
        cluster_id=quorum.config.cluster_id,
        current_leader_epoch=quorum.epoch,
        voter_id=own.key.id,
        voter_directory_id=own.key.directory_id,
        listeners=[
            Listener(name=name, host=address.host, port=address.port)
            for name, address in own.endpoints.items()
        ],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=own.kraft_versions.low,
            max_supported_version=own.kraft_versions.high,
        ),
    )


def on_request(
    quorum: Quorum, event: RequestReceived, request: UpdateRaftVoterRequest, now_ms: int
) -> None:
    """Apply a voter's update; answered at once.

    Errors, first match wins: INCONSISTENT_CLUSTER_ID, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER, BROKER_NOT_AVAILABLE, INVALID_REQUEST (key, listeners, range),
    REQUEST_TIMED_OUT (another change, no high watermark, uncommitted set), INVALID_REQUEST (the
    level in force is outside the range), VOTER_NOT_FOUND.
    Effects: AppendControlRecords and FlushLog where the set changes, then one Reply.
    """
    error = _error(quorum, request)
    leader = quorum.role
    if error is ErrorCode.NONE:
        assert isinstance(leader, Leader), leader
        error = _update(quorum, leader, _described(request), now_ms)
    current_leader = CurrentLeader(leader_id=quorum.leader_id, leader_epoch=quorum.epoch)
    address = leader_address(quorum, event.listener)
    if address is not None:
        current_leader.host, current_leader.port = address.host, address.port
    response = UpdateRaftVoterResponse(error_code=error, current_leader=current_leader)
    quorum.effects.append(Reply(event.reply_to, response))


def _error(quorum: Quorum, request: UpdateRaftVoterRequest) -> ErrorCode:
    if is_of_other_cluster(quorum, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = leader_only_error(quorum, request.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return error
    described = _described(request)
    levels = described.kraft_versions
    is_key = is_complete_key(request.voter_id, request.voter_directory_id)
    if not is_key or quorum.config.listener not in described.endpoints:
        return ErrorCode.INVALID_REQUEST
    if not 0 <= levels.low <= levels.high:
        return ErrorCode.INVALID_REQUEST
    assert isinstance(quorum.role, Leader), quorum.role
    return start_error(quorum, quorum.role)


def _described(request: UpdateRaftVoterRequest) -> VoterNode:
    feature = request.kraft_version_feature
    assert len(request.voter_directory_id) == 16, request
    return VoterNode(
        ReplicaKey(ReplicaId(request.voter_id), request.voter_directory_id),
        named_endpoints(request.listeners),
        VersionRange(feature.min_supported_version, feature.max_supported_version),
    )


def _update(quorum: Quorum, leader: Leader, node: VoterNode, now_ms: int) -> ErrorCode:
    voters, level = quorum.voters.latest, quorum.voters.kraft_version
    error = ErrorCode.NONE if level == 0 else uncommitted_error(quorum, leader)
    if error is not ErrorCode.NONE:
        return error
    if not node.kraft_versions.includes(level):
        return ErrorCode.INVALID_REQUEST
    if level == 0:
        if node.key.id not in voters.nodes:
            return ErrorCode.VOTER_NOT_FOUND
        leader.reported_nodes[node.key.id] = node
        note_contact(quorum, leader, node.key, now_ms)
        return ErrorCode.NONE
    if not voters.is_voter(node.key):
        return ErrorCode.VOTER_NOT_FOUND
    if voters.nodes[node.key.id] != node:
        append_voters(quorum, voters.with_updated(node), now_ms)
    note_contact(quorum, leader, node.key, now_ms)
    assert quorum.voters.latest.is_voter(node.key), node
    return ErrorCode.NONE


def on_response(
    quorum: Quorum, sent: SendRequest, response: UpdateRaftVoterResponse, now_ms: int
) -> None:
    """Note that the leader has applied or refused the update; either way it is alive."""
    current_leader = response.current_leader or CurrentLeader()
    error = response.error_code
    if error == ErrorCode.UNSUPPORTED_VERSION and response.current_leader is None:
        current_leader = CurrentLeader(leader_id=quorum.leader_id, leader_epoch=quorum.epoch)
    address = (
        Address(current_leader.host, current_leader.port)
        if current_leader.host and 0 < current_leader.port < 65_536
        else None
    )
    if not learn(
        quorum, sent, error, current_leader.leader_id, current_leader.leader_epoch, address, now_ms
    ):
        return
    role = quorum.role
    assert role is not None
    if not isinstance(role, Follower):
        quorum.ignored.count(Ignored.ROLE_CHANGED)
    elif error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        role.has_updated = True
        renew_fetch_timeout(quorum, role, now_ms)
    else:  # the next period tries again; fetching continues
        quorum.ignored.count(Ignored.PARTITION_ERROR)
