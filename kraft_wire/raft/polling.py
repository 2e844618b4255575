"""Actions of a replica without a request: campaigns, requests that are due, timeouts.

`act` depends on the state, not on the event, and runs after every event until nothing changes: a
timer that fires twice, early or late does no harm. `deadline_ms` is its counterpart: the next
time at which `act` has something to do.
"""

from kraft_wire.model import LeaderEpoch, ReplicaId
from kraft_wire.raft import voter_changes
from kraft_wire.raft.effects import ShutdownCompleted
from kraft_wire.raft.elections import VoteOutcome, outcome
from kraft_wire.raft.leading import (
    begin_leader_epoch,
    forget_silent_observers,
    quorum_check_needs,
    resign,
)
from kraft_wire.raft.quorum import EPOCH_MAX, Quorum
from kraft_wire.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from kraft_wire.raft.rpc import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    vote,
)
from kraft_wire.raft.self_update import request_to_leader
from kraft_wire.raft.transitions import Trigger
from kraft_wire.raft.voters import Address

__all__ = ["act", "deadline_ms", "is_campaigning"]

ROLES_IN_A_STEP_MAX = 8
"""Bound on the changes of role in one step: resigned to leader takes four."""


def act(quorum: Quorum, now_ms: int) -> None:
    """Perform the actions that are due now."""
    for _ in range(ROLES_IN_A_STEP_MAX):
        role = quorum.role
        match role:
            case Follower():
                _act_follower(quorum, role, now_ms)
            case Leader():
                _act_leader(quorum, role, now_ms)
            case Unattached():
                _act_unattached(quorum, role, now_ms)
            case Prospective():
                _act_prospective(quorum, role, now_ms)
            case Candidate():
                _act_candidate(quorum, role, now_ms)
            case Resigned():
                _act_resigned(quorum, role, now_ms)
        assert quorum.epoch >= 0, quorum.epoch
        if quorum.role is role:
            _finish_shutdown(quorum, now_ms)
            return
    raise AssertionError(f"roles do not settle: {quorum.role}")


def is_campaigning(quorum: Quorum) -> bool:
    """Return whether this replica campaigns, or leads."""
    assert quorum.role is not None
    return isinstance(quorum.role, Prospective | Candidate | Leader)


def _act_unattached(quorum: Quorum, role: Unattached, now_ms: int) -> None:
    deadline_ms = role.election_deadline_ms
    assert quorum.is_voter or deadline_ms is None, "observers do not campaign"
    if deadline_ms is not None and deadline_ms <= now_ms:
        quorum.become_prospective(Trigger.ELECTION_TIMEOUT, now_ms)
    else:
        _fetch_from_anybody(quorum, now_ms)


def _act_prospective(quorum: Quorum, role: Prospective, now_ms: int) -> None:
    standing = outcome(quorum.voters.latest, role.answers)
    is_first = role.stands_from_ms is None or role.stands_from_ms <= now_ms
    assert quorum.is_voter, "observers do not campaign"
    if standing is VoteOutcome.WON and is_first and quorum.epoch < EPOCH_MAX:
        quorum.become_candidate(Trigger.PRE_VOTE_WON, now_ms)
    elif standing is VoteOutcome.LOST or role.election_deadline_ms <= now_ms:
        lose_pre_vote(quorum, role, now_ms)
    elif standing is VoteOutcome.OPEN:
        _ask_voters(quorum, role, now_ms, pre_vote=True)


def lose_pre_vote(quorum: Quorum, role: Prospective, now_ms: int) -> None:
    """Follow the previous leader again, or wait for another one."""
    assert quorum.role is role, quorum.role
    if quorum.config.listener in role.leader_endpoints:
        quorum.become_follower(
            Trigger.PRE_VOTE_LOST, quorum.epoch, quorum.leader_id, role.leader_endpoints, now_ms
        )
    else:
        quorum.become_unattached(Trigger.PRE_VOTE_LOST, quorum.epoch, now_ms, quorum.leader_id)


def _act_candidate(quorum: Quorum, role: Candidate, now_ms: int) -> None:
    standing = outcome(quorum.voters.latest, role.answers)
    assert quorum.is_voter, "observers do not campaign"
    if standing is VoteOutcome.WON:
        if not quorum.log_is_changing:
            begin_leader_epoch(quorum, now_ms)
    elif role.election_deadline_ms <= now_ms:
        quorum.become_prospective(Trigger.ELECTION_TIMEOUT, now_ms)
    elif standing is VoteOutcome.OPEN and _is_log_durable(quorum):
        _ask_voters(quorum, role, now_ms, pre_vote=False)


