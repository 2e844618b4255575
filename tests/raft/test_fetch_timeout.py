"""What renews a follower's fetch timeout, and which pre-votes it grants before and after it.

The rules are those of 4.3.1 but for two: a follower grants pre-votes once its leader has sent
EndQuorumEpoch, and once its fetch timeout has passed (docs/DEVIATIONS.md).
"""

import pytest

from kraft_wire.raft.polling import lose_pre_vote
from kraft_wire.raft.roles import Follower, Prospective
from kraft_wire.wire.generated.end_quorum_epoch import EndQuorumEpochRequest, ReplicaInfo
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import (
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    SnapshotId,
)
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kraft_wire.wire.generated.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from tests.raft.cluster import directory_id
from tests.raft.rpc.test_requests import end_request
from tests.raft.rpc.test_responses import (
    chunk,
    fetch_response,
    fetching,
    transferring,
    without_update,
)
from tests.raft.small import TIMING, Small, begin_request, vote_request

TIMEOUT_MS = TIMING.fetch_timeout_ms
LATER_MS = TIMEOUT_MS // 4


def deadline_of(small: Small) -> int:
    """The end of the fetch timeout of a follower."""
    assert isinstance(small.role, Follower), small.role
    return int(small.role.fetch_deadline_ms)


def is_renewed_by(small: Small, answer: FetchResponse | FetchSnapshotResponse) -> bool:
    """Tell whether an answer to the newest request renews the fetch timeout, and by how much."""
    kind = FetchRequest if isinstance(answer, FetchResponse) else FetchSnapshotRequest
    before, sent = deadline_of(small), small.sent(kind)[-1]
    small.now_ms += LATER_MS
    small.answer(sent, answer)
    assert deadline_of(small) in (before, small.now_ms + TIMEOUT_MS)
    return deadline_of(small) != before


OTHER_LEADER = LeaderIdAndEpoch(leader_id=3, leader_epoch=3)
FETCH_ANSWERS = [
    ("no records", fetch_response(), True),
    ("records", fetch_response(records=bytes(8)), True),
    ("diverging", fetch_response(diverging_epoch=EpochEndOffset(epoch=2, end_offset=6)), True),
    ("snapshot", fetch_response(snapshot_id=SnapshotId(end_offset=20, epoch=2)), True),
    ("top-level error", FetchResponse(error_code=E.UNKNOWN_SERVER_ERROR), False),
    ("partition error", fetch_response(error_code=E.UNKNOWN_SERVER_ERROR), False),
    ("no leader", fetch_response(error_code=E.NOT_LEADER_OR_FOLLOWER), False),
    ("stopping leader", fetch_response(error_code=E.BROKER_NOT_AVAILABLE), False),
    ("another leader", fetch_response(current_leader=OTHER_LEADER), False),
    ("no leader named", fetch_response(current_leader=None), False),
]


@pytest.mark.parametrize(("name", "answer", "renews"), FETCH_ANSWERS, ids=lambda v: str(v)[:16])
def test_fetch_answer_renews_the_timeout_unless_it_is_an_error(
    name: str, answer: FetchResponse, renews: bool
) -> None:
    assert is_renewed_by(fetching(), answer) is renews, name


def test_late_fetch_answer_renews_nothing() -> None:
    """It was asked for at another end of the log."""
    small = fetching()
    small.disk.log.append(small.shelf.new_batch(8, 2, (b"",)))
    small.disk.log.flush()
    assert not is_renewed_by(small, fetch_response())


CHUNK_ANSWERS = [
    ("chunk", chunk(0, b"abcdef"), True),
    ("last chunk", chunk(0, b"abcdefghij"), True),
    ("snapshot not found", chunk(0, b"", error_code=E.SNAPSHOT_NOT_FOUND), True),
    ("position out of range", chunk(0, b"", error_code=E.POSITION_OUT_OF_RANGE), False),
    ("no leader", chunk(0, b"", error_code=E.NOT_LEADER_OR_FOLLOWER), False),
    ("top-level error", FetchSnapshotResponse(error_code=E.UNKNOWN_SERVER_ERROR), False),
]


