"""Times of tokens as `kraft-wire tokens` shows them: a broker may send any number."""

import pytest

from kraft_wire.cli.tokens.command import _time


@pytest.mark.parametrize(
    ("at_ms", "shown"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_796_040_000_999, "2026-11-30T12:00:00Z"),
        ((1 << 63) - 1, "9999-12-31T23:59:59Z"),
        (-(1 << 63), "1970-01-01T00:00:00Z"),
    ],
)
def test_any_number_is_a_time(at_ms: int, shown: str) -> None:
    assert _time(at_ms) == shown
