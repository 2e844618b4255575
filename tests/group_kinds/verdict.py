"""Judge what members of many groups of a topic print; see the Java classes for the lines.

GROUP-FACTS "Invariants" G12, S02, S03 and S06, as clients see them. Nothing here knows a broker.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.share_groups.campaign import Deliveries

__all__ = ["Place", "Verdict"]

Place = tuple[str, int]
"""A group and a partition."""
OFFSET_LINES = frozenset("prc")
SHARE_LINES = frozenset("danuv")


@dataclass
class Reading:
    """What members of one group read of one partition."""

    times: bytearray = field(default_factory=bytearray)
    """How often each offset was delivered."""
    confirmed: int = 0
    """The highest offset whose commit was confirmed."""

    def deliver(self, first: int, end: int) -> None:
        """Count a delivery of each offset."""
        self.times.extend(bytes(max(0, end - len(self.times))))
        for offset in range(first, end):
            self.times[offset] += 1

    @property
    def skipped(self) -> int:
        """Offsets below the highest delivered one that nobody was given."""
        return self.times.count(0)

    @property
    def twice(self) -> int:
        """Deliveries beyond the first."""
        return sum(self.times) - len(self.times) + self.skipped


@dataclass
class Shared(Deliveries):
    """What members of a share group were given; delivery counts of released records rise."""

    released: dict[int, int] = field(default_factory=dict)
    """The delivery count with which a release was confirmed."""

    def release(self, number: int, count: int) -> None:
        """Note a confirmed release of a delivery; another one may have followed already."""
        if self.counts[number] == count:
            self.released[number] = count

    def _delivered(self, number: int, count: int) -> None:
        if count <= self.released.pop(number, 0):
            self.wrong.append(f"record {number} was released, and its count stays at {count}")
        super()._delivered(number, count)


class Verdict:
    """The state of all groups as their members told it."""

    def __init__(self) -> None:
        self.readings: defaultdict[Place, Reading] = defaultdict(Reading)
        self.shared: defaultdict[str, Shared] = defaultdict(Shared)
        self.left: set[str] = set()
        """Names of members that have left as they were asked to."""
        self.refused_commits: Counter[str] = Counter()
        self._wrong: list[str] = []

    def take(self, lines: Iterable[str]) -> None:
        """Judge lines as they come."""
        for line in lines:
            kind, *words = line.split()
            if kind == "x":
                self.left.add(words[0])
            elif kind == "e":
                self._wrong.append(f"a member ended by itself: {' '.join(words)}")
            elif kind in OFFSET_LINES:
                self._offset_line(kind, (words[0], int(words[1])), *map(int, words[2:]))
            elif kind == "u" and not words[1].isdecimal():
                self.refused_commits[words[1]] += 1
            else:
                assert kind in SHARE_LINES, line
                self._share_line(kind, *words)

    @property
    def wrong(self) -> list[str]:
        """All that is wrong so far."""
        shares = (f"{name}: {each}" for name, s in self.shared.items() for each in s.wrong)
        return [*self._wrong, *shares]

    def confirmed(self) -> dict[Place, int]:
        """Return the highest confirmed commit of each place."""
        return {place: each.confirmed for place, each in list(self.readings.items())}

    def compare(self, before: Mapping[Place, int], found: Mapping[Place, int]) -> None:
        """Judge committed offsets that were asked for when `before` was confirmed."""
        for place, offset in before.items():
            if offset and found.get(place, -1) < offset:
                self._wrong.append(f"{place}: {offset} was committed, now {found.get(place)}")

    def unread(self, groups: Iterable[str], ends: Mapping[int, int]) -> list[str]:
        """Return what of the partitions these groups have not read, or not committed."""
        missing = []
        for group in groups:
            for partition, end in ends.items():
                reading = self.readings[group, partition]
                if reading.skipped or reading.confirmed != end or len(reading.times) != end:
                    missing.append(
                        f"{group}-{partition}: committed {reading.confirmed} of {end}, "
                        f"read {len(reading.times)}, skipped {reading.skipped}"
                    )
        return missing

    def twice(self, groups: Iterable[str]) -> int:
        """Return the deliveries beyond the first in these groups."""
        wanted = set(groups)
        return sum(each.twice for (group, _), each in self.readings.items() if group in wanted)

    def counts(self) -> dict[int, int]:
        """Return how many shared records were last delivered with which count."""
        found = Counter(count for each in self.shared.values() for count in each.counts.values())
        return dict(sorted(found.items()))

    def _offset_line(self, kind: str, place: Place, first: int, end: int = 0) -> None:
        reading = self.readings[place]
        if kind == "r":
            reading.deliver(first, end)
        elif kind == "c":
            reading.confirmed = max(reading.confirmed, first)
        elif not reading.confirmed <= first <= len(reading.times):
            self._wrong.append(
                f"{place}: begins at {first}; {reading.confirmed} was committed, "
                f"{len(reading.times)} read"
            )

    def _share_line(self, kind: str, group: str, number: str, count: str) -> None:
        if kind == "n":
            self.shared[group].release(int(number), int(count))
        elif kind != "v":
            self.shared[group].take(
                [f"{kind} {number} {count}" if kind == "d" else f"{kind} {number}"]
            )
