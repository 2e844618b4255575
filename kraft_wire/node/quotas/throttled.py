"""Throttled channels: connections that are not read until their throttle time is over (KIP-219)."""

from collections.abc import Iterator

from kraft_wire.broker.deadlines import Deadlines

__all__ = ["ThrottledChannels"]


class ThrottledChannels:
    """The throttled connections of a node, the first to end first."""

    def __init__(self) -> None:
        self._ends_ms: dict[int, int] = {}
        """By connection; a connection is throttled once at a time, because it is not read."""
        self._deadlines: Deadlines[int] = Deadlines(self._ends_ms.__contains__)

    def __len__(self) -> int:
        return len(self._ends_ms)

    def add(self, connection_id: int, throttle_ms: int, now_ms: int) -> None:
        """Throttle a connection from now on."""
        assert throttle_ms > 0, throttle_ms
        assert connection_id not in self._ends_ms, connection_id
        self._ends_ms[connection_id] = now_ms + throttle_ms
        self._deadlines.add(now_ms + throttle_ms, connection_id, len(self._ends_ms))

    def ended(self, now_ms: int) -> Iterator[int]:
        """Remove and yield the connections whose time is over."""
        for connection_id in self._deadlines.due(now_ms):
            del self._ends_ms[connection_id]
            yield connection_id

    def forget(self, connection_id: int) -> None:
        """Drop a closed connection."""
        self._ends_ms.pop(connection_id, None)

    def deadline_ms(self) -> int | None:
        """Return when `ended` has something next."""
        return self._deadlines.next_ms()
