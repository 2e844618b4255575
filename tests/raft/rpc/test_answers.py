"""Answers of voters that are errors or of no shape: set aside by name; their sender rests."""

from collections.abc import Callable

import pytest

from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import ResignRequested
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Follower, Leader, Prospective, Resigned
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kraft_wire.wire.generated.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kraft_wire.wire.generated.update_raft_voter import (
    CurrentLeader,
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.message import Message
from tests.kips.test_kip_595 import begin_response, end_response
from tests.raft.cluster import CLUSTER_ID, LISTENER, address_of, directory_id
from tests.raft.rpc.test_responses import transferring
from tests.raft.small import Small, fetch_request, vote_response

DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def candidate() -> Small:
    return Small((1, 2)).candidate()


def leader() -> Small:
    return Small((1, 2)).leader()


def resigned() -> Small:
    small = Small((1, 2)).leader()
    small.step(ResignRequested(2))
    return small


@pytest.mark.parametrize(
    ("made", "asked", "answer", "reason"),
    [
        (candidate, VoteRequest, VoteResponse(error_code=DENIED), Ignored.TOP_LEVEL_ERROR),
        (candidate, VoteRequest, VoteResponse(), Ignored.BAD_SHAPE),
        (candidate, VoteRequest, vote_response(2, error=DENIED), Ignored.PARTITION_ERROR),
        (candidate, VoteRequest, vote_response(1, granted=True), Ignored.STALE_EPOCH),
        (
            leader,
            BeginQuorumEpochRequest,
            BeginQuorumEpochResponse(error_code=DENIED),
            Ignored.TOP_LEVEL_ERROR,
        ),
        (leader, BeginQuorumEpochRequest, BeginQuorumEpochResponse(), Ignored.BAD_SHAPE),
        (leader, BeginQuorumEpochRequest, begin_response(1), Ignored.STALE_EPOCH),
        (
            resigned,
            EndQuorumEpochRequest,
            EndQuorumEpochResponse(error_code=DENIED),
            Ignored.TOP_LEVEL_ERROR,
        ),
        (resigned, EndQuorumEpochRequest, EndQuorumEpochResponse(), Ignored.BAD_SHAPE),
        (resigned, EndQuorumEpochRequest, end_response(1), Ignored.STALE_EPOCH),
        (resigned, EndQuorumEpochRequest, end_response(2, error=DENIED), Ignored.PARTITION_ERROR),
        (
            transferring,
            FetchSnapshotRequest,
            FetchSnapshotResponse(error_code=DENIED),
            Ignored.TOP_LEVEL_ERROR,
        ),
        (transferring, FetchSnapshotRequest, FetchSnapshotResponse(), Ignored.BAD_SHAPE),
    ],
    ids=lambda value: getattr(value, "name", getattr(value, "__name__", "")),
)
def test_answer_is_set_aside_and_its_sender_rests(
    made: Callable[[], Small], asked: type[Message], answer: Message, reason: Ignored
) -> None:
    small = made()
    before = type(small.role), small.quorum.epoch
    sent = small.sent(asked)[-1]
    small.answer(sent, answer)
    assert small.quorum.ignored.counts() == {reason: 1}
    assert (type(small.role), small.quorum.epoch) == before
    assert not small.quorum.peers.is_ready(sent.node_id)
    small.pass_ms(20)
    assert small.quorum.peers.is_ready(sent.node_id) or small.sent(asked)


def test_an_endorsement_comes_too_late_for_a_leader_that_has_resigned() -> None:
    """handleBeginQuorumEpochResponse of 4.3.1: ignored, since no longer leader."""
    small = Small((1, 2)).leader()
    sent = small.sent(BeginQuorumEpochRequest)[-1]
    small.step(ResignRequested(small.quorum.epoch))
    assert isinstance(small.role, Resigned)
    small.answer(sent, begin_response(small.quorum.epoch))
    assert small.quorum.ignored.counts() == {Ignored.LATE_ANSWER: 1}
    assert isinstance(small.role, Resigned)
    assert small.role.acknowledged == {}, "it acknowledges no resignation"


def test_an_answer_to_an_end_that_names_a_newer_epoch_ends_the_resignation() -> None:
    """maybeHandleCommonResponse of 4.3.1: the epoch and its leader are adopted first."""
    small = resigned()
    sent = small.sent(EndQuorumEpochRequest)[-1]
    small.answer(sent, end_response(7, leader_id=3))
    assert (small.quorum.epoch, small.quorum.leader_id) == (7, 3)
    assert isinstance(small.role, Follower)


# ---- UpdateRaftVoter -------------------------------------------------------------------------


def updating() -> Small:
    """A follower of 2 in epoch 3 that tells its leader where it listens."""
    small = Small((1, 2)).follower()
    assert small.sent(UpdateRaftVoterRequest)
    return small


def updated(error: int = 0, **leader: int) -> UpdateRaftVoterResponse:
    told = CurrentLeader(**{"leader_id": 2, "leader_epoch": 3, **leader})  # type: ignore[arg-type]  # numbers
    return UpdateRaftVoterResponse(error_code=error, current_leader=told)


@pytest.mark.parametrize("error", [0, ErrorCode.UNSUPPORTED_VERSION])
def test_leader_that_knows_or_cannot_know_is_not_told_again(error: int) -> None:
    small = updating()
    small.now_ms += 50
    small.answer(small.sent(UpdateRaftVoterRequest)[0], updated(error))
    assert isinstance(small.role, Follower)
    assert small.role.has_updated
    assert small.role.fetch_deadline_ms == small.now_ms + 200, "it is alive"


def test_old_leader_without_that_api_is_not_told_again() -> None:
    small = updating()
    answer = UpdateRaftVoterResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    small.answer(small.sent(UpdateRaftVoterRequest)[0], answer)
    assert isinstance(small.role, Follower)
    assert small.role.has_updated


@pytest.mark.parametrize("error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.VOTER_NOT_FOUND])
def test_leader_that_is_busy_is_told_again_in_the_next_period(error: int) -> None:
    small = updating()
    small.answer(small.sent(UpdateRaftVoterRequest)[0], updated(error))
    assert small.quorum.ignored[Ignored.PARTITION_ERROR] == 1
    assert isinstance(small.role, Follower)
    assert not small.role.has_updated


def test_answer_to_an_update_that_names_a_newer_leader_is_followed() -> None:
    small = updating()
    answer = updated(ErrorCode.FENCED_LEADER_EPOCH, leader_id=3, leader_epoch=9)
    small.answer(small.sent(UpdateRaftVoterRequest)[0], answer)
    assert (small.quorum.epoch, small.quorum.leader_id) == (9, 3)


@pytest.mark.parametrize(
    ("port", "is_port"), [(1, True), (65_535, True), (65_536, False), (0, False), (-1, False)]
)
def test_newer_leader_is_asked_where_the_answer_says_if_that_is_a_port(
    port: int, is_port: bool
) -> None:
    small = updating()
    answer = updated(ErrorCode.FENCED_LEADER_EPOCH, leader_id=3, leader_epoch=9)
    assert answer.current_leader is not None
    answer.current_leader.host, answer.current_leader.port = "moved", port
    small.answer(small.sent(UpdateRaftVoterRequest)[0], answer)
    asked = [each for each in small.effects if isinstance(each, SendRequest)]
    assert {each.node_id for each in asked} == {3}
    wanted = Address("moved", port) if is_port else address_of(3)
    assert {each.address for each in asked} == {wanted}


def test_answer_to_an_update_says_nothing_to_who_follows_nobody() -> None:
    """UpdateVoterHandler's answer is for the follower of that leader: a candidate has none."""
    small = updating()
    sent = small.sent(UpdateRaftVoterRequest)[0]
    small.pass_ms(400)
    assert isinstance(small.role, Prospective)
    small.answer(sent, updated(leader_id=-1))
    assert isinstance(small.role, Prospective)
    assert small.quorum.ignored.counts() == {Ignored.LATE_ANSWER: 1}


def update_request(
    node_id: int = 2, *, port: int = 9002, levels: tuple[int, int] = (0, 1), generation: int = 0
) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        current_leader_epoch=2,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id, generation),
        listeners=[Listener(name=LISTENER, host=address_of(node_id).host, port=port)],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=levels[0], max_supported_version=levels[1]
        ),
    )


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (update_request(), ErrorCode.NONE),
        (update_request(port=7), ErrorCode.NONE),
        (update_request(levels=(0, 2)), ErrorCode.NONE),
        (update_request(levels=(1, 1)), ErrorCode.NONE),
        (update_request(levels=(0, 0)), ErrorCode.INVALID_REQUEST),
        (update_request(9), ErrorCode.VOTER_NOT_FOUND),
        (update_request(generation=1), ErrorCode.VOTER_NOT_FOUND),
        (update_request(9, levels=(0, 0)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_leader_of_a_dynamic_quorum_takes_what_a_voter_says_of_itself(
    request_: UpdateRaftVoterRequest, error: ErrorCode
) -> None:
    small = Small((1, 2), is_dynamic=True).established()
    before = small.disk.log.log_end_offset
    small.ask(fetch_request(2, before, 2))
    assert small.reply(request_).error_code == error
    is_news = error is ErrorCode.NONE and request_ != update_request()
    assert small.disk.log.log_end_offset == before + is_news, "what changes nothing appends nothing"


@pytest.mark.parametrize(
    ("request_", "error"),
    [(update_request(), ErrorCode.NONE), (update_request(9), ErrorCode.VOTER_NOT_FOUND)],
)
def test_leader_of_a_static_quorum_remembers_what_a_voter_says(
    request_: UpdateRaftVoterRequest, error: ErrorCode
) -> None:
    small = Small((1, 2)).established()
    assert small.reply(request_).error_code == error
    assert isinstance(small.role, Leader)
    assert list(small.role.reported_nodes) == ([2] if error is ErrorCode.NONE else [])
