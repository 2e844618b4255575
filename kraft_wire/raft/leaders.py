"""How a replica adopts epochs and leaders, from requests and from answers.

In KIP-595 every message has the sender's view of epoch and leader. A leader's own message is
first-hand; an answer about another leader is second-hand, and does not stop a pre-vote about the
same leader. Contradictions are peers' mistakes: they are named, counted, and not adopted.
"""

from kraft_wire.model import NO_REPLICA, LeaderEpoch, ReplicaId
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.quorum import EPOCH_MAX, Quorum
from kraft_wire.raft.roles import Endpoints, Follower, Prospective
from kraft_wire.raft.transitions import Trigger
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["adopt", "leader_address", "learn", "set_aside"]


def adopt(
    quorum: Quorum,
    epoch: int,
    leader_id: int,
    endpoints: Endpoints,
    now_ms: int,
    *,
    is_first_hand: bool,
) -> Ignored | None:
    """Adopt an epoch not below the current one, and its leader; return the reason of a refusal."""
    assert epoch >= quorum.epoch, (epoch, quorum.epoch)
    if epoch > EPOCH_MAX:
        return Ignored.EPOCHS_EXHAUSTED
    if leader_id == quorum.config.key.id:
        return _named_as_leader(quorum, LeaderEpoch(epoch), now_ms)
    leader = ReplicaId(leader_id) if leader_id >= 0 else NO_REPLICA
    if epoch > quorum.epoch:
        _move(quorum, LeaderEpoch(epoch), leader, endpoints, now_ms)
        return None
    if leader == NO_REPLICA:
        return None
    if quorum.leader_id not in (NO_REPLICA, leader):
        return Ignored.CONFLICTING_LEADER
    role = quorum.role
    if isinstance(role, Follower):
        if len(endpoints) > len(role.leader_endpoints) and quorum.config.listener in endpoints:
            role.leader_endpoints = endpoints
        return None
    is_about_its_leader = isinstance(role, Prospective) and quorum.leader_id == leader
    known_endpoints = role.leader_endpoints if isinstance(role, Prospective) else {}
    if is_about_its_leader and not is_first_hand and len(endpoints) <= len(known_endpoints):
        return None
    _move(quorum, quorum.epoch, leader, endpoints, now_ms)
    return None


def _named_as_leader(quorum: Quorum, epoch: LeaderEpoch, now_ms: int) -> Ignored | None:
    """Adopt the epoch, not the leadership: this replica led it before a lost disk, or never."""
    assert epoch >= quorum.epoch, epoch
    if epoch > quorum.epoch:
        quorum.become_unattached(Trigger.HIGHER_EPOCH, epoch, now_ms)
        return Ignored.NAMED_AS_LEADER
    return None if quorum.leader_id == quorum.config.key.id else Ignored.NAMED_AS_LEADER


def _move(
    quorum: Quorum, epoch: LeaderEpoch, leader: ReplicaId, endpoints: Endpoints, now_ms: int
) -> None:
    listener = quorum.config.listener
    assert leader != quorum.config.key.id, leader
    if listener not in endpoints:
        node = quorum.voters.latest.nodes.get(leader)
        endpoints = node.endpoints if node is not None else {}
    if leader != NO_REPLICA and listener in endpoints:
        quorum.become_follower(Trigger.LEADER_NAMED, epoch, leader, endpoints, now_ms)
    elif (epoch, leader) != (quorum.epoch, quorum.leader_id):
        quorum.become_unattached(Trigger.HIGHER_EPOCH, epoch, now_ms, leader)


def learn(
    quorum: Quorum,
    sent: SendRequest,
    error: int,
    leader_id: int,
    leader_epoch: int,
    address: Address | None,
    now_ms: int,
) -> bool:
    """Adopt epoch and leader from an answer; return whether its body is still relevant.

    In order: an older epoch or UNKNOWN_LEADER_EPOCH is ignored; a higher epoch,
    FENCED_LEADER_EPOCH and NOT_LEADER_OR_FOLLOWER only name the leader; a leader that was unknown
    is followed, and the body is relevant if it has no error.
    """
    assert sent.request_id > 0, sent
    if leader_epoch < quorum.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        set_aside(quorum, sent, Ignored.STALE_EPOCH, now_ms)
        return False
    role, epoch = quorum.role, quorum.epoch
    assert leader_epoch >= epoch, (leader_epoch, epoch)
    endpoints = {quorum.config.listener: address} if address is not None else {}
    reason = adopt(quorum, leader_epoch, leader_id, endpoints, now_ms, is_first_hand=False)
    if reason is not None:
        set_aside(quorum, sent, reason, now_ms)
        return False
    if leader_epoch > epoch:
        return False
    only_names = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if error in only_names or (quorum.role is not role and error != ErrorCode.NONE):
        if quorum.role is role:
            quorum.peers.rest(sent.node_id, now_ms)
        return False
    return True


def set_aside(quorum: Quorum, sent: SendRequest, reason: Ignored, now_ms: int) -> None:
    """Ignore an answer for a named reason, and send its sender nothing during a backoff."""
    assert sent.request_id > 0, sent
    quorum.ignored.count(reason)
    quorum.peers.rest(sent.node_id, now_ms)


def leader_address(quorum: Quorum, listener: str) -> Address | None:
    """Return the known leader's address on a listener."""
    if quorum.leader_id == NO_REPLICA:
        return None
    found = quorum.endpoints_of_leader().get(listener)
    assert found is None or found.port >= 0, found
    return found
