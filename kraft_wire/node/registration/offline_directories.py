"""Log directories of a broker that failed in this life, and whether its controller knows (KIP-858).

Every heartbeat names them all. A broker that cannot tell of one within `log.dir.failure.timeout.ms`
must not continue: its controller would let it lead what it cannot serve.

Not here: what fails a directory (`log_store`), what the controller makes of it (`controller`).
"""

from collections.abc import Sequence

from kraft_wire.model import Uuid, sooner

__all__ = ["OfflineDirectories"]


class OfflineDirectories:
    """The ids of failed directories, in the order in which they failed."""

    def __init__(self, patience_ms: int) -> None:
        """`patience_ms`: how long the controller may not know of one."""
        assert patience_ms > 0, patience_ms
        self._patience_ms = patience_ms
        self._until_ms: dict[Uuid, int | None] = {}
        """When the controller must know of a directory at the latest; None: it does."""
        self._reported: list[Uuid] = []

    def failed(self, directory_id: Uuid, now_ms: int) -> None:
        """Have the controller told of a directory."""
        assert directory_id not in self._until_ms, directory_id
        self._until_ms[directory_id] = now_ms + self._patience_ms

    def take_report(self) -> list[Uuid]:
        """Return what the next heartbeat says."""
        self._reported = list(self._until_ms)
        return self._reported

    def on_reported(self) -> None:
        """The controller took the heartbeat: it knows what that said, and nothing newer."""
        for directory_id in self._reported:
            assert directory_id in self._until_ms, directory_id
            self._until_ms[directory_id] = None

    def overdue(self, now_ms: int) -> Sequence[Uuid]:
        """Return the directories that the controller should know of by now."""
        return [each for each, at in self._until_ms.items() if at is not None and at <= now_ms]

    def deadline_ms(self) -> int | None:
        """Return when `overdue` has the next one."""
        soonest_ms = None
        for until_ms in self._until_ms.values():
            soonest_ms = sooner(soonest_ms, until_ms)
        return soonest_ms
