"""The clock of a cluster for tests: the system's, moved ahead by the time that a test advanced."""

from kraft_wire.server.clock import now_ms, wall_ms

__all__ = ["Clock"]


class Clock:
    """The two clocks of all nodes of one cluster."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        """Return monotonic milliseconds: for deadlines."""
        return now_ms() + self.ahead_ms

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
        return wall_ms() + self.ahead_ms
