"""Log lines about many partitions at once: so many of each event in one change, the rest counted.

A broker that fails may change thousands of partitions. `end` ends each change.
"""

from typing import Final

from kraft_wire.model import ReportEvent

__all__ = ["CappedReport"]

_LINES_MAX: Final = 20


class CappedReport:
    """Writes lines of one change at a time."""

    def __init__(self, report: ReportEvent) -> None:
        self._report = report
        self._counts: dict[str, int] = {}
        """Lines of the change by event."""

    def __call__(self, name: str, **fields: object) -> None:
        """Write a line, unless 20 of that event are written."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if count <= _LINES_MAX:
            self._report(name, **fields)

    def end(self) -> None:
        """End a change: write how many lines of each event were left out."""
        for name, count in self._counts.items():
            if count > _LINES_MAX:
                self._report("lines_omitted", lines=name, count=count - _LINES_MAX)
        self._counts.clear()
