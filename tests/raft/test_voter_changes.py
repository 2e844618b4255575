"""A request that changes the voters gets one answer, when KIP-853 and KIP-1186 say so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.model import ReplicaId
from kraft_wire.raft.effects import AppendControlRecords, Reply
from kraft_wire.raft.events import ResignRequested
from kraft_wire.raft.membership import PendingChange
from kraft_wire.raft.roles import Leader, Resigned
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated import update_raft_voter
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest, Listener
from kraft_wire.wire.generated.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.voters_record import VotersRecord
from kraft_wire.wire.message import Message
from tests.raft.cluster import LISTENER, Cluster, Host, Setup, address_of, directory_id
from tests.raft.invariants import Broken, Ledger, Patience
from tests.raft.small import TIMING, Small, fetch_request
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


def versions(low: int = 0, high: int = 1, name: str = "kraft.version") -> ApiVersionsResponse:
    feature = SupportedFeatureKey(name=name, min_version=low, max_version=high)
    return ApiVersionsResponse(supported_features=[feature])


@pytest.mark.parametrize(
    ("missing", "silent_ms", "answer", "error"),
    [
        ((0,), 0, versions(), None),
        ((2,), 0, versions(), E.REQUEST_TIMED_OUT),
        ((2, 1), 0, versions(), E.REQUEST_TIMED_OUT),
        ((), 0, versions(), E.REQUEST_TIMED_OUT),
        ((0,), 200_000, versions(), None),
        ((0,), TIMING.caught_up_within_ms, versions(), E.REQUEST_TIMED_OUT),
        ((0,), 0, versions(0, 0), E.INVALID_REQUEST),
        ((0,), 0, versions(2, 3), E.INVALID_REQUEST),
        ((0,), 0, versions(name="metadata.version"), E.INVALID_REQUEST),
        ((0,), 0, ApiVersionsResponse(error_code=E.UNSUPPORTED_VERSION), E.REQUEST_TIMED_OUT),
    ],
)
def test_new_voter_knows_the_version_and_has_caught_up_lately(
    missing: tuple[int, ...], silent_ms: int, answer: ApiVersionsResponse, error: E | None
) -> None:
    """KIP-853: it has reached the log's end once, and it has fetched since lately."""
    leader = Small((1, 2), is_dynamic=True).established()
    end, epoch = leader.disk.log.log_end_offset, leader.quorum.epoch
    for each in missing:
        leader.ask(fetch_request(epoch, end - each, node_id=4))
    if silent_ms:
        leader.now_ms += silent_ms
        leader.ask(fetch_request(epoch, end, node_id=2))
    leader.ask(added_by(4))
    (asked,) = leader.sent(ApiVersionsRequest)
    effects = leader.answer(asked, answer)
    replies = [each.response.error_code for each in effects if isinstance(each, Reply)]  # type: ignore[attr-defined]  # of AddRaftVoter
    assert replies == ([] if error is None else [error])
    assert (4 in leader.quorum.voters.latest.nodes) == (error is None)


@pytest.mark.parametrize("ends", ["deadline", "resignation", "another"])
def test_versions_that_come_after_the_end_of_an_addition_add_nobody(ends: str) -> None:
    """AddVoterHandler of 4.3.1: an answer to another request than the pending one is ignored."""
    leader = Small((1, 2), is_dynamic=True).established()
    end, epoch = leader.disk.log.log_end_offset, leader.quorum.epoch
    leader.ask(fetch_request(epoch, end, node_id=4))
    leader.ask(added_by(4))
    (asked,) = leader.sent(ApiVersionsRequest)
    if ends == "resignation":
        leader.step(ResignRequested(epoch))
    else:
        leader.now_ms += TIMING.request_timeout_ms - 1
        leader.ask(fetch_request(epoch, end, node_id=2))
        replies = [each for each in leader.pass_ms(1) if isinstance(each, Reply)]
        assert [each.response.error_code for each in replies] == [E.REQUEST_TIMED_OUT]  # type: ignore[attr-defined]  # of AddRaftVoter
    if ends == "another":
        leader.ask(fetch_request(epoch, end, node_id=5))
        leader.ask(added_by(5))
    effects = leader.answer(asked, versions())
    assert not [each for each in effects if isinstance(each, Reply)]
    assert sorted(leader.quorum.voters.latest.nodes) == [1, 2, 3]
    assert leader.disk.log.log_end_offset == end


