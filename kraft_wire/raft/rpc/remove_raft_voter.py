"""RemoveRaftVoter, API key 81, version 0 (KIP-853).

Builder, request side, response side. A leader may remove itself: it does not count from the append
on, and resigns once the record is committed without it.
"""

from kraft_wire.model import ReplicaId, ReplicaKey
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import set_aside
from kraft_wire.raft.membership import ChangeKind, PendingChange
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.raft.rpc.voter_refusals import (
    Refused,
    change_refused,
    key_as_text,
    keys_as_text,
    receiver_refused,
)
from kraft_wire.raft.voter_changes import append_voters, is_complete_key
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

__all__ = ["build_request", "on_request", "on_response"]


def build_request(quorum: Quorum, voter: ReplicaKey) -> RemoveRaftVoterRequest:
    """Ask the leader to remove a voter: this replica's previous key, whose directory is lost."""
    assert voter.id == quorum.config.key.id, voter
    return RemoveRaftVoterRequest(
        cluster_id=quorum.config.cluster_id,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
    )


def on_request(
    quorum: Quorum, event: RequestReceived, request: RemoveRaftVoterRequest, now_ms: int
) -> None:
    """Append the voter set without one of its members; answered once it is committed.

    Errors, first match wins: INCONSISTENT_CLUSTER_ID, NOT_LEADER_OR_FOLLOWER,
    BROKER_NOT_AVAILABLE, INVALID_REQUEST (key), REQUEST_TIMED_OUT (another change, then no high
    watermark), UNSUPPORTED_VERSION, REQUEST_TIMED_OUT (uncommitted set), VOTER_NOT_FOUND.
    Effects: one Reply, or AppendControlRecords and FlushLog and the Reply later.
    """
    refused = _refused(quorum, request)
    if refused is not None:
        refusal = RemoveRaftVoterResponse(error_code=refused.error, error_message=refused.words)
        quorum.effects.append(Reply(event.reply_to, refusal))
        return
    leader = quorum.role
    assert isinstance(leader, Leader), leader
    voters = quorum.voters.latest
    node = voters.nodes[ReplicaId(request.voter_id)]
    leader.pending_change = PendingChange(
        ChangeKind.REMOVE,
        event,
        now_ms + quorum.config.timing.request_timeout_ms,
        node,
        record_offset=append_voters(quorum, voters.with_removed(node.key), now_ms),
    )


def _refused(quorum: Quorum, request: RemoveRaftVoterRequest) -> Refused | None:
    refused = receiver_refused(quorum, request.cluster_id)
    if refused is not None:
        return refused
    if not is_complete_key(request.voter_id, request.voter_directory_id):
        words = "Remove voter request didn't include a valid voter"
        return Refused(ErrorCode.INVALID_REQUEST, words)
    leader = quorum.role
    assert isinstance(leader, Leader), leader
    refused = change_refused(quorum, leader, "removing")
    key = ReplicaKey(ReplicaId(request.voter_id), request.voter_directory_id)
    voters = quorum.voters.latest
    if refused is None and (not voters.is_voter(key) or len(voters) == 1):
        words = (
            f"Cannot remove voter {key_as_text(key)} from the set of voters {keys_as_text(voters)}"
        )
        return Refused(ErrorCode.VOTER_NOT_FOUND, words)
    return refused


def on_response(
    quorum: Quorum, sent: SendRequest, response: RemoveRaftVoterResponse, now_ms: int
) -> None:
    """Handle the leader's answer; in any case the next period checks the voter set again."""
    harmless = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.VOTER_NOT_FOUND)
    assert sent.request_id > 0, sent
    if response.error_code not in harmless:
        set_aside(quorum, sent, Ignored.TOP_LEVEL_ERROR, now_ms)
