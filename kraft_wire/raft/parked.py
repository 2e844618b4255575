"""Fetches that wait at the leader for records or a higher watermark (KIP-595 "Fetch").

A woken fetch is handled again from the start, so it is kept unchanged. Nothing here answers: the
caller that takes fetches must reply to each.
"""

from kraft_wire.frozen import frozen
from kraft_wire.model import Offset, sooner
from kraft_wire.raft.events import RequestReceived

__all__ = ["ParkedFetch", "ParkedFetches"]


@frozen
class ParkedFetch:
    """One waiting fetch."""

    origin: RequestReceived
    fetch_offset: Offset
    deadline_ms: int


class ParkedFetches:
    """In order of arrival."""

    def __init__(self) -> None:
        self._waiting: list[ParkedFetch] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, fetch: ParkedFetch) -> None:
        """Park a fetch until it is taken."""
        assert fetch.fetch_offset >= 0, fetch
        self._waiting.append(fetch)
        assert fetch.deadline_ms > 0, fetch

    def take_all(self) -> list[ParkedFetch]:
        """Take every fetch: the high watermark moved, or the leadership is over."""
        taken, self._waiting = self._waiting, []
        assert not self._waiting
        return taken

    def take_behind(self, log_end_offset: Offset) -> list[ParkedFetch]:
        """Take the fetches for which the log now has records."""
        taken = [fetch for fetch in self._waiting if fetch.fetch_offset < log_end_offset]
        self._waiting = [f for f in self._waiting if f.fetch_offset >= log_end_offset]
        assert all(fetch.fetch_offset < log_end_offset for fetch in taken)
        return taken

    def take_due(self, now_ms: int) -> list[ParkedFetch]:
        """Take the fetches that have waited long enough."""
        if not self._waiting:
            return []
        taken = [fetch for fetch in self._waiting if fetch.deadline_ms <= now_ms]
        self._waiting = [fetch for fetch in self._waiting if fetch.deadline_ms > now_ms]
        assert all(fetch.deadline_ms <= now_ms for fetch in taken)
        return taken

    def deadline_ms(self) -> int | None:
        """Return when the next one has waited long enough."""
        soonest_ms: int | None = None
        for fetch in self._waiting:
            soonest_ms = sooner(soonest_ms, fetch.deadline_ms)
        return soonest_ms
