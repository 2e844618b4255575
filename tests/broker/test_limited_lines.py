"""Log lines that a flood of one reason, or a change of many partitions, is cut to."""

from __future__ import annotations

from typing import Any

from kraft_wire.broker.capped_report import CappedReport
from kraft_wire.broker.log_line_limiter import LogLineLimiter

PER_SECOND = 10
ADDRESSES = 1_024
PER_CHANGE = 20


class Limited:
    """A limiter, and what it reported."""

    def __init__(self) -> None:
        self.suppressed: list[tuple[str, str, int]] = []
        self.limiter = LogLineLimiter(lambda *line: self.suppressed.append(line))

    def written(self, count: int, host: str, reason: str, now_ms: int) -> int:
        """How many of some lines are written."""
        return sum(self.limiter.may_write(host, reason, now_ms) for _ in range(count))


def test_ten_lines_a_second_of_each_reason_and_address_are_written() -> None:
    limited = Limited()
    assert limited.written(PER_SECOND, "a", "x", 5_000) == PER_SECOND
    assert limited.written(3, "a", "x", 5_999) == 0
    assert limited.written(PER_SECOND + 1, "a", "y", 5_999) == PER_SECOND
    assert limited.written(PER_SECOND, "b", "x", 5_999) == PER_SECOND
    assert limited.suppressed == []
    assert limited.written(1, "a", "x", 6_000) == 1
    assert limited.suppressed == [("a", "x", 3), ("a", "y", 1)]
    limited.limiter.tick(6_999)
    limited.limiter.tick(7_000)
    assert limited.suppressed == [("a", "x", 3), ("a", "y", 1)]


def test_addresses_beyond_the_last_count_as_one() -> None:
    limited = Limited()
    for number in range(ADDRESSES):
        assert limited.written(1, f"{number}", "x", 1) == 1
    assert sum(limited.written(1, f"more{number}", "x", 1) for number in range(15)) == PER_SECOND
    assert limited.written(PER_SECOND, "0", "x", 1) == PER_SECOND - 1, "a known one keeps its own"
    limited.limiter.tick(1_000)
    assert limited.suppressed == [("0", "x", 1), ("*", "x", 5)]


def test_twenty_lines_of_an_event_are_written_in_a_change() -> None:
    lines: list[tuple[str, dict[str, Any]]] = []
    report = CappedReport(lambda name, **fields: lines.append((name, fields)))
    for _ in range(2):
        for number in range(PER_CHANGE + 2):
            report("left", partition=number)
        for number in range(PER_CHANGE):
            report("joined", partition=number)
        report.end()
        written = [("left", {"partition": number}) for number in range(PER_CHANGE)]
        written += [("joined", {"partition": number}) for number in range(PER_CHANGE)]
        assert lines == [*written, ("lines_omitted", {"lines": "left", "count": 2})]
        lines.clear()
    report.end()
    assert lines == []
