"""What a replica says about its leader when it starts (KIP-595 "Quorum State")."""

from __future__ import annotations

import pytest

from kraft_wire.model import ElectionState, LeaderEpoch, ReplicaId
from kraft_wire.raft.effects import LeaderChanged, PersistElectionState
from tests.raft.small import Small


def named(small: Small) -> list[LeaderChanged]:
    return [each for each in small.effects if isinstance(each, LeaderChanged)]


@pytest.mark.parametrize("has", [(), ((1, 2),)])
def test_a_leader_that_is_followed_again_is_named(has: tuple[tuple[int, int], ...]) -> None:
    stored = ElectionState(LeaderEpoch(7), ReplicaId(3))
    assert named(Small(*has, stored=stored)) == [LeaderChanged(ReplicaId(3), LeaderEpoch(7))]


@pytest.mark.parametrize(
    "stored",
    [
        None,
        ElectionState(LeaderEpoch(7)),
        ElectionState(LeaderEpoch(7), voted_id=ReplicaId(3)),
        ElectionState(LeaderEpoch(7), ReplicaId(1)),  # itself, which it never is again
        ElectionState(LeaderEpoch(1), ReplicaId(3)),  # an epoch below the log's
    ],
)
def test_without_a_leader_to_follow_none_is_named(stored: ElectionState | None) -> None:
    assert named(Small((2, 1), stored=stored)) == []


@pytest.mark.parametrize(("is_dynamic", "version"), [(False, 0), (True, 1)])
def test_quorum_state_has_the_version_of_its_quorum(is_dynamic: bool, version: int) -> None:
    """`KRaftVersion.quorumStateVersion`: 0 has the voters of a static quorum, 1 has none."""
    small = Small((1, 2), is_dynamic=is_dynamic)
    (stored,) = [each for each in small.effects if isinstance(each, PersistElectionState)]
    assert stored.data_version == version
    assert stored.election.static_voters == (() if is_dynamic else (1, 2, 3))
