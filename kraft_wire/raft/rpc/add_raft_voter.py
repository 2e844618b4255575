"""AddRaftVoter, API key 80, versions 0-1 (KIP-853; KIP-1186 AckWhenCommitted).

Builder, request side, response side, and the request to the new voter in between: the leader adds a
replica only if it answers at its address, supports the level of kraft.version and has caught up.
"""

from collections.abc import Sequence

from kraft_wire.model import ReplicaId, ReplicaKey
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import set_aside
from kraft_wire.raft.membership import ChangeKind, PendingChange
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.raft.rpc.checks import named_endpoints
from kraft_wire.raft.rpc.voter_refusals import (
    Refused,
    change_refused,
    key_as_text,
    keys_as_text,
    receiver_refused,
)
from kraft_wire.raft.voter_changes import answer, append_voters, finish, is_complete_key
from kraft_wire.raft.voters import VersionRange, VoterNode
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
)
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.messages import RELEASE

__all__ = ["build_request", "on_failure", "on_request", "on_response", "on_versions"]

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
    refused = _refused(quorum, request) or _start(quorum, event, request, now_ms)
    if refused is not None:
        refusal = AddRaftVoterResponse(error_code=refused.error, error_message=refused.words)
        quorum.effects.append(Reply(event.reply_to, refusal))


def _refused(quorum: Quorum, request: AddRaftVoterRequest) -> Refused | None:
    refused = receiver_refused(quorum, request.cluster_id)
    if refused is not None:
        return refused
    if not is_complete_key(request.voter_id, request.voter_directory_id):
        words = "Add voter request didn't include a valid voter"
        return Refused(ErrorCode.INVALID_REQUEST, words)
    if quorum.config.listener not in named_endpoints(request.listeners):
        words = (
            f"Add voter request didn't include the endpoint ({_as_text(request.listeners)}) for "
            f"the default listener ListenerName({quorum.config.listener})"
        )
        return Refused(ErrorCode.INVALID_REQUEST, words)
    leader = quorum.role
    assert isinstance(leader, Leader), leader
    refused = change_refused(quorum, leader, "adding")
    if refused is None and request.voter_id in quorum.voters.latest.nodes:
        words = (
            f"The voter id for {key_as_text(_key(request))} is already part of the set of voters "
            f"{keys_as_text(quorum.voters.latest)}."
        )
        return Refused(ErrorCode.DUPLICATE_VOTER, words)
    return refused


def _key(request: AddRaftVoterRequest) -> ReplicaKey:
    assert request.voter_id >= 0, "an incomplete key is refused before"
    return ReplicaKey(ReplicaId(request.voter_id), request.voter_directory_id)


def _as_text(listeners: Sequence[Listener]) -> str:
    """Return listeners as Java prints them."""
    shown = (
        f"ListenerName({each.name.upper()})={each.host}/<unresolved>:{each.port}"
        for each in listeners
    )
    return f"Endpoints(endpoints={{{', '.join(shown)}}})"


def _start(
    quorum: Quorum, event: RequestReceived, request: AddRaftVoterRequest, now_ms: int
) -> Refused | None:
    """Send ApiVersions to the new voter."""
    leader = quorum.role
    assert isinstance(leader, Leader), leader
    key = _key(request)
    if not quorum.peers.is_ready(key.id):
        words = f"New voter {key_as_text(key)} is not ready to receive requests"
        return Refused(ErrorCode.REQUEST_TIMED_OUT, words)
    endpoints = named_endpoints(request.listeners)
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
    return None


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
        _abort(quorum, leader, error_name(response.error_code))
        return
    ranges = [
        VersionRange(feature.min_version, feature.max_version)
        for feature in response.supported_features
        if feature.name == _FEATURE
    ]
    aborted = f"Aborted add voter operation for {key_as_text(change.node.key)} since"
    level = quorum.voters.kraft_version
    if not ranges or not ranges[0].includes(level):
        shown = "(min: 0, max: 0)"
        if ranges:  # Kafka forgets a bracket here
            shown = f"(min: {ranges[0].low}, max: {ranges[0].high}"
        words = (
            f"{aborted} the kraft.version range {shown} doesn't support the finalized version "
            f"{level}"
        )
        finish(quorum, leader, ErrorCode.INVALID_REQUEST, words)
    elif not _is_caught_up(quorum, leader, change.node.key, now_ms):
        words = f"{aborted} it is lagging behind"
        finish(quorum, leader, ErrorCode.REQUEST_TIMED_OUT, words)
    else:
        change.node = VoterNode(change.node.key, change.node.endpoints, ranges[0])
        voters = quorum.voters.latest.with_added(change.node)
        change.record_offset = append_voters(quorum, voters, now_ms)
        asked = change.origin.request
        if isinstance(asked, AddRaftVoterRequest) and not asked.ack_when_committed:
            answer(quorum, change, ErrorCode.NONE)


def on_failure(quorum: Quorum, sent: SendRequest) -> None:
    """End an addition whose new voter cannot be reached."""
    leader = quorum.role
    change = leader.pending_change if isinstance(leader, Leader) else None
    if change is not None and change.versions_request_id == sent.request_id:
        assert isinstance(leader, Leader), leader
        _abort(quorum, leader, ErrorCode.BROKER_NOT_AVAILABLE.name)


def _abort(quorum: Quorum, leader: Leader, problem: str) -> None:
    assert quorum.role is leader, quorum.role
    words = f"Aborted add voter operation for since API_VERSIONS returned an error {problem}"
    finish(quorum, leader, ErrorCode.REQUEST_TIMED_OUT, words)


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
