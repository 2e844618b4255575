"""Requests of a follower about its own voter entry: update, removal, addition (KIP-853, KIP-1186).

Checked once per fetch timeout. A voter reports listeners and range if they differ from the log, or
once to each leader while kraft.version is 0. An observer that joins by itself first asks to remove
its previous key, whose directory is lost, then to be added.
"""

from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower
from kraft_wire.raft.rpc import add_raft_voter, remove_raft_voter, update_raft_voter
from kraft_wire.wire.message import Message

__all__ = ["request_to_leader"]


def request_to_leader(quorum: Quorum, role: Follower, now_ms: int) -> Message | None:
    """Return the request that is due now, None without one."""
    assert quorum.role is role, quorum.role
    if role.voter_update_deadline_ms > now_ms or not quorum.config.is_controller:
        return None
    role.voter_update_deadline_ms = now_ms + quorum.config.timing.fetch_timeout_ms
    if quorum.is_voter:
        return update_raft_voter.build_request(quorum) if _has_news(quorum, role) else None
    if quorum.config.joins_by_itself and quorum.voters.kraft_version >= 1:
        return _joining_step(quorum)
    return None


def _has_news(quorum: Quorum, role: Follower) -> bool:
    if not quorum.config.endpoints:
        return False
    if quorum.voters.kraft_version == 0:
        return not role.has_updated
    known = quorum.voters.latest.nodes[quorum.config.key.id]
    assert known.key == quorum.config.key, known
    return known != quorum.config.as_voter()


def _joining_step(quorum: Quorum) -> Message:
    former = quorum.voters.latest.nodes.get(quorum.config.key.id)
    assert former is None or former.key != quorum.config.key, former
    if former is not None:
        return remove_raft_voter.build_request(quorum, former.key)
    return add_raft_voter.build_request(quorum)
