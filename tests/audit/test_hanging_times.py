"""When an open transaction counts as hanging, and when as overdue: to the millisecond."""

from __future__ import annotations

import pytest

from kraft_wire.audit.hanging_checks import CoordinatedTransaction, check_hanging
from kraft_wire.audit.transaction_checks import OpenTransaction

NOW_MS, TIMEOUT_MS, MAX_MS = 10_000_000, 60_000, 900_000
"""The largest is Kafka's default of `transaction.max.timeout.ms`."""


def found(
    silent_ms: int, began_ms_ago: int, coordinated: tuple[tuple[str, int], ...] | None
) -> list[str]:
    """Return the severities of what is found about one transaction in t-0."""
    opened = OpenTransaction("1", "t", 0, 7, 2, 40, "f.log", 9, NOW_MS - silent_ms)
    known = {}
    if coordinated is not None:
        start_ms = NOW_MS - began_ms_ago
        known[7] = CoordinatedTransaction(
            "tid", "Ongoing", frozenset(coordinated), start_ms, TIMEOUT_MS
        )
    return [each.severity for each in check_hanging([opened], known, NOW_MS)]


@pytest.mark.parametrize("coordinated", [None, (), (("t", 1),), (("u", 0),)])
@pytest.mark.parametrize(("silent_ms", "levels"), [(0, []), (MAX_MS, []), (MAX_MS + 1, ["warn"])])
def test_what_no_coordinator_will_end_hangs_after_the_longest_timeout(
    coordinated: tuple[tuple[str, int], ...] | None, silent_ms: int, levels: list[str]
) -> None:
    assert found(silent_ms, 0, coordinated) == levels


@pytest.mark.parametrize("silent_ms", [0, MAX_MS + 1])
@pytest.mark.parametrize(
    ("began_ms_ago", "levels"), [(0, []), (TIMEOUT_MS, []), (TIMEOUT_MS + 1, ["info"])]
)
def test_what_a_coordinator_knows_is_overdue_by_its_own_start_and_timeout(
    silent_ms: int, began_ms_ago: int, levels: list[str]
) -> None:
    assert found(silent_ms, began_ms_ago, (("t", 1), ("t", 0))) == levels
