"""How long nobody leads after a leader has died, and what two that miss it make of each other."""

import random

import pytest

from kraft_wire.raft.effects import ShutdownCompleted
from kraft_wire.raft.events import ShutdownRequested
from kraft_wire.raft.roles import Candidate, Prospective, Resigned
from kraft_wire.wire.generated.vote import VoteRequest
from tests.raft.cluster import Cluster, Setup
from tests.raft.small import TIMING, Small, vote_request, vote_response

PRECEDENCE_MS = TIMING.election_timeout_ms // 4


def failover_ms(seed: int) -> int:
    """Kill a leader under load; the time until another one may act as such."""
    cluster, random_source = Cluster(seed, Setup(flush_ms=2)), random.Random(seed)
    cluster.start()
    assert cluster.run_until(cluster.is_settled)
    end_ms = cluster.now_ms + 500 + random_source.randrange(500)
    while cluster.now_ms < end_ms:
        leader = cluster.leader()
        assert leader is not None
        cluster.append(leader.id)
        cluster.run(random_source.randrange(1, 8))
    dead, died_ms = cluster.leader(), cluster.now_ms
    assert dead is not None
    dead.crash()
    assert cluster.run_until(cluster.established)
    return int(cluster.now_ms - died_ms)


def test_failover_takes_a_fetch_timeout_and_not_an_election_timeout_on_top() -> None:
    timing = Setup().timing
    longest_ms = timing.fetch_timeout_ms + timing.election_timeout_ms // 2
    times = [failover_ms(seed) for seed in range(25)]
    assert max(times) < longest_ms, times


@pytest.mark.parametrize("hears_first", ["the pre-vote", "the answer"])
def test_who_told_another_one_to_go_ahead_lets_it_go_first_for_a_moment(hears_first: str) -> None:
    small = Small((1, 3)).prospective()
    mine = small.sent(VoteRequest)[0]
    rival = vote_request(1, 2, (1, 3), pre_vote=True)
    if hears_first == "the answer":
        small.answer(mine, vote_response(1, granted=True))
        assert isinstance(small.role, Candidate)
        return
    small.ask(rival)
    small.answer(mine, vote_response(1, granted=True))
    assert isinstance(small.role, Prospective)
    deadline_ms = small.replica.deadline_ms()
    assert deadline_ms is not None
    assert small.now_ms < deadline_ms <= small.now_ms + PRECEDENCE_MS
    small.ask(rival)
    assert small.replica.deadline_ms() == deadline_ms, "asking again does not put it off"
    small.pass_ms(deadline_ms - small.now_ms)
    assert isinstance(small.role, Candidate)


def test_who_refused_because_it_believed_in_the_leader_is_asked_again_once_it_does_not() -> None:
    small = Small((1, 3)).prospective()
    small.answer(small.sent(VoteRequest)[0], vote_response(1))
    assert not small.pass_ms(20)
    small.ask(vote_request(1, 2, (1, 2), pre_vote=True))
    (again,) = small.sent(VoteRequest)
    assert again.node_id == 2
    small.answer(again, vote_response(1, granted=True))
    assert isinstance(small.role, Candidate)


def test_refusal_that_was_sent_before_the_rival_missed_the_leader_is_asked_for_again_once() -> None:
    small = Small((1, 3)).prospective()
    mine = small.sent(VoteRequest)[0]
    small.ask(vote_request(1, 2, (1, 2), pre_vote=True))
    assert not small.sent(VoteRequest)
    small.answer(mine, vote_response(1))
    (again,) = small.sent(VoteRequest)
    small.answer(again, vote_response(1))
    assert not small.sent(VoteRequest)
    assert small.quorum.role.answers == {1: True, 2: False}


def test_grant_counts_even_where_its_giver_is_refused_itself() -> None:
    small = Small((1, 3), voters=(1, 2, 3, 4, 5)).prospective()
    small.answer(small.sent(VoteRequest)[0], vote_response(1, granted=True))
    small.ask(vote_request(1, 2, (1, 2), pre_vote=True))
    assert not small.sent(VoteRequest)
    assert small.quorum.role.answers == {1: True, 2: True}


def test_pre_votes_of_strangers_are_answered_and_not_remembered() -> None:
    small = Small((1, 3)).prospective()
    mine = small.sent(VoteRequest)[0]
    for stranger in range(100, 200):
        small.ask(vote_request(1, stranger, (1, 2), pre_vote=True))
        small.ask(vote_request(1, stranger, (1, 3), pre_vote=True))
    assert isinstance(small.role, Prospective)
    assert not small.role.rivals
    small.answer(mine, vote_response(1, granted=True))
    assert isinstance(small.role, Candidate), "no stranger was let go first"


def test_leader_that_stops_begins_no_other_epoch() -> None:
    """`pollResigned`: "it will remain in the resigned state until the shutdown expires"."""
    stopping = Small((1, 5), (2, 3)).established()
    epoch = stopping.quorum.epoch
    stopping.step(ShutdownRequested(10_000))
    stopping.pass_ms(9_999)
    assert isinstance(stopping.role, Resigned)
    assert stopping.quorum.epoch == epoch
    assert ShutdownCompleted() in stopping.pass_ms(1)


def test_pre_vote_that_a_refused_rival_grants_counts_at_once() -> None:
    """KIP-996: only its refusal may be of a time at which it still had the leader."""
    small = Small((1, 5)).prospective()
    (asked, *_) = small.sent(VoteRequest)
    epoch = small.quorum.epoch
    small.ask(vote_request(epoch, asked.node_id, last=(1, 4), pre_vote=True))
    small.answer(asked, vote_response(epoch, granted=True))
    assert isinstance(small.role, Candidate)
