"""What a replica measures of itself: windows over the last minute, elections, commits, records."""

import pytest

from kraft_wire.raft.metrics import RaftMetrics, SlidingWindow

MINUTE_MS = 60_000


def test_window_forgets_what_is_older_than_two_halves() -> None:
    window = SlidingWindow()
    window.note(10, 1_000)
    window.note(20, 31_000)
    assert (window.average(31_000), window.largest(31_000)) == (15, 20)
    assert (window.average(61_000), window.largest(61_000)) == (20, 20)
    assert (window.average(91_000), window.largest(91_000)) == (0, 0)


def test_window_that_was_not_asked_for_long_is_empty() -> None:
    window = SlidingWindow()
    window.note(10, 1_000)
    assert window.average(100 * MINUTE_MS) == 0
    assert window.per_second(100 * MINUTE_MS) == 0


def test_rate_is_the_sum_over_the_time_it_took() -> None:
    window = SlidingWindow()
    for second in range(60):
        window.note(5, second * 1_000)
    assert window.per_second(59_999) == pytest.approx(5, rel=0.01)


def test_value_that_is_noted_several_times_weighs_as_much() -> None:
    window = SlidingWindow()
    window.note(1, 0)
    window.note(4, 0, times=2)
    assert window.average(0) == 3


def test_election_is_timed_from_the_first_question_to_a_known_leader() -> None:
    metrics = RaftMetrics()
    metrics.began_election(100)
    metrics.began_election(900)
    metrics.found_leader(1_100)
    metrics.found_leader(5_000)
    assert metrics.election_ms.largest(5_000) == 1_000
    assert metrics.election_ms.average(5_000) == 1_000


def test_commit_is_timed_for_each_record_and_memory_is_bounded() -> None:
    metrics = RaftMetrics()
    metrics.appended(3, 3, 100)  # type: ignore[arg-type]  # plain numbers
    metrics.appended(4, 1, 200)  # type: ignore[arg-type]  # plain numbers
    metrics.committed(3, 300)  # type: ignore[arg-type]  # plain numbers
    assert (metrics.commit_ms.average(300), metrics.commit_ms.largest(300)) == (200, 200)
    metrics.committed(4, 600)  # type: ignore[arg-type]  # plain numbers
    assert metrics.commit_ms.average(600) == (3 * 200 + 400) / 4
    for offset in range(5, 5_000):
        metrics.appended(offset, 1, 700)  # type: ignore[arg-type]  # plain numbers
    assert len(metrics.appends) == 1_024
