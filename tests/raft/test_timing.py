"""Waits are drawn from the ranges that they promise, down to the shortest timeouts."""

import random

import pytest

from kraft_wire.raft.timing import RaftTiming, end_quorum_backoff_ms


class RandomSource:
    """Draws from a seed."""

    def __init__(self) -> None:
        self.below = random.Random(1).randrange


@pytest.mark.parametrize("timeout_ms", [1, 2, 3, 1000])
def test_election_waits_are_all_of_one_to_two_timeouts(timeout_ms: int) -> None:
    timing, random_source = RaftTiming(election_timeout_ms=timeout_ms), RandomSource()
    drawn = {timing.draw_election_timeout_ms(random_source) for _ in range(50 * timeout_ms)}  # type: ignore[arg-type]  # it draws
    assert (min(drawn), max(drawn)) == (timeout_ms, 2 * timeout_ms - 1)


@pytest.mark.parametrize("timeout_ms", [1, 7, 8, 1000])
def test_precedence_is_a_quarter_of_the_timeout_at_most(timeout_ms: int) -> None:
    timing, random_source = RaftTiming(election_timeout_ms=timeout_ms), RandomSource()
    drawn = {timing.draw_precedence_ms(random_source) for _ in range(20 * timeout_ms)}  # type: ignore[arg-type]  # it draws
    assert (min(drawn), max(drawn)) == (1, max(1, timeout_ms // 4))


def test_successors_wait_twice_as_long_each_and_others_longest() -> None:
    waits = [end_quorum_backoff_ms(position, 5, 1600) for position in range(6)]
    assert waits == [0, 100, 200, 400, 800, 1600]
    assert [end_quorum_backoff_ms(position, 1, 1600) for position in range(2)] == [0, 1600]


def test_defaults_and_fixed_periods_are_those_of_4_3_1() -> None:
    """`QuorumConfig`, and constants of `KafkaRaftClient` and `LeaderState`."""
    timing = RaftTiming()
    assert (timing.election_timeout_ms, timing.election_backoff_max_ms) == (1_000, 1_000)
    assert (timing.fetch_timeout_ms, timing.request_timeout_ms) == (2_000, 2_000)
    assert timing.retry_backoff_ms == 20
    assert timing.fetch_max_wait_ms == 500
    assert (timing.fetch_max_bytes, timing.fetch_snapshot_max_bytes) == (1 << 20, 1 << 20)
    assert timing.caught_up_within_ms == 60 * 60 * 1_000
    assert timing.observer_forgotten_ms == 5 * 60 * 1_000
    assert (timing.check_quorum_timeout_ms, timing.begin_quorum_pace_ms) == (3_000, 1_000)