@pytest.mark.parametrize(("name", "answer", "renews"), CHUNK_ANSWERS, ids=lambda v: str(v)[:16])
def test_snapshot_chunk_renews_the_timeout_unless_it_is_an_error(
    name: str, answer: FetchSnapshotResponse, renews: bool
) -> None:
    assert is_renewed_by(transferring(), answer) is renews, name


def test_transfer_that_is_longer_than_the_timeout_starts_no_election() -> None:
    small = transferring()
    assert isinstance(small.role, Follower)
    small.role.has_updated = True
    started_ms = small.now_ms
    for position in range(9):
        sent = small.sent(FetchSnapshotRequest)[-1]
        small.pass_ms(TIMING.request_timeout_ms - 1)
        small.answer(sent, chunk(position, b"x"))
    assert isinstance(small.role, Follower)
    assert small.now_ms - started_ms > 4 * TIMEOUT_MS
    small.pass_ms(TIMEOUT_MS - 1)
    assert isinstance(small.role, Follower)
    small.pass_ms(1)
    assert isinstance(small.role, Prospective), "the leader has fallen silent"


def test_begin_quorum_epoch_of_the_same_leader_renews_nothing() -> None:
    small = fetching()
    before = deadline_of(small)
    small.pass_ms(LATER_MS)
    small.ask(begin_request(3, 2))
    assert deadline_of(small) == before


# -- pre-votes -------------------------------------------------------------------------------------


def grants(small: Small, last: tuple[int, int] = (3, 99), epoch: int = 3) -> bool:
    """Tell whether replica 3 gets a pre-vote for a log that ends there."""
    own = small.quorum.config.key.id
    asked = vote_request(epoch, 3, last=last, pre_vote=True, voter_id=own)
    response = small.reply(asked)
    granted: bool = response.topics[0].partitions[0].vote_granted  # type: ignore[attr-defined]  # its answer
    return granted


def observer() -> Small:
    """A follower of 2 in epoch 3 that is no voter, as far as it knows, and has just fetched."""
    small = Small((1, 5), (2, 3), voters=(2, 3)).follower()
    assert not small.quorum.is_voter
    small.answer(small.sent(FetchRequest)[-1], fetch_response())
    return small


def test_observer_grants_pre_votes_from_the_end_of_its_fetch_timeout() -> None:
    small = observer()
    small.now_ms += TIMEOUT_MS - 1
    assert not grants(small)
    small.now_ms += 1
    assert not grants(small, (2, 7)), "a shorter log"
    assert grants(small)
    assert isinstance(small.role, Follower), "a pre-vote changes nothing"
    assert small.quorum.election.voted_id == -1


def test_observer_whose_leader_answers_again_refuses_again() -> None:
    small = observer()
    small.pass_ms(TIMEOUT_MS)
    assert grants(small)
    small.pass_ms(TIMING.request_timeout_ms)
    to_leader = [one for one in small.sent(FetchRequest) if one.node_id == 2]
    while not to_leader:
        small.pass_ms(TIMING.request_timeout_ms)
        to_leader = [one for one in small.sent(FetchRequest) if one.node_id == 2]
    small.answer(to_leader[-1], fetch_response())
    assert not grants(small)


def test_observer_gives_no_vote_of_the_epoch_whose_leader_it_follows() -> None:
    small = observer()
    small.pass_ms(TIMEOUT_MS)
    response = small.reply(vote_request(3, 3, last=(2, 99)))
    assert not response.topics[0].partitions[0].vote_granted  # type: ignore[attr-defined]  # its answer
    assert small.quorum.election.voted_id == -1


def fetched() -> Small:
    """A voter that follows 2 in epoch 3 and has just fetched."""
    small = fetching()
    small.answer(small.sent(FetchRequest)[-1], fetch_response())
    assert not grants(small)
    return small


