"""What a quorum does when nothing is wrong, and when its leader is cut off (L5, L7, KIP-595)."""

import pytest

from kraft_wire.model import ReplicaId
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Leader, Resigned
from kraft_wire.raft.voters import VersionRange
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest
from kraft_wire.wire.generated.add_raft_voter import Listener as AddListener
from kraft_wire.wire.generated.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.vote import VoteRequest
from tests.raft.cluster import CLUSTER_ID, LISTENER, Cluster, Setup, address_of, directory_id
from tests.raft.invariants import Ledger
from tests.raft.small import TIMING, Small, fetch_request, vote_response

MINUTES_MS = 180_000
LEVELS = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
OTHER = SupportedFeatureKey(name="metadata.version", min_version=7, max_version=30)


def settled(*voters: int) -> Cluster:
    cluster = Cluster(7, Setup(voters=voters))
    cluster.judges.append(Ledger(cluster))
    cluster.start()
    assert cluster.run_until(cluster.is_settled, 30_000)
    return cluster


@pytest.mark.parametrize("voters", [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4, 5)])
def test_undisturbed_quorum_keeps_its_leader(voters: tuple[int, ...]) -> None:
    cluster = settled(*voters)
    leader = cluster.leader()
    assert leader is not None
    epoch = leader.quorum().quorum.epoch
    cluster.run_until(lambda: False, MINUTES_MS)
    assert cluster.leader() is leader
    assert leader.quorum().quorum.epoch == epoch


@pytest.mark.parametrize("voters", [(1, 2), (1, 2, 3), (1, 2, 3, 4, 5)])
def test_leader_that_is_cut_off_resigns_in_time(voters: tuple[int, ...]) -> None:
    cluster = settled(*voters)
    leader = cluster.leader()
    assert leader is not None
    cluster.cut([leader.id], [other for other in voters if other != leader.id])
    on_the_way_ms = cluster.links.delay_ms[1]
    period_ms = cluster.setup.timing.check_quorum_timeout_ms
    assert cluster.run_until(
        lambda: not isinstance(leader.quorum().quorum.role, Leader), period_ms + on_the_way_ms
    )


def test_most_advanced_voter_is_the_first_successor() -> None:
    small = Small((1, 9), voters=(1, 2, 3, 4, 5)).prospective()
    for _ in ("pre-votes", "votes"):
        for sent in small.sent(VoteRequest)[:2]:
            small.answer(sent, vote_response(small.quorum.epoch, granted=True))
    assert isinstance(small.role, Leader)
    for node_id, offset in ((3, 9), (4, 4), (5, 7)):
        small.ask(fetch_request(small.quorum.epoch, offset, 1, node_id=node_id))
    small.pass_ms(TIMING.check_quorum_timeout_ms)
    assert isinstance(small.role, Resigned)
    assert [key.id for key in small.role.preferred] == [3, 5, 4, 2]


@pytest.mark.parametrize(
    ("fetches", "later_ms", "is_added"),
    [
        ([], 0, False),
        (["behind"], 0, False),
        (["behind", "at the end"], 0, True),
        (["at the end", "behind"], 0, True),
        (["at the end"], TIMING.caught_up_within_ms, False),
    ],
)
def test_replica_is_added_once_it_has_caught_up(
    fetches: list[str], later_ms: int, is_added: bool
) -> None:
    """KIP-853: the leader adds who has reached its log's end, and fetched within the hour."""
    small = Small((1, 3), is_dynamic=True).established()
    epoch, end = small.quorum.epoch, small.disk.log.log_end_offset
    small.ask(fetch_request(epoch, end, epoch, node_id=2))
    for place in fetches:
        at, last_epoch = (1, 1) if place == "behind" else (end, epoch)
        small.ask(fetch_request(epoch, at, last_epoch, node_id=9))
    for _ in range(later_ms // TIMING.fetch_timeout_ms):
        small.pass_ms(TIMING.fetch_timeout_ms)
        small.ask(fetch_request(epoch, end, epoch, node_id=2))
    question = asked_to_add(small)
    effects = small.answer(question, ApiVersionsResponse(supported_features=[LEVELS]))
    refusals = [one.response.error_code for one in effects if isinstance(one, Reply)]
    assert refusals == ([] if is_added else [ErrorCode.REQUEST_TIMED_OUT])
    assert (9 in small.quorum.voters.latest.nodes) is is_added


def asked_to_add(small: Small) -> SendRequest:
    """Have the leader add voter 9, and return what it asks of it first."""
    address = address_of(9)
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        voter_id=9,
        voter_directory_id=directory_id(9),
        listeners=[AddListener(name=LISTENER, host=address.host, port=address.port)],
    )
    small.ask(request)
    (question,) = small.sent(ApiVersionsRequest)
    return question


