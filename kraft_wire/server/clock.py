"""The process's clocks: the only place of the program that reads one."""

from time import monotonic_ns, perf_counter, time_ns

__all__ = ["now_ms", "seconds", "wall_ms"]

seconds = perf_counter  # with a fraction: only ever measures how long something took


def now_ms() -> int:
    """Return monotonic milliseconds: for deadlines."""
    return monotonic_ns() // 1_000_000


def wall_ms() -> int:
    """Return milliseconds since 1970: only ever stamps records and answers."""
    return time_ns() // 1_000_000
