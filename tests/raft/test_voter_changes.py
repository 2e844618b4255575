"""A request that changes the voters gets one answer, when KIP-853 and KIP-1186 say so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.raft.events import ResignRequested
from kraft_wire.raft.membership import PendingChange
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.message import Message
from tests.raft.cluster import Cluster, Host, Setup
from tests.raft.invariants import Broken, Ledger, Patience
from tests.raft.swarm import add_request, remove_request


def settled() -> Cluster:
    """Voters 1, 2 and 3; the observer 4 has caught up."""
    cluster = Cluster(5, Setup(observers=(4,), is_dynamic=True))
    cluster.judges += [Ledger(cluster), Patience(cluster)]
    cluster.start()
    assert cluster.run_until(cluster.is_settled)
    cluster.run(300)
    return cluster


def leader_of(cluster: Cluster) -> Host:
    leader = cluster.leader()
    assert leader is not None
    return leader


def added(cluster: Cluster) -> Message:
    return add_request(cluster.hosts[4])


def added_without_wait(cluster: Cluster) -> Message:
    return add_request(cluster.hosts[4], ack_when_committed=False)


def removed(cluster: Cluster) -> Message:
    leader = leader_of(cluster)
    other = next(each for each in (1, 2, 3) if each != leader.id)
    return remove_request(other, cluster.hosts[other].key.directory_id)


def cut_off(cluster: Cluster) -> Host:
    """Let the leader reach only the observer, which has no vote yet."""
    leader = leader_of(cluster)
    cluster.cut([leader.id], [each for each in (1, 2, 3) if each != leader.id])
    return leader


@pytest.mark.parametrize("change", [added, added_without_wait, removed])
def test_change_that_is_committed_is_answered_once(change: Callable[[Cluster], Message]) -> None:
    cluster = settled()
    leader, request = leader_of(cluster), change(cluster)
    ticket = cluster.ask(leader.id, request)
    assert cluster.run_until(lambda: ticket in cluster.client_answers)
    cluster.run(400)
    assert cluster.client_answers[ticket].error_code == E.NONE  # type: ignore[attr-defined]  # both kinds have it


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (added, E.NOT_LEADER_OR_FOLLOWER),
        (added_without_wait, E.NONE),
        (removed, E.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_change_whose_leader_resigns_is_answered_once(
    change: Callable[[Cluster], Message], error: E
) -> None:
    """KIP-1186: who does not wait for the commit is answered as soon as the record is appended."""
    cluster = settled()
    leader, request = cut_off(cluster), change(cluster)
    ticket = cluster.ask(leader.id, request)
    assert cluster.run_until(lambda: len(leader.quorum().quorum.voters.latest.nodes) != 3)
    cluster.take(leader.id, ResignRequested(leader.quorum().quorum.epoch))
    cluster.run(400)
    assert cluster.client_answers[ticket].error_code == error  # type: ignore[attr-defined]  # both kinds have it


def test_second_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge sees a change that is answered when it is appended, and again when committed."""
    cluster = settled()
    monkeypatch.setattr(PendingChange, "is_answered", property(lambda _: False, lambda *_: None))
    cluster.ask(leader_of(cluster).id, added_without_wait(cluster))
    with pytest.raises(Broken, match="L6 answered once"):
        cluster.run(400)