def added_by(node_id: int) -> AddRaftVoterRequest:
    address = address_of(node_id)
    return AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=30_000,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id),
        listeners=[Listener(name=LISTENER, host=address.host, port=address.port)],
    )


def test_second_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge sees a change that is answered when it is appended, and again when committed."""
    cluster = settled()
    monkeypatch.setattr(PendingChange, "is_answered", property(lambda _: False, lambda *_: None))
    cluster.ask(leader_of(cluster).id, added_without_wait(cluster))
    with pytest.raises(Broken, match="L6 answered once"):
        cluster.run(400)


def test_only_voter_waits_a_whole_period_for_the_second_one() -> None:
    """KIP-595: check-quorum is of a majority of the voters, so it begins with the second one."""
    leader = Small((1, 2), voters=(1,), is_dynamic=True)
    leader.pass_ms(10 * TIMING.check_quorum_timeout_ms)
    epoch, end = leader.quorum.epoch, leader.disk.log.log_end_offset
    leader.ask(fetch_request(epoch, end, leader.disk.log.last_epoch, node_id=4))
    leader.ask(added_by(4))
    (asked,) = leader.sent(ApiVersionsRequest)
    leader.answer(asked, versions())
    assert len(leader.quorum.voters.latest) == 2
    leader.pass_ms(TIMING.check_quorum_timeout_ms - 1)
    assert isinstance(leader.role, Leader)
    leader.pass_ms(1)
    assert isinstance(leader.role, Resigned)


def test_change_that_is_not_committed_is_answered_at_its_deadline() -> None:
    """KIP-853: REQUEST_TIMED_OUT after `controller.quorum.request.timeout.ms`, and not later."""
    leader = Small((1, 2), is_dynamic=True).established()
    leader.now_ms += 30
    due_ms = leader.now_ms + TIMING.request_timeout_ms
    effects = leader.ask(remove_request(3, directory_id(3)))
    while not (replies := [each for each in effects if isinstance(each, Reply)]):
        deadline_ms = leader.replica.deadline_ms()
        assert deadline_ms is not None
        effects = leader.pass_ms(deadline_ms - leader.now_ms)
    assert leader.now_ms == due_ms
    assert [each.response.error_code for each in replies] == [E.REQUEST_TIMED_OUT]  # type: ignore[attr-defined]  # of RemoveRaftVoter


def test_listener_whose_name_is_too_long_in_upper_case_is_left_out() -> None:
    """The leader writes a voter's listeners to the log. A string has at most 32,767 bytes there."""
    leader = Small((1, 2), is_dynamic=True).established()
    own = update_raft_voter.Listener(name=LISTENER, host="moved", port=7)
    tripled = update_raft_voter.Listener(name="\u0390" * 16_000, host="host", port=1)
    request = update_raft_voter.UpdateRaftVoterRequest(
        cluster_id=None,
        current_leader_epoch=leader.quorum.epoch,
        voter_id=2,
        voter_directory_id=directory_id(2),
        listeners=[own, tripled],
    )
    request.kraft_version_feature.max_supported_version = 1
    leader.reply(request)
    (appended,) = [each for each in leader.effects if isinstance(each, AppendControlRecords)]
    (voters,) = appended.messages
    assert VotersRecord.decode(voters.encode(0), 0)[0] == voters
    node = leader.quorum.voters.latest.nodes[ReplicaId(2)]
    assert node.endpoints == {LISTENER: Address("moved", 7)}
