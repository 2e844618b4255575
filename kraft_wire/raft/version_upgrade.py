"""Raising kraft.version from 0 to 1 (KIP-853): a static quorum becomes a dynamic one.

Every voter must have sent this leader its listeners, its directory and a range that includes the
level. One control batch then has level and voters. It cannot be undone.
"""

from kraft_wire.model import Offset
from kraft_wire.raft.effects import VersionUpgradeAnswered
from kraft_wire.raft.events import VersionUpgradeRequested
from kraft_wire.raft.leading import append_control_records
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader
from kraft_wire.raft.voter_changes import start_error
from kraft_wire.raft.voters import VoterSet
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord

__all__ = ["upgrade"]


def upgrade(quorum: Quorum, event: VersionUpgradeRequested, now_ms: int) -> None:
    """Append level and voters.

    Errors, first match wins: NOT_LEADER_OR_FOLLOWER, INVALID_UPDATE_VERSION (a lower or unknown
    level), none for the level in force, REQUEST_TIMED_OUT (a change is pending, or no high
    watermark), INVALID_UPDATE_VERSION (some voter has not said that it knows the level).
    """
    error = _error(quorum, event)
    if error is ErrorCode.NONE and event.level > quorum.voters.kraft_version:
        voters = _reported(quorum, event.level)
        if voters is None:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif not event.validate_only:
            _append(quorum, event.level, voters, now_ms)
    quorum.effects.append(VersionUpgradeAnswered(event.ticket, error))
    assert error is not ErrorCode.NONE or isinstance(quorum.role, Leader)


def _error(quorum: Quorum, event: VersionUpgradeRequested) -> ErrorCode:
    leader, level = quorum.role, quorum.voters.kraft_version
    assert level >= 0, level
    if not isinstance(leader, Leader) or event.leader_epoch != quorum.epoch:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if event.level < level or not quorum.config.kraft_versions.includes(event.level):
        return ErrorCode.INVALID_UPDATE_VERSION
    return ErrorCode.NONE if event.level == level else start_error(quorum, leader)


def _reported(quorum: Quorum, level: int) -> VoterSet | None:
    """Return the set with the voters' own updates, None if one is missing."""
    leader = quorum.role
    assert isinstance(leader, Leader), leader
    own = quorum.config.as_voter()
    nodes = []
    for voter in quorum.voters.latest.nodes:
        node = own if voter == own.key.id else leader.reported_nodes.get(voter)
        if node is None or not node.kraft_versions.includes(level):
            return None
        nodes.append(node)
    return VoterSet.of(nodes)


def _append(quorum: Quorum, level: int, voters: VoterSet, now_ms: int) -> None:
    version = KRaftVersionRecord(version=0, kraft_version=level)
    offset = append_control_records(quorum, [version, voters.to_record()], now_ms)
    quorum.voters.appended_version(offset, level)
    quorum.voters.appended_voters(Offset(offset + 1), voters)
    assert quorum.voters.kraft_version == level
