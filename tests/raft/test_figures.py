"""What a replica reports in metrics: its state by name, and each number from its source."""

import pytest

from kraft_wire.model import ElectionState, LeaderEpoch, ReplicaId, Uuid, uuid_to_text
from kraft_wire.raft.figures import numbers, state_name, voted_directory
from kraft_wire.raft.roles import Leader
from tests.raft.cluster import directory_id
from tests.raft.small import Small, fetch_request, vote_request

LOG = ((1, 5), (2, 3))


def voted_for(candidate: int) -> Small:
    small = Small(*LOG, voters=(0, 1, 2))
    small.ask(vote_request(4, candidate, (2, 8), directory=directory_id(candidate)))
    return small


@pytest.mark.parametrize(
    ("small", "name"),
    [
        (Small(*LOG), "unattached"),
        (voted_for(0), "unattached-voted"),
        (voted_for(2), "unattached-voted"),
        (Small(*LOG).prospective(), "prospective"),
        (Small(*LOG).candidate(), "candidate"),
        (Small(*LOG).leader(), "leader"),
        (Small(*LOG).follower(), "follower"),
        (Small(*LOG, node_id=4).follower(), "observer"),
        (Small(*LOG).resigned(), "unattached"),
    ],
)
def test_state_has_kafkas_name(small: Small, name: str) -> None:
    assert state_name(small.quorum) == name


@pytest.mark.parametrize("candidate", [0, 2])
def test_prospective_that_has_voted_says_so(candidate: int) -> None:
    small = voted_for(candidate)
    small.pass_ms(10_000)
    assert state_name(small.quorum) == "prospective-voted"


def test_directory_of_the_vote_is_22_characters_and_zero_before_one() -> None:
    assert voted_directory(Small(*LOG).quorum) == "A" * 22
    assert voted_directory(voted_for(2).quorum) == uuid_to_text(Uuid(directory_id(2)))


def test_numbers_of_a_replica_that_knows_nobody() -> None:
    found = numbers(Small(*LOG, voters=(1, 2)).quorum, 5)
    assert found == {
        "current-leader": -1,
        "current-vote": -1,
        "current-epoch": 2,
        "high-watermark": -1,
        "log-end-offset": 8,
        "log-end-epoch": 2,
        "number-unknown-voter-connections": 0,
        "number-of-voters": 2,
        "election-latency-avg": 0,
        "election-latency-max": 0,
        "commit-latency-avg": 0,
        "commit-latency-max": 0,
        "fetch-records-rate": 0,
        "append-records-rate": 0,
    }


def test_vote_and_leader_are_told_by_id() -> None:
    assert numbers(voted_for(2).quorum, 0)["current-vote"] == 2
    assert numbers(voted_for(0).quorum, 0)["current-vote"] == 0
    stored = ElectionState(LeaderEpoch(7), ReplicaId(3), ReplicaId(-1))
    found = numbers(Small(*LOG, stored=stored).quorum, 0)
    assert (found["current-leader"], found["current-epoch"]) == (3, 7)


def test_numbers_of_a_leader() -> None:
    small = Small(*LOG, is_dynamic=True).established()
    assert isinstance(small.role, Leader)
    found = numbers(small.quorum, small.now_ms)
    assert found["current-leader"] == 1
    assert found["high-watermark"] == small.quorum.high_watermark
    assert found["high-watermark"] > 0
    assert found["log-end-epoch"] == small.quorum.epoch
    assert found["number-of-voters"] == 3
    assert found["uncommitted-voter-change"] == 0
    assert found["number-of-observers"] == 0, "voter 3 has not fetched yet"
    log = small.disk.log
    small.ask(fetch_request(small.quorum.epoch, log.log_end_offset, log.last_epoch, node_id=9))
    assert numbers(small.quorum, small.now_ms)["number-of-observers"] == 1


def test_each_measure_is_shown_under_its_name() -> None:
    small = Small(*LOG)
    metrics = small.quorum.metrics
    for window, values in (
        (metrics.election_ms, (10, 30)),
        (metrics.commit_ms, (4, 6)),
        (metrics.fetched_records, (3000, 6000)),
        (metrics.appended_records, (300, 600)),
    ):
        for value in values:
            window.note(value, 0)
    found = numbers(small.quorum, 0)
    shown = [name for name in found if "latency" in name or "rate" in name]
    assert [(name, found[name]) for name in shown] == [
        ("election-latency-avg", 20),
        ("election-latency-max", 30),
        ("commit-latency-avg", 5),
        ("commit-latency-max", 6),
        ("fetch-records-rate", 300),
        ("append-records-rate", 30),
    ]