def test_new_voter_that_answers_with_an_error_is_not_added_and_rests() -> None:
    small = Small((1, 3), is_dynamic=True).established()
    epoch, end = small.quorum.epoch, small.disk.log.log_end_offset
    small.ask(fetch_request(epoch, end, epoch, node_id=2))
    small.ask(fetch_request(epoch, end, epoch, node_id=9))
    question = asked_to_add(small)
    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, supported_features=[LEVELS]
    )
    effects = small.answer(question, answer)
    refusals = [one.response.error_code for one in effects if isinstance(one, Reply)]
    assert refusals == [ErrorCode.REQUEST_TIMED_OUT]
    assert 9 not in small.quorum.voters.latest.nodes
    assert small.quorum.ignored.counts() == {Ignored.TOP_LEVEL_ERROR: 1}
    assert not small.quorum.peers.is_ready(question.node_id)


@pytest.mark.parametrize(
    ("features", "is_added"),
    [
        ([OTHER, LEVELS], True),
        ([LEVELS, OTHER], True),
        ([OTHER], False),
        ([], False),
        ([SupportedFeatureKey(name="kraft.version", min_version=0, max_version=0)], False),
    ],
)
def test_new_voter_must_know_the_level_of_kraft_version_whatever_else_it_knows(
    features: list[SupportedFeatureKey], is_added: bool
) -> None:
    small = Small((1, 3), is_dynamic=True).established()
    epoch, end = small.quorum.epoch, small.disk.log.log_end_offset
    small.ask(fetch_request(epoch, end, epoch, node_id=2))
    small.ask(fetch_request(epoch, end, epoch, node_id=9))
    effects = small.answer(asked_to_add(small), ApiVersionsResponse(supported_features=features))
    refusals = [one.response.error_code for one in effects if isinstance(one, Reply)]
    assert refusals == ([] if is_added else [ErrorCode.INVALID_REQUEST])
    assert (9 in small.quorum.voters.latest.nodes) is is_added
    if is_added:
        assert small.quorum.voters.latest.nodes[9].kraft_versions == VersionRange(0, 1)


def test_voter_that_was_removed_keeps_no_leader_in_office() -> None:
    """`LeaderState.updateCheckQuorumForFollowingVoter` drops whoever is no voter any more."""
    small = Small((1, 3), voters=(1, 2, 3, 4, 5)).prospective()
    for _ in ("pre-votes", "votes"):
        for sent in small.sent(VoteRequest)[:2]:
            small.answer(sent, vote_response(small.quorum.epoch, granted=True))
    leader = small.role
    assert isinstance(leader, Leader)
    leader.heard_since_check[ReplicaId(9)] = True  # a voter then
    before_ms = leader.check_quorum_deadline_ms
    small.now_ms += 10
    for node_id, is_extended in ((2, False), (2, False), (3, True)):
        small.ask(fetch_request(small.quorum.epoch, 3, 1, node_id=node_id))
        assert (leader.check_quorum_deadline_ms > before_ms) == is_extended
