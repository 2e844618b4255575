"""Counts and logs appends that full disks refuse: a line at the first refusal, then one a minute.

Not here: when a disk counts as full (`storage.space`).
"""

from typing import Final

from kraft_wire.model import ReportEvent, StorageError, TopicPartition
from kraft_wire.storage.directory.log_directory import LogDirectory

__all__ = ["RefusedAppends"]

_LINE_EVERY_MS: Final = 60_000


class RefusedAppends:
    """The refusals of one node, by log directory."""

    def __init__(self, report: ReportEvent) -> None:
        self.count = 0
        """Refusals since the start, for metrics."""
        self._report = report
        self._counts: dict[str, int] = {}
        """Refusals since the line of the first one, by path."""
        self._since_ms: int | None = None

    def note(self, directory: LogDirectory, partition: TopicPartition) -> None:
        """Count a refusal; log the first one of a directory in a minute."""
        self.count += 1
        counted = self._counts.get(directory.path)
        self._counts[directory.path] = 0 if counted is None else counted + 1
        if counted is None:
            self._report(
                "append_refused",
                directory=directory.path,
                partition=partition,
                reason="disk_full",
                **room(directory),
            )

    def tick(self, now_ms: int) -> None:
        """Log the number of refusals after the first one, once a minute."""
        if not self._counts:
            self._since_ms = None
            return
        if self._since_ms is None:
            self._since_ms = now_ms
        if now_ms - self._since_ms < _LINE_EVERY_MS:
            return
        counts, self._counts = self._counts, {}
        seconds = (now_ms - self._since_ms) // 1_000
        self._since_ms = None
        for path, count in counts.items():
            if count:
                self._report("appends_refused", directory=path, count=count, seconds=seconds)


def room(directory: LogDirectory) -> dict[str, object]:
    """Return a line's fields about a disk: free bytes, and those that appends need."""
    try:
        free_bytes: object = directory.space.free_bytes()
    except StorageError:
        free_bytes = "-"
    return {"free_bytes": free_bytes, "needed_bytes": directory.space.needed_bytes}