def test_follower_grants_pre_votes_once_its_leader_ends_the_epoch() -> None:
    small = fetched()
    small.ask(end_request(3, 2, (3, 1)))
    assert isinstance(small.role, Follower), "the second successor waits"
    assert not grants(small, (2, 7)), "a shorter log"
    assert grants(small)
    assert not small.reply(vote_request(3, 3, last=(2, 99))).topics[0].partitions[0].vote_granted  # type: ignore[attr-defined]  # its answer


def updating() -> Small:
    """A follower that has just told its leader where it can be reached."""
    return Small((1, 5), (2, 3)).follower()


UPDATED = UpdateRaftVoterResponse(current_leader=CurrentLeader(leader_id=2, leader_epoch=3))
ANSWERS_FROM_BEFORE = {
    "fetch": (fetching, FetchRequest, fetch_response()),
    "chunk": (transferring, FetchSnapshotRequest, chunk(0, b"abcdef")),
    "snapshot not found": (
        transferring,
        FetchSnapshotRequest,
        chunk(0, b"", error_code=E.SNAPSHOT_NOT_FOUND),
    ),
    "update of a voter": (updating, UpdateRaftVoterRequest, UPDATED),
}


@pytest.mark.parametrize("name", ANSWERS_FROM_BEFORE)
def test_answer_from_before_endquorumepoch_renews_nothing_behind_it(name: str) -> None:
    """A longer wait would be a whole fetch timeout without a leader; seeds 101398 and 102568."""
    begin, kind, answer = ANSWERS_FROM_BEFORE[name]
    small = begin()
    sent = small.sent(kind)[-1]
    small.ask(end_request(3, 2, (3, 1)))
    until_ms = small.now_ms + TIMING.election_backoff_max_ms // 2
    assert deadline_of(small) == until_ms
    small.answer(sent, answer)
    assert deadline_of(small) == until_ms
    assert grants(small)


def test_answer_from_before_endquorumepoch_renews_nothing_after_a_lost_pre_vote() -> None:
    small = fetching()
    before = small.sent(FetchRequest)[-1]
    small.ask(end_request(3, 2, (1, 3)))
    assert isinstance(small.role, Prospective)
    lose_pre_vote(small.quorum, small.role, small.now_ms)
    until_ms = deadline_of(small)
    small.now_ms += 1
    small.answer(before, fetch_response())
    assert deadline_of(small) == until_ms
    assert grants(small)


def test_leader_of_the_next_epoch_renews_the_timeout_again() -> None:
    small = fetched()
    small.ask(end_request(3, 2, (3, 1)))
    small.ask(begin_request(4, 2))
    without_update(small)
    small.pass_ms(50)
    next_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=4)
    assert is_renewed_by(small, fetch_response(current_leader=next_leader))
    assert not grants(small, epoch=4)


@pytest.mark.parametrize(("epoch", "leader_id"), [(2, 2), (3, 3), (3, -1), (3, 1)])
def test_end_quorum_epoch_of_anybody_else_changes_nothing(epoch: int, leader_id: int) -> None:
    small = fetched()
    before = deadline_of(small)
    small.ask(end_request(epoch, leader_id, (1, 3)))
    assert deadline_of(small) == before
    assert not grants(small)


def ended_for(*candidates: tuple[int, int]) -> Small:
    """A voter whose leader ended the epoch, naming (id, generation of the directory)."""
    small = fetched()
    request = end_request(3, 2, (1,))
    assert isinstance(request, EndQuorumEpochRequest)
    request.topics[0].partitions[0].preferred_candidates = [
        ReplicaInfo(candidate_id=node_id, candidate_directory_id=directory_id(node_id, generation))
        for node_id, generation in candidates
    ]
    small.ask(request)
    return small


def test_preferred_candidate_is_named_by_id_and_directory() -> None:
    assert isinstance(ended_for((1, 0), (3, 0)).role, Prospective)
    second = ended_for((3, 0), (1, 0))
    assert deadline_of(second) == second.now_ms + TIMING.election_backoff_max_ms // 2
    for candidates in (((1, 1), (3, 0)), ((3, 0), (4, 0)), ((3, 1), (1, 1))):
        other = ended_for(*candidates)
        assert deadline_of(other) == other.now_ms + TIMING.election_backoff_max_ms
