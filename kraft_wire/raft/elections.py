"""Decisions about votes and the result of an election: pure (KIP-595 "Vote", KIP-996 pre-votes).

A vote is a promise for one epoch, kept in quorum-state; a pre-vote promises nothing and is never
recorded. Both compare logs as (epoch of the last record, end offset), the epoch first.
"""

from collections.abc import Mapping
from enum import Enum

from kraft_wire.model import (
    NO_REPLICA,
    ZERO_UUID,
    ElectionState,
    OffsetAndEpoch,
    ReplicaId,
    ReplicaKey,
)
from kraft_wire.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from kraft_wire.raft.voters import VoterSet

__all__ = ["VoteOutcome", "grants_pre_vote", "grants_vote", "is_up_to_date", "outcome"]


class VoteOutcome(Enum):
    """The state of a round of votes."""

    WON = "a majority granted the vote"
    LOST = "a majority can no longer grant the vote"
    OPEN = "some responses are pending"


def is_up_to_date(candidate: OffsetAndEpoch, own: OffsetAndEpoch) -> bool:
    """Return whether the candidate's log is up to date: a later last epoch, or at least as long."""
    assert own.epoch >= 0, own
    return (candidate.epoch, candidate.offset) >= (own.epoch, own.offset)


def grants_vote(
    role: Role, election: ElectionState, candidate: ReplicaKey, up_to_date: bool
) -> bool:
    """Decide on a vote in the current epoch.

    A granted vote is repeated only to the same replica, without another comparison of logs. If a
    leader is known, the epoch needs no other, and the vote is refused.
    """
    assert candidate.id >= 0, candidate
    if not isinstance(role, Unattached | Prospective):
        return False
    if election.voted_id != NO_REPLICA:
        directory = election.voted_directory_id
        return election.voted_id == candidate.id and directory in (
            ZERO_UUID,
            candidate.directory_id,
        )
    return election.leader_id == NO_REPLICA and up_to_date


def grants_pre_vote(role: Role, up_to_date: bool, now_ms: int) -> bool:
    """Decide whether a vote would be given in the next epoch; nothing is promised.

    A leader refuses, and so does a follower that has fetched from its leader within the fetch
    timeout.

    A voter leaves the role Follower when its fetch timeout passes; an observer does not. A voter
    whose log does not reach the record that adds it takes itself for an observer. If it refused
    for as long as it is a follower, a quorum that needs its vote could never elect a leader. It is
    safe to grant a pre-vote: it is not recorded, raises no epoch here and elects no leader. Only
    votes elect, and `grants_vote` does not depend on this decision.
    """
    match role:
        case Leader():
            return False
        case Follower():
            follows = role.has_fetched and now_ms < role.fetch_deadline_ms
            return up_to_date and not follows
        case _:
            assert isinstance(role, Unattached | Prospective | Candidate | Resigned), role
            return up_to_date


def outcome(voters: VoterSet, answers: Mapping[ReplicaId, bool]) -> VoteOutcome:
    """Count the answers of the voters in force; ignore all other answers."""
    counted = [answers[voter] for voter in voters.nodes if voter in answers]
    granted, unanswered = sum(counted), len(voters) - len(counted)
    assert 0 <= granted <= len(counted) <= len(voters), answers
    if granted >= voters.majority():
        return VoteOutcome.WON
    if granted + unanswered < voters.majority():
        return VoteOutcome.LOST
    return VoteOutcome.OPEN