def _is_log_durable(quorum: Quorum) -> bool:
    """Return whether the whole log would survive power loss.

    A voter repeats its vote without another comparison of logs. A candidate whose log was shorter
    after a restart could collect that vote and lead without a committed record.
    """
    log = quorum.log
    assert log.flushed_end_offset <= log.log_end_offset, log.flushed_end_offset
    return not quorum.log_is_changing and log.flushed_end_offset == log.log_end_offset


def _ask_voters(
    quorum: Quorum, role: Prospective | Candidate, now_ms: int, *, pre_vote: bool
) -> None:
    """Send Vote to every voter that has not answered yet and may be sent to."""
    assert quorum.election.voted_id == quorum.config.key.id or pre_vote, quorum.election
    for voter, address in _reachable_voters(quorum):
        if voter not in role.answers:
            request = vote.build_request(quorum, voter, pre_vote=pre_vote)
            quorum.effects.append(quorum.peers.send(voter, address, request, now_ms))


def _reachable_voters(quorum: Quorum) -> list[tuple[ReplicaId, Address]]:
    """Yield other voters with a known address, to which a request may be sent now."""
    voters = quorum.voters.latest
    found: list[tuple[ReplicaId, Address]] = []
    for voter in voters.nodes:
        address = voters.address(voter, quorum.config.listener)
        if address is None or voter == quorum.config.key.id or not quorum.peers.is_ready(voter):
            continue
        found.append((voter, address))
    assert len(found) <= len(voters), found
    return found


def _act_follower(quorum: Quorum, role: Follower, now_ms: int) -> None:
    is_late = role.fetch_deadline_ms <= now_ms
    if is_late and quorum.is_voter:
        quorum.become_prospective(Trigger.FETCH_TIMEOUT, now_ms)
        return
    address = role.leader_endpoints[quorum.config.listener]
    assert quorum.leader_id != quorum.config.key.id, "a replica does not follow itself"
    leader_id = quorum.leader_id
    if is_late or not quorum.peers.is_trusted(leader_id):
        _fetch_from_anybody(quorum, now_ms)
        return
    # An outstanding request to another node, which may be unreachable, must not block the fetch
    # from the leader: a fetch answer counts only for the log's end in its request.
    if not quorum.peers.is_ready(leader_id):
        return
    request = request_to_leader(quorum, role, now_ms)
    if request is None and _may_fetch(quorum):
        if role.transfer is not None:
            request = fetch_snapshot.build_request(quorum, role.transfer)
        else:
            request = fetch.build_request(quorum)
    if request is not None:
        quorum.effects.append(quorum.peers.send(leader_id, address, request, now_ms))


def _may_fetch(quorum: Quorum) -> bool:
    """Return whether a fetch may be sent: all records that it acknowledges must be durable."""
    if quorum.log_is_changing:
        return False
    log = quorum.log
    assert log.flushed_end_offset <= log.log_end_offset, log.flushed_end_offset
    return not quorum.config.is_controller or log.flushed_end_offset == log.log_end_offset


def _fetch_from_anybody(quorum: Quorum, now_ms: int) -> None:
    """Fetch from a random node that may be or know the leader (KIP-853 discovery)."""
    if quorum.peers.has_any_outstanding or not _may_fetch(quorum):
        return
    known = _bootstrap_nodes(quorum)
    ready = [(node_id, at) for node_id, at in known if quorum.peers.is_ready(node_id)]
    if not ready:
        return
    node_id, address = ready[quorum.random_source.below(len(ready))]
    request = fetch.build_request(quorum)
    assert quorum.peers.is_ready(node_id), node_id
    quorum.effects.append(quorum.peers.send(node_id, address, request, now_ms))


def _bootstrap_nodes(quorum: Quorum) -> list[tuple[int, Address]]:
    """Bootstrap servers as nodes -2, -3, …; the known voters if no other server is configured.

    They include a leader that stopped answering: it may be back, and be the only one to know it.
    """
    config = quorum.config
    found = list(quorum.bootstrap_nodes)
    if not found:
        for voter in quorum.voters.latest.nodes:
            address = quorum.voters.latest.address(voter, config.listener)
            if voter != config.key.id and address is not None:
                found.append((voter, address))
    if isinstance(quorum.role, Follower):
        leader = (quorum.leader_id, quorum.role.leader_endpoints[config.listener])
        found += [leader] if leader not in found else []
    assert all(node_id != config.key.id for node_id, _ in found), found
    return found


