"""A vote of an epoch belongs to one candidate: to one id and one directory, over restarts too."""

import pytest

from kraft_wire.model import ZERO_UUID, ElectionState
from kraft_wire.raft.effects import PersistElectionState, Reply
from kraft_wire.raft.roles import Follower, Unattached
from kraft_wire.wire.generated.vote import VoteResponse
from tests.raft.cluster import directory_id
from tests.raft.small import Small, begin_request, vote_request

EPOCH = 4
LAST = (2, 8)


def asked(small: Small, candidate: int, directory: bytes, last: tuple[int, int] = LAST) -> bool:
    """Ask for the vote of epoch 4; whether it is granted."""
    small.ask(vote_request(EPOCH, candidate, last, directory=directory))
    (reply,) = [effect for effect in small.effects if isinstance(effect, Reply)]
    assert isinstance(reply.response, VoteResponse)
    return reply.response.topics[0].partitions[0].vote_granted


def stored(small: Small) -> ElectionState:
    """The election state that the newest step wrote."""
    written = [one for one in small.effects if isinstance(one, PersistElectionState)]
    return written[-1].election


def restarted(election: ElectionState) -> Small:
    return Small((1, 5), (2, 3), voters=(0, 1, 2, 3), stored=election)


@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarts"])
@pytest.mark.parametrize("candidate", [0, 2])
def test_vote_is_repeated_to_the_same_id_and_directory_only(candidate: int, restarts: bool) -> None:
    small = Small((1, 5), (2, 3), voters=(0, 1, 2, 3))
    own, other = directory_id(candidate), directory_id(candidate, 1)
    assert asked(small, candidate, own)
    election = stored(small)
    assert (election.voted_id, election.voted_directory_id) == (candidate, own)
    if restarts:
        small = restarted(election)
    for directory in (other, ZERO_UUID):
        assert not asked(small, candidate, directory)
    for rival in (0, 2, 3):
        if rival != candidate:
            assert not asked(small, rival, own)
            assert not asked(small, rival, directory_id(rival))
    assert asked(small, candidate, own)
    assert asked(small, candidate, own, last=(1, 1)), "the logs are not compared again"
    assert not [one for one in small.effects if isinstance(one, PersistElectionState)]


def test_vote_is_durable_before_its_answer_leaves() -> None:
    small = Small((1, 5), (2, 3))
    assert asked(small, 2, directory_id(2))
    kinds = [type(effect) for effect in small.effects]
    last_write = max(at for at, kind in enumerate(kinds) if kind is PersistElectionState)
    assert last_write < kinds.index(Reply)


def test_candidate_that_names_no_directory_is_known_by_its_id() -> None:
    """Requests of version 0 carry no directory."""
    small = Small((1, 5), (2, 3))
    assert asked(small, 2, ZERO_UUID)
    assert asked(small, 2, directory_id(2))
    assert not asked(small, 3, ZERO_UUID)


@pytest.mark.parametrize("candidate", [0, 2])
def test_prospective_that_voted_keeps_its_vote(candidate: int) -> None:
    small = restarted(
        ElectionState(EPOCH, voted_id=candidate, voted_directory_id=directory_id(candidate))  # type: ignore[arg-type]  # numbers
    )
    small.prospective()
    assert asked(small, candidate, directory_id(candidate))
    assert not asked(small, candidate, directory_id(candidate, 1))
    assert not asked(small, 3, directory_id(3))


def test_candidate_votes_for_nobody_else_and_not_for_a_double_of_itself() -> None:
    small = Small((1, 5), (2, 3)).candidate()
    epoch = small.quorum.epoch
    for candidate, directory in ((2, directory_id(2)), (1, directory_id(1, 1))):
        small.ask(vote_request(epoch, candidate, (2, 99), directory=directory))
        (reply,) = [effect for effect in small.effects if isinstance(effect, Reply)]
        assert not reply.response.topics[0].partitions[0].vote_granted  # type: ignore[attr-defined]  # its answer


def test_replica_that_knows_the_leader_of_an_epoch_gives_no_vote_in_it() -> None:
    """It is Unattached, because it cannot reach that leader."""
    small = Small((1, 5), (2, 3))
    small.ask(begin_request(EPOCH, 9, endpoints=False))
    assert isinstance(small.role, Unattached)
    assert small.quorum.leader_id == 9
    assert not asked(small, 2, directory_id(2))
    assert small.quorum.election.voted_id == -1


def test_follower_keeps_the_vote_that_it_gave_in_the_epoch() -> None:
    small = Small((1, 5), (2, 3))
    assert asked(small, 2, directory_id(2))
    small.ask(begin_request(EPOCH, 3))
    assert isinstance(small.role, Follower)
    for election in (stored(small), small.quorum.election):
        assert (election.leader_id, election.voted_id) == (3, 2)
        assert election.voted_directory_id == directory_id(2)
