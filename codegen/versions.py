"""Version ranges of Kafka's schema files: "none", "3", "0-4", "12+".

Ranges are inclusive on both ends; an open range ends at `OPEN`. Nothing here knows messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["NONE", "OPEN", "VersionRange", "parse_versions"]

OPEN = 32767
"""The highest version an int16 can name; stands for the open end of "3+"."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions low to high, both included; empty when high is below low."""

    low: int
    high: int

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.high == OPEN:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def intersect(self, other: "VersionRange") -> "VersionRange":
        """Return the versions in both, `NONE` where there is none."""
        both = VersionRange(max(self.low, other.low), min(self.high, other.high))
        return both if both else NONE

    def covers(self, other: "VersionRange") -> bool:
        """Whether every version of `other` is in this range."""
        return not other or (self.low <= other.low and other.high <= self.high)

    def __iter__(self) -> Iterator[int]:
        assert self.high < OPEN, "an open range has no last version"
        return iter(range(self.low, self.high + 1))


NONE = VersionRange(0, -1)


def parse_versions(text: str) -> VersionRange:
    """Read one range; ValueError says what is impossible about it."""
    if text == "none":
        return NONE
    low_text, dash, high_text = text.removesuffix("+").partition("-")
    if not low_text.isdecimal() or (dash and not high_text.isdecimal()):
        raise ValueError(f"{text!r} is not a version range")
    if text.endswith("+"):
        if dash:
            raise ValueError(f"{text!r} has both an end and a plus")
        high_text, dash = str(OPEN), "-"
    low = int(low_text)
    high = int(high_text) if dash else low
    if high < low or high > OPEN:
        raise ValueError(f"{text!r} is an impossible version range")
    return VersionRange(low, high)