def _act_leader(quorum: Quorum, role: Leader, now_ms: int) -> None:
    voter_changes.settle(quorum, role, now_ms)
    if voter_changes.is_removed(quorum, role):
        resign(quorum, role, now_ms)
        return
    if quorum_check_needs(quorum) > 0 and role.check_quorum_deadline_ms <= now_ms:
        resign(quorum, role, now_ms)
        return
    if quorum.shutdown_deadline_ms is not None and not quorum.is_only_voter:
        resign(quorum, role, now_ms)
        return
    assert quorum.leader_id == quorum.config.key.id, quorum.election
    quorum.woken += quorum.parked.take_due(now_ms)
    if role.begin_quorum_deadline_ms <= now_ms:
        _announce(quorum, role, now_ms)
        forget_silent_observers(quorum, role, now_ms)


def _announce(quorum: Quorum, role: Leader, now_ms: int) -> None:
    """Send BeginQuorumEpoch to the voters that have not fetched for a while."""
    pace_ms = quorum.config.timing.begin_quorum_pace_ms
    role.begin_quorum_deadline_ms = now_ms + pace_ms
    assert role.begin_quorum_deadline_ms > now_ms
    for voter, address in _reachable_voters(quorum):
        key = quorum.voters.latest.nodes[voter].key
        progress = role.progress.get(key)
        fetched_ms = progress.last_fetch_ms if progress is not None else None
        if fetched_ms is None or fetched_ms + pace_ms <= now_ms:
            request = begin_quorum_epoch.build_request(quorum, key)
            quorum.effects.append(quorum.peers.send(voter, address, request, now_ms))


def _act_resigned(quorum: Quorum, role: Resigned, now_ms: int) -> None:
    is_stopping = quorum.shutdown_deadline_ms is not None
    if role.election_deadline_ms <= now_ms and not is_stopping and quorum.epoch < EPOCH_MAX:
        quorum.become_unattached(Trigger.ELECTION_TIMEOUT, LeaderEpoch(quorum.epoch + 1), now_ms)
        return
    assert quorum.leader_id == quorum.config.key.id, quorum.election
    for voter, address in _reachable_voters(quorum):
        if voter not in role.acknowledged:
            request = end_quorum_epoch.build_request(quorum, role)
            quorum.effects.append(quorum.peers.send(voter, address, request, now_ms))


def _finish_shutdown(quorum: Quorum, now_ms: int) -> None:
    """End a graceful stop: at once if no peer depends on this replica, else at its deadline."""
    deadline_ms = quorum.shutdown_deadline_ms
    if deadline_ms is None:
        return
    role = quorum.role
    somebody_else_campaigns = isinstance(role, Unattached) and quorum.epoch > quorum.shutdown_epoch
    if (
        deadline_ms <= now_ms
        or isinstance(role, Follower)
        or somebody_else_campaigns
        or not quorum.is_voter
        or quorum.is_only_voter
    ):
        quorum.effects.append(ShutdownCompleted())
        quorum.shutdown_deadline_ms = None
        assert not isinstance(role, Leader) or quorum.is_only_voter, role


def deadline_ms(quorum: Quorum, now_ms: int) -> int | None:
    """Return when `act`, last done at `now_ms`, has something to do by itself.

    None if it waits for an event.
    """
    soonest_ms: int | None = None
    for deadline in (
        quorum.peers.deadline_ms(),
        quorum.parked.deadline_ms(),
        quorum.shutdown_deadline_ms,
        *_role_deadlines(quorum, quorum.role),
    ):
        # A due request without a free connection is woken by that connection's own deadline.
        if deadline is None or deadline <= now_ms:
            continue
        if soonest_ms is None or deadline < soonest_ms:
            soonest_ms = deadline
    assert soonest_ms is None or soonest_ms > now_ms, soonest_ms
    return soonest_ms


def _role_deadlines(quorum: Quorum, role: Role) -> tuple[int | None, ...]:
    match role:
        case Follower():  # the most frequent roles first
            return (role.fetch_deadline_ms, role.voter_update_deadline_ms)
        case Leader():
            change = role.pending_change
            assert quorum.leader_id == quorum.config.key.id, quorum.election
            return (
                role.check_quorum_deadline_ms if quorum_check_needs(quorum) > 0 else None,
                role.begin_quorum_deadline_ms,
                change.deadline_ms if change is not None else None,
            )
        case Prospective():
            return (role.election_deadline_ms, role.stands_from_ms)
        case Unattached() | Candidate() | Resigned():
            return (role.election_deadline_ms,)
