"""The process's clocks: the only module of the program that reads one."""

from time import monotonic_ns, time_ns
from time import perf_counter as seconds

__all__ = ["now_ms", "seconds", "wall_ms"]


def now_ms() -> int:
    """Return monotonic milliseconds: for deadlines."""
    return monotonic_ns() // 1_000_000


def wall_ms() -> int:
    """Return milliseconds since 1970: only for timestamps of records and answers."""
    return time_ns() // 1_000_000
