"""Metrics of a replica, under the names of Kafka's group `raft-metrics`.

KIP-595 "Metrics", KIP-853 (voters, observers), as 4.3.1 names them. Averages, maxima and rates
cover the last 30 to 60 seconds, in two halves like Kafka's samples. Left out: poll-idle-ratio-avg,
which only the host knows.
"""

from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached

__all__ = ["numbers", "state_name", "voted_directory"]


def state_name(quorum: Quorum) -> str:
    """Return `current-state`: the role, whether it has voted, and whether it is a voter.

    Kafka has no separate name for a resigned leader: it is unattached.
    """
    role = quorum.role
    has_voted = quorum.election.voted_id >= 0
    assert not isinstance(role, Leader) or quorum.leader_id == quorum.config.key.id, role
    match role:
        case Leader():
            return "leader"
        case Candidate():
            return "candidate"
        case Prospective():
            return "prospective-voted" if has_voted else "prospective"
        case Follower():
            return "follower" if quorum.is_voter else "observer"
        case Unattached():
            return "unattached-voted" if has_voted else "unattached"
        case Resigned():
            return "unattached"


def voted_directory(quorum: Quorum) -> str:
    """Return `current-vote-directory-id`: 22 characters, the zero id without a vote."""
    assert len(quorum.election.voted_directory_id) == 16, quorum.election
    return uuid_to_text(Uuid(quorum.election.voted_directory_id))


def numbers(quorum: Quorum, now_ms: int) -> dict[str, float]:
    """Return the numbers by name; `number-of-observers` and `uncommitted-voter-change` of a leader.

    -1 means unknown, as in Kafka.
    """
    known, role, metrics = quorum.high_watermark, quorum.role, quorum.metrics
    found: dict[str, float] = {
        "current-leader": quorum.leader_id,
        "current-vote": quorum.election.voted_id,
        "current-epoch": quorum.epoch,
        "high-watermark": -1 if known is None else known,
        "log-end-offset": quorum.log.log_end_offset,
        "log-end-epoch": quorum.log.last_epoch,
        "number-unknown-voter-connections": 0,
        "number-of-voters": len(quorum.voters.latest),
        "election-latency-avg": metrics.election_ms.average(now_ms),
        "election-latency-max": metrics.election_ms.largest(now_ms),
        "commit-latency-avg": metrics.commit_ms.average(now_ms),
        "commit-latency-max": metrics.commit_ms.largest(now_ms),
        "fetch-records-rate": metrics.fetched_records.per_second(now_ms),
        "append-records-rate": metrics.appended_records.per_second(now_ms),
    }
    if isinstance(role, Leader):
        voters = quorum.voters.latest
        found["number-of-observers"] = sum(not voters.is_voter(key) for key in role.progress)
        found["uncommitted-voter-change"] = int(role.pending_change is not None)
    return found
