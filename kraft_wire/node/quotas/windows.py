"""A rate over sliding windows, and the throttle time that brings it back to its bound (KIP-13).

The arithmetic is that of Apache Kafka's `Rate`, `WindowedSum` and `QuotaUtils`, to the millisecond:
`quota.window.num` + 1 samples in a ring, each of which takes values for one window. A sample
without a value for `num` windows is emptied before a measurement. A young rate is measured as if
`num` - 1 windows had passed, so that a first burst is not over the bound at once.
"""

from math import floor
from typing import Final, NamedTuple

from kraft_wire.settings.node_settings import NodeSettings

__all__ = ["THROTTLE_MS_MAX", "Rate", "Windows", "rounded", "throttle_ms"]

_LONG_MAX: Final = (1 << 63) - 1
THROTTLE_MS_MAX: Final = 2_147_483_647
"""The longest `throttle_time_ms`, 24 days."""
_VALUE: Final = 0
_START_MS: Final = 1
_LAST_MS: Final = 2


class Windows(NamedTuple):
    """How many windows a rate is measured over, and their size."""

    number: int
    size_ms: int

    @classmethod
    def of(cls, settings: NodeSettings, prefix: str = "") -> "Windows":
        """Read `quota.window.num` and `quota.window.size.seconds`, with a prefix."""
        size_s = settings.integer(f"{prefix}quota.window.size.seconds")
        return cls(settings.integer(f"{prefix}quota.window.num"), size_s * 1_000)

    @property
    def burst_seconds(self) -> float:
        """Seconds of the bound that a rate without earlier values may use at once."""
        return (self.number - 1) * self.size_ms / 1_000


class Rate:
    """The values per second of one meter."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        assert windows.number > 0 < windows.size_ms, windows
        self._windows = windows
        self._samples: list[list[float]] = []
        """Each with its sum, and the times of its start and of its last value."""
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value; one below 0 takes an earlier one back."""
        sample = self._current_sample(now_ms)
        if now_ms - sample[_START_MS] >= self._windows.size_ms:
            sample = self._next_sample(now_ms)
        sample[_VALUE] += value
        sample[_LAST_MS] = now_ms

    def measure(self, now_ms: int) -> float:
        """Return the values per second."""
        return self.total(now_ms) / (self.elapsed_ms(now_ms) / 1_000)

    def total(self, now_ms: int) -> float:
        """Return the sum of the values that are not too old."""
        self._empty_obsolete(now_ms)
        total = 0.0
        for sample in self._samples:
            total += sample[_VALUE]
        return total

    def elapsed_ms(self, now_ms: int) -> int:
        """Return the time that the rate is measured over."""
        number, size_ms = self._windows
        elapsed_ms = now_ms - self.oldest_ms(now_ms)
        missing = number - 1 - elapsed_ms // size_ms
        if missing > 0:
            elapsed_ms += missing * size_ms
        return max(elapsed_ms, 1)

    def oldest_ms(self, now_ms: int) -> int:
        """Return the start of the oldest sample in use."""
        self._empty_obsolete(now_ms)
        self._current_sample(now_ms)
        return int(min(sample[_START_MS] for sample in self._samples))

    def _current_sample(self, now_ms: int) -> list[float]:
        if not self._samples:
            self._samples.append([0.0, now_ms, now_ms])
        return self._samples[self._current]

    def _next_sample(self, now_ms: int) -> list[float]:
        self._current = (self._current + 1) % (self._windows.number + 1)
        empty: list[float] = [0.0, now_ms, now_ms]
        if self._current == len(self._samples):
            self._samples.append(empty)
        else:
            self._samples[self._current] = empty
        return empty

    def _empty_obsolete(self, now_ms: int) -> None:
        number, size_ms = self._windows
        for sample in self._samples:
            if now_ms - sample[_LAST_MS] >= number * size_ms:
                sample[:] = 0.0, now_ms, now_ms


def throttle_ms(rate: float, bound: float, elapsed_ms: int) -> int:
    """Return how long a client must be silent until its rate is back at the bound.

    Rounded as Java rounds. Kafka cuts a longer time than an int to its lower 32 bits; here it is
    the longest possible.
    """
    assert bound > 0, bound
    if rate <= bound:
        return 0
    return min(rounded((rate - bound) / bound * elapsed_ms), THROTTLE_MS_MAX)


def rounded(value: float) -> int:
    """Return the nearest integer, of two the higher one, at most a long: Java's `Math.round`."""
    if value >= _LONG_MAX:
        return _LONG_MAX
    below = floor(value)
    return below + 1 if value - below >= 0.5 else below
