"""Log directories of a broker that failed since its start, and their report (KIP-858).

Every heartbeat names them all. A broker that cannot report one within `log.dir.failure.timeout.ms`
must stop: the controller would let it lead partitions that it cannot serve.

Not here: when a directory fails (`log_store`), its effect on the metadata (`controller`).
"""

from collections.abc import Sequence

from kraft_wire.model import Uuid, sooner

__all__ = ["OfflineDirectories"]


class OfflineDirectories:
    """The ids of failed directories, in the order in which they failed."""

    def __init__(self, patience_ms: int) -> None:
        """`patience_ms`: time limit of the report of a directory."""
        assert patience_ms > 0, patience_ms
        self._patience_ms = patience_ms
        self._until_ms: dict[Uuid, int | None] = {}
        """Deadline of a directory's report; None: it was reported."""
        self._reported: list[Uuid] = []

    def failed(self, directory_id: Uuid, now_ms: int) -> None:
        """Add a failed directory to report."""
        assert directory_id not in self._until_ms, directory_id
        self._until_ms[directory_id] = now_ms + self._patience_ms

    def take_report(self) -> list[Uuid]:
        """Return the directories for the next heartbeat."""
        self._reported = list(self._until_ms)
        return self._reported

    def on_reported(self) -> None:
        """Note that the controller accepted the heartbeat: its directories are reported."""
        for directory_id in self._reported:
            assert directory_id in self._until_ms, directory_id
            self._until_ms[directory_id] = None

    def overdue(self, now_ms: int) -> Sequence[Uuid]:
        """Return the directories whose report is overdue."""
        return [each for each, at in self._until_ms.items() if at is not None and at <= now_ms]

    def deadline_ms(self) -> int | None:
        """Return when `overdue` has the next directory."""
        soonest_ms = None
        for until_ms in self._until_ms.values():
            soonest_ms = sooner(soonest_ms, until_ms)
        return soonest_ms
