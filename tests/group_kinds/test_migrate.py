"""When more deliveries in downgrades of ours are no chance; the lists are of runs of both makes."""

from __future__ import annotations

from tests.group_kinds.migrate import PROBABILITY_LEAST, probability_of

QUIET = [16, 12, 10, 9, 14, 15, 11, 13, 17, 8, 12, 14]


def test_the_same_deliveries_are_chance() -> None:
    assert 0.3 < probability_of(QUIET, list(reversed(QUIET))) < 0.7


def test_fewer_of_ours_are_never_refused() -> None:
    assert probability_of(QUIET, [each - 3 for each in QUIET]) > 0.9


def test_half_as_many_again_are_no_chance() -> None:
    assert probability_of(QUIET, [each * 3 // 2 for each in QUIET]) < PROBABILITY_LEAST


def test_a_run_without_downgrades_shows_nothing() -> None:
    assert probability_of([], []) == 1
