"""Changes of the voter set at the leader (KIP-853): one at a time, each a record in the log.

A change starts only when the previous one is committed and the leader has committed a record of its
own epoch; it applies from its append on and ends when it is committed under the *new* majority.
"""

from kraft_wire.model import ZERO_UUID, Offset
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.leading import append_control_records, quorum_check_needs
from kraft_wire.raft.membership import ChangeKind, PendingChange
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.raft.voters import VoterSet
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.remove_raft_voter import RemoveRaftVoterResponse

__all__ = [
    "abandon",
    "append_voters",
    "finish",
    "is_complete_key",
    "is_removed",
    "settle",
    "start_error",
    "uncommitted_error",
]


def is_complete_key(voter_id: int, directory_id: bytes) -> bool:
    """Return whether a request names a voter by id and directory."""
    assert len(directory_id) == 16, directory_id
    return voter_id >= 0 and directory_id != ZERO_UUID


def start_error(quorum: Quorum, leader: Leader) -> ErrorCode:
    """Return why no change may start now: one is pending, or this epoch has no committed record."""
    assert quorum.role is leader, quorum.role
    if leader.pending_change is not None or leader.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NONE


def uncommitted_error(quorum: Quorum, leader: Leader) -> ErrorCode:
    """Return whether the voter set in force is still uncommitted."""
    offset = quorum.voters.latest_offset
    assert leader.high_watermark is not None, "start_error comes first"
    is_committed = offset is not None and offset < leader.high_watermark
    return ErrorCode.NONE if is_committed else ErrorCode.REQUEST_TIMED_OUT


def append_voters(quorum: Quorum, voters: VoterSet, now_ms: int) -> Offset:
    """Append a voter set and apply it; return its record's offset."""
    assert quorum.voters.latest.overlaps_majorities_of(voters), voters
    assert quorum.voters.kraft_version > 0, "a static set does not change"
    if isinstance(quorum.role, Leader) and quorum_check_needs(quorum) == 0:
        # The only voter needed no fetches so far: the first period begins with the second voter.
        timeout_ms = quorum.config.timing.check_quorum_timeout_ms
        quorum.role.check_quorum_deadline_ms = now_ms + timeout_ms
    offset = append_control_records(quorum, [voters.to_record()], now_ms)
    quorum.voters.appended_voters(offset, voters)
    return offset


def settle(quorum: Quorum, leader: Leader, now_ms: int) -> None:
    """End the pending change once its record is committed, or at its deadline.

    At the deadline an appended record stays in the log; the answer reports that it is uncommitted.
    """
    change = leader.pending_change
    if change is None:
        return
    high_watermark = leader.high_watermark
    assert high_watermark is not None, "no change starts before"
    if change.record_offset is not None and change.record_offset < high_watermark:
        finish(quorum, leader, ErrorCode.NONE)
    elif change.deadline_ms <= now_ms:
        finish(quorum, leader, ErrorCode.REQUEST_TIMED_OUT)


def finish(quorum: Quorum, leader: Leader, error: ErrorCode, words: str | None = None) -> None:
    """Drop the pending change and answer its request; `words`: other than those of the error."""
    change = leader.pending_change
    assert change is not None
    leader.pending_change = None
    answer(quorum, change, error, words)


def abandon(quorum: Quorum) -> None:
    """Answer the change whose leadership ended."""
    change = quorum.abandoned_change
    if change is not None:
        assert not isinstance(quorum.role, Leader), quorum.role
        answer(quorum, change, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        quorum.abandoned_change = None


def answer(
    quorum: Quorum, change: PendingChange, error: ErrorCode, words: str | None = None
) -> None:
    """Reply once."""
    if change.is_answered:
        return
    change.is_answered = True
    message = None if error is ErrorCode.NONE else words or error.message
    made = AddRaftVoterResponse if change.kind is ChangeKind.ADD else RemoveRaftVoterResponse
    response = made(error_code=error, error_message=message)
    quorum.effects.append(Reply(change.origin.reply_to, response))


def is_removed(quorum: Quorum, leader: Leader) -> bool:
    """Return whether the leader itself was removed, by a committed record."""
    offset = quorum.voters.latest_offset
    assert quorum.role is leader, quorum.role
    if quorum.is_voter or offset is None or leader.high_watermark is None:
        return False
    return offset < leader.high_watermark
