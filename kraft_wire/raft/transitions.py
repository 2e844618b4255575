"""The permitted changes of role, by trigger, with the state that must be durable first.

The table is the state machine: `Quorum` changes its role only by this table, and a pair that is not
in it is a broken invariant. The exhaustive test is made from it. Sources: KIP-595, KIP-996
(Prospective), KIP-853 (observers), as 4.3.1 behaves.
"""

from enum import Enum

from kraft_wire.frozen import frozen
from kraft_wire.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)

__all__ = ["TRANSITIONS", "EpochStep", "Rule", "Trigger", "rule_for"]


class Trigger(Enum):
    """Why a replica changes role."""

    HIGHER_EPOCH = "a message of a higher epoch, whose leader is unknown or unreachable"
    LEADER_NAMED = "a message of this or a later epoch names a reachable leader"
    VOTE_GRANTED = "this replica grants its vote to another"
    ONLY_VOTER_STARTED = "the sole voter has no other voter to wait for"
    ELECTION_TIMEOUT = "the election deadline has passed"
    FETCH_TIMEOUT = "the leader has not answered a fetch in time"
    PRE_VOTE_WON = "a majority granted its pre-vote"
    PRE_VOTE_UNSUPPORTED = "a voter does not know pre-votes"
    PRE_VOTE_LOST = "no majority granted its pre-vote, or not in time"
    ELECTION_WON = "a majority voted for this replica"
    LEADERSHIP_ENDED = "no majority fetched, a graceful stop, or removal from the voters"


class EpochStep(Enum):
    """The effect of a transition on the epoch."""

    STAYS = "stays"
    RISES = "rises by one"
    TAKEN = "becomes that of the message"


@frozen
class Rule:
    """One row: the roles that may follow, and what becomes of the epoch.

    Quorum-state is written before replies whenever epoch, vote or leader change.
    """

    targets: tuple[type[Role], ...]
    epoch: EpochStep


_AT_HIGHER_EPOCH = Rule((Unattached,), EpochStep.TAKEN)
_UNDER_LEADER = Rule((Follower,), EpochStep.TAKEN)
_TO_PRE_VOTE = Rule((Prospective,), EpochStep.STAYS)
_TO_CANDIDATE = Rule((Candidate,), EpochStep.RISES)

TRANSITIONS: dict[tuple[type[Role], Trigger], Rule] = {
    (Unattached, Trigger.HIGHER_EPOCH): _AT_HIGHER_EPOCH,
    (Unattached, Trigger.LEADER_NAMED): _UNDER_LEADER,
    (Unattached, Trigger.VOTE_GRANTED): Rule((Unattached,), EpochStep.STAYS),
    (Unattached, Trigger.ONLY_VOTER_STARTED): _TO_PRE_VOTE,
    (Unattached, Trigger.ELECTION_TIMEOUT): _TO_PRE_VOTE,
    (Prospective, Trigger.HIGHER_EPOCH): _AT_HIGHER_EPOCH,
    (Prospective, Trigger.LEADER_NAMED): _UNDER_LEADER,
    (Prospective, Trigger.VOTE_GRANTED): Rule((Prospective,), EpochStep.STAYS),
    (Prospective, Trigger.PRE_VOTE_WON): _TO_CANDIDATE,
    (Prospective, Trigger.PRE_VOTE_UNSUPPORTED): _TO_CANDIDATE,
    # The previous leader is followed again if its address is known.
    (Prospective, Trigger.PRE_VOTE_LOST): Rule((Unattached, Follower), EpochStep.STAYS),
    (Candidate, Trigger.HIGHER_EPOCH): _AT_HIGHER_EPOCH,
    (Candidate, Trigger.LEADER_NAMED): _UNDER_LEADER,
    (Candidate, Trigger.ELECTION_TIMEOUT): _TO_PRE_VOTE,
    (Candidate, Trigger.ELECTION_WON): Rule((Leader,), EpochStep.STAYS),
    (Follower, Trigger.HIGHER_EPOCH): _AT_HIGHER_EPOCH,
    (Follower, Trigger.LEADER_NAMED): _UNDER_LEADER,
    (Follower, Trigger.ONLY_VOTER_STARTED): _TO_PRE_VOTE,
    (Follower, Trigger.FETCH_TIMEOUT): _TO_PRE_VOTE,
    (Leader, Trigger.HIGHER_EPOCH): _AT_HIGHER_EPOCH,
    (Leader, Trigger.LEADER_NAMED): _UNDER_LEADER,
    (Leader, Trigger.LEADERSHIP_ENDED): Rule((Resigned,), EpochStep.STAYS),
    (Resigned, Trigger.HIGHER_EPOCH): _AT_HIGHER_EPOCH,
    (Resigned, Trigger.LEADER_NAMED): _UNDER_LEADER,
    (Resigned, Trigger.ONLY_VOTER_STARTED): _TO_PRE_VOTE,
    # The epoch rises so that no replica leads it twice: (epoch, offset) stays unique.
    (Resigned, Trigger.ELECTION_TIMEOUT): Rule((Unattached,), EpochStep.RISES),
}


def rule_for(role: Role, trigger: Trigger) -> Rule:
    """Return the row for a role and a trigger; a missing row is a bug."""
    rule = TRANSITIONS.get((type(role), trigger))
    assert rule is not None, (type(role).__name__, trigger)
    return rule
