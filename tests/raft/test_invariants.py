"""The judges themselves: each sees the violation that is planted for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.raft import leading, polling, replica
from kraft_wire.raft.effects import LeadershipEnded
from kraft_wire.raft.events import ResignRequested
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Leader, Resigned, Role
from kraft_wire.raft.rpc import vote
from tests.raft.cluster import Cluster, Setup
from tests.raft.invariants import Broken, Ledger, NamedLeaders, Patience
from tests.raft.swarm import Day

Patch = pytest.MonkeyPatch


def settled(*voters: int) -> Cluster:
    cluster = Cluster(5, Setup(voters=voters))
    cluster.judges += [Ledger(cluster), Patience(cluster)]
    cluster.start()
    assert cluster.run_until(cluster.is_settled)
    return cluster


def cut_off_leader(cluster: Cluster) -> None:
    leader = cluster.leader()
    assert leader is not None
    cluster.cut([leader.id], [node for node in cluster.hosts if node != leader.id])
    cluster.run(4 * cluster.setup.timing.check_quorum_timeout_ms)


def test_leader_that_never_resigns_is_seen(monkeypatch: Patch) -> None:
    """M15: KAFKA-15489, a leader that reaches no majority stays one."""
    cluster = settled(1, 2, 3)
    monkeypatch.setattr(polling, "quorum_check_needs", lambda quorum: 0)
    with pytest.raises(Broken, match="L7 StaleLeaderResigns"):
        cut_off_leader(cluster)


def test_leader_that_resigns_is_no_violation() -> None:
    cluster = settled(1, 2, 3)
    first = cluster.leader()
    cut_off_leader(cluster)
    assert cluster.leader() is not first


def test_leader_that_the_host_is_not_told_is_seen(monkeypatch: Patch) -> None:
    cluster = settled(1, 2, 3)
    cluster.judges.append(NamedLeaders())
    monkeypatch.setattr("kraft_wire.raft.quorum.LeaderChanged", lambda *_: LeadershipEnded(0))
    with pytest.raises(Broken, match="S01 SingleLeaderPerEpoch told"):
        cut_off_leader(cluster)


def test_sole_voter_that_resigns_is_seen(monkeypatch: Patch) -> None:
    """M16: KAFKA-16144, the check of the quorum expires in a quorum of one."""
    cluster = settled(1)
    monkeypatch.setattr(polling, "quorum_check_needs", lambda quorum: 1)
    with pytest.raises(Broken, match="L7 a sole voter resigned"):
        cluster.run(10_000)


def test_sole_voter_that_is_told_to_resign_is_no_violation() -> None:
    cluster = settled(1)
    cluster.take(1, ResignRequested(cluster.hosts[1].quorum().quorum.epoch))
    assert cluster.run_until(cluster.established)


def test_fetches_that_stay_parked_after_the_leadership_are_seen(monkeypatch: Patch) -> None:
    """M23: KAFKA-10677, a resigned leader leaves fetches parked."""
    cluster = settled(1, 2, 3)
    real = replica.RaftReplica._answer_waiting

    def answer_waiting(self: replica.RaftReplica) -> None:
        if isinstance(self.quorum.role, Resigned):
            self.quorum.woken = []
            return
        real(self)

    monkeypatch.setattr(replica.RaftReplica, "_answer_waiting", answer_waiting)
    leader = cluster.leader()
    assert leader is not None
    with pytest.raises(Broken, match="L6 ParkedRequestsEnd with the leadership"):
        cluster.take(leader.id, ResignRequested(leader.quorum().quorum.epoch))


def test_fetches_that_stay_parked_beyond_their_time_are_seen(monkeypatch: Patch) -> None:
    cluster = settled(1, 2, 3)
    parked = type(cluster.hosts[1].quorum().quorum.parked)
    monkeypatch.setattr(parked, "take_due", lambda self, now_ms: [])
    monkeypatch.setattr(parked, "deadline_ms", lambda self: None)
    with pytest.raises(Broken, match="L6 ParkedRequestsEnd in time"):
        cluster.run(5_000)


def slow_successor(patch: Patch) -> None:
    """M32: KAFKA-20895, nobody grants a pre-vote once the leader has resigned."""

    def grants(role: Role, up_to_date: bool, now_ms: int) -> bool:
        return False

    patch.setattr(vote, "grants_pre_vote", grants)


def gullible_followers(patch: Patch) -> None:
    """R05: a follower grants pre-votes although its leader answers."""

    def grants(role: Role, up_to_date: bool, now_ms: int) -> bool:
        return up_to_date and not isinstance(role, Leader)

    patch.setattr(vote, "grants_pre_vote", grants)


def deaf_followers(patch: Patch) -> None:
    """R33: a follower refuses pre-votes although its leader has ended the epoch."""

    def grants(role: Role, up_to_date: bool, now_ms: int) -> bool:
        return up_to_date and not isinstance(role, Follower | Leader)

    patch.setattr(vote, "grants_pre_vote", grants)


def restless_leader(patch: Patch) -> None:
    real = leading.note_contact

    def note(quorum: Quorum, leader, key, now_ms: int) -> None:  # type: ignore[no-untyped-def]  # as the real one
        if now_ms < 1_500:
            real(quorum, leader, key, now_ms)

    patch.setattr(leading, "note_contact", note)


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        (slow_successor, "L"),
        (gullible_followers, "L5 pre-vote against a leader"),
        (deaf_followers, "L5 no pre-vote after EndQuorumEpoch"),
        (restless_leader, "L"),
    ],
    ids=["M32", "R05", "R33", "restless"],
)
def test_quorum_that_does_not_stay_or_heal_at_once_is_seen(
    plant: Callable[[Patch], None], name: str, monkeypatch: Patch
) -> None:
    seeds = iter(range(40))

    def broken() -> str:
        for seed in seeds:
            try:
                Day(seed, 300).run()
            except Broken as found:
                return str(found)
        return ""

    monkeypatch.setattr("tests.raft.swarm.HEALED_MS", 3_000)
    plant(monkeypatch)
    assert broken().startswith(name)


def test_request_under_way_is_no_parked_one() -> None:
    """A judge that mistakes what is on the wire for what waits would see violations everywhere."""
    cluster = settled(1, 2, 3)
    patience = next(judge for judge in cluster.judges if isinstance(judge, Patience))
    cluster.run(2_000)
    waiting = [len(parked) for parked in patience.parked.values()]
    assert max(waiting) <= 2
