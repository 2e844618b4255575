"""Limits log lines: at most so many a second of one reason and address; the rest are counted.

A flood of one reason hides neither another reason nor another address: each has its own limit.
"""

from collections.abc import Callable

__all__ = ["LogLineLimiter"]

_LINES_PER_SECOND = 10
_ADDRESSES_MAX = 1_024


class LogLineLimiter:
    """Counts the lines of the second."""

    def __init__(self, report_suppressed: Callable[[str, str, int], None]) -> None:
        """`report_suppressed` takes address, reason and how many lines a second that is over
        lacked.
        """
        self._report_suppressed = report_suppressed
        self._second = -1
        self._in_second: dict[str, dict[str, int]] = {}
        """Lines of the second by address and reason; the reasons are our own words, so few."""

    def may_write(self, host: str, reason: str, now_ms: int) -> bool:
        """Count a line, and return whether to write it."""
        self.tick(now_ms)
        if host not in self._in_second and len(self._in_second) >= _ADDRESSES_MAX:
            host = "*"
        counts = self._in_second.setdefault(host, {})
        counts[reason] = counts.get(reason, 0) + 1
        return counts[reason] <= _LINES_PER_SECOND

    def tick(self, now_ms: int) -> None:
        """Report the number of dropped lines, once the second is over."""
        second = now_ms // 1000
        if second != self._second:
            self._end_second()
            self._second = second
            self._in_second = {}

    def _end_second(self) -> None:
        for host, counts in self._in_second.items():
            for reason, count in counts.items():
                if count > _LINES_PER_SECOND:
                    self._report_suppressed(host, reason, count - _LINES_PER_SECOND)
