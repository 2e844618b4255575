"""AddRaftVoter, API key 80, versions 0-1 (KIP-853; KIP-1186 AckWhenCommitted).

Builder, request side, response side, and the request to the new voter in between: the leader adds a
replica only if it answers at its address, supports the level of kraft.version and has caught up.
"""

from kraft_wire.model import ReplicaId, ReplicaKey
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import set_aside
from kraft_wire.raft.membership import ChangeKind, PendingChange
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.raft.rpc.checks import (
    is_of_other_cluster,
    leader_only_error,
    named_endpoints,
    refusal_words,
)
from kraft_wire.raft.voter_changes import (
    answer,
    append_voters,
    finish,
    is_complete_key,
    start_error,
    uncommitted_error,
)
from kraft_wire.raft.voters import VersionRange, VoterNode
from kraft_wire.wire.generated.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.messages import RELEASE

__all__ = ["build_request", "on_request", "on_response", "on_versions"]

_FEATURE = "kraft.version"
_SOFTWARE_NAME = "kraft-wire"


def build_request(quorum: Quorum) -> AddRaftVoterRequest:
    """Ask the leader to add this replica as a voter, answered once the record is appended."""
    key, config = quorum.config.key, quorum.config
    assert config.is_controller, "only a controller can vote"
    assert config.endpoints, "a voter can be reached"
    return AddRaftVoterRequest(
        cluster_id=config.cluster_id,
        timeout_ms=config.timing.request_timeout_ms,
        voter_id=key.id,
        voter_directory_id=key.directory_id,
        listeners=[
            Listener(name=name, host=address.host, port=address.port)
            for name, address in config.endpoints.items()
        ],
        ack_when_committed=False,
    )


def on_request(
    quorum: Quorum, event: RequestReceived, request: AddRaftVoterRequest, now_ms: int
) -> None:
    """Start the addition of a voter.

    Errors, first match wins: INCONSISTENT_CLUSTER_ID, NOT_LEADER_OR_FOLLOWER,
    BROKER_NOT_AVAILABLE, INVALID_REQUEST (key, then listeners), REQUEST_TIMED_OUT (another change,
    then no high watermark), UNSUPPORTED_VERSION, REQUEST_TIMED_OUT (uncommitted set),
    DUPLICATE_VOTER, REQUEST_TIMED_OUT (no connection).
    Effects: one Reply, or one SendRequest and the Reply later.
    """
    error = _error(quorum, request)
    if error is ErrorCode.NONE:
        error = _start(quorum, event, request, now_ms)
    if error is not ErrorCode.NONE:
        words = refusal_words(quorum, error, request.cluster_id)
        refusal = AddRaftVoterResponse(error_code=error, error_message=words)
        quorum.effects.append(Reply(event.reply_to, refusal))


def _error(quorum: Quorum, request: AddRaftVoterRequest) -> ErrorCode:
    if is_of_other_cluster(quorum, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = leader_only_error(quorum, None)
    if error is not ErrorCode.NONE:
        return error
    if not is_complete_key(request.voter_id, request.voter_directory_id):
        return ErrorCode.INVALID_REQUEST
    if quorum.config.listener not in named_endpoints(request.listeners):
        return ErrorCode.INVALID_REQUEST
    leader = quorum.role
    assert isinstance(leader, Leader), leader
    error = start_error(quorum, leader)
    if error is not ErrorCode.NONE:
        return error
    if quorum.voters.kraft_version == 0:
        return ErrorCode.UNSUPPORTED_VERSION
    error = uncommitted_error(quorum, leader)
    if error is ErrorCode.NONE and request.voter_id in quorum.voters.latest.nodes:
        return ErrorCode.DUPLICATE_VOTER
    return error


def _start(
    quorum: Quorum, event: RequestReceived, request: AddRaftVoterRequest, now_ms: int
) -> ErrorCode:
    """Send ApiVersions to the new voter."""
    leader = quorum.role
    assert isinstance(leader, Leader), leader
    if not quorum.peers.is_ready(request.voter_id):
        return ErrorCode.REQUEST_TIMED_OUT
    endpoints = named_endpoints(request.listeners)
    key = ReplicaKey(ReplicaId(request.voter_id), request.voter_directory_id)
    question = ApiVersionsRequest(
        client_software_name=_SOFTWARE_NAME, client_software_version=RELEASE
    )
    address = endpoints[quorum.config.listener]
    sent = quorum.peers.send(key.id, address, question, now_ms)
    quorum.effects.append(sent)
    leader.pending_change = PendingChange(
        ChangeKind.ADD,
        event,
        now_ms + quorum.config.timing.request_timeout_ms,
        VoterNode(key, endpoints),
        versions_request_id=sent.request_id,
    )
    return ErrorCode.NONE


def on_versions(
    quorum: Quorum, sent: SendRequest, response: ApiVersionsResponse, now_ms: int
) -> None:
    """Continue an addition: check the new voter's range and progress, append the new set."""
    leader = quorum.role
    change = leader.pending_change if isinstance(leader, Leader) else None
    if change is None or change.versions_request_id != sent.request_id:
        quorum.ignored.count(Ignored.LATE_ANSWER)
        return
    assert isinstance(leader, Leader), leader
    change.versions_request_id = None
    if response.error_code != ErrorCode.NONE:
        set_aside(quorum, sent, Ignored.TOP_LEVEL_ERROR, now_ms)
        finish(quorum, leader, ErrorCode.REQUEST_TIMED_OUT)
        return
    ranges = [
        VersionRange(feature.min_version, feature.max_version)
        for feature in response.supported_features
        if feature.name == _FEATURE
    ]
    if not ranges or not ranges[0].includes(quorum.voters.kraft_version):
        finish(quorum, leader, ErrorCode.INVALID_REQUEST)
    elif not _is_caught_up(quorum, leader, change.node.key, now_ms):
        finish(quorum, leader, ErrorCode.REQUEST_TIMED_OUT)
    else:
        change.node = VoterNode(change.node.key, change.node.endpoints, ranges[0])
        voters = quorum.voters.latest.with_added(change.node)
        change.record_offset = append_voters(quorum, voters, now_ms)
        asked = change.origin.request
        if isinstance(asked, AddRaftVoterRequest) and not asked.ack_when_committed:
            answer(quorum, change, ErrorCode.NONE)


def _is_caught_up(quorum: Quorum, leader: Leader, key: ReplicaKey, now_ms: int) -> bool:
    """Return whether a replica has reached the log's end once, and fetched recently."""
    progress = leader.progress.get(key)
    if progress is None or progress.last_caught_up_ms is None:
        return False
    assert progress.last_fetch_ms is not None, progress
    age_ms = now_ms - progress.last_fetch_ms
    return age_ms < quorum.config.timing.caught_up_within_ms


def on_response(
    quorum: Quorum, sent: SendRequest, response: AddRaftVoterResponse, now_ms: int
) -> None:
    """Handle the leader's answer; in any case the next period checks the voter set again."""
    harmless = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER)
    assert sent.request_id > 0, sent
    if response.error_code not in harmless:
        set_aside(quorum, sent, Ignored.TOP_LEVEL_ERROR, now_ms)
