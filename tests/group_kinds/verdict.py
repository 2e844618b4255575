"""Judge what members of many groups of a topic print; see the Java classes for the lines.

GROUP-FACTS "Invariants" G12 and S08, as clients see them. Nothing here knows a broker.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Place", "Verdict"]

Place = tuple[str, int]
"""A group and a partition."""
OFFSET_LINES = frozenset("plrc")
SHARE_LINES = frozenset("danuv")


@dataclass
class Reading:
    """What members of one group read of one partition."""

    times: bytearray = field(default_factory=bytearray)
    """How often each offset was delivered."""
    confirmed: int = 0
    """The highest offset whose commit was confirmed, or from which a member began to read."""

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
class Shared:
    """What members of a share group were given; `share_states` judges what brokers did."""

    accepted: set[int] = field(default_factory=set)
    """Records whose acceptance was confirmed."""
    unconfirmed: set[int] = field(default_factory=set)
    """Records whose last acceptance may count: its answer was an error, or did not come."""
    counts: dict[int, int] = field(default_factory=dict)
    """The highest delivery count of each record."""
    late: int = 0
    """Deliveries of records whose acceptance was confirmed before they were printed."""

    def take(self, kind: str, number: int, count: int) -> None:
        """Note one line."""
        if kind == "d":
            self.late += number in self.accepted
            self.unconfirmed.discard(number)
            self.counts[number] = max(count, self.counts.get(number, 0))
        elif kind == "a":
            self.accepted.add(number)
        elif kind == "u":
            self.unconfirmed.add(number)

    @property
    def done(self) -> set[int]:
        """Records that need not come again."""
        return self.accepted | self.unconfirmed


class Verdict:
    """The state of all groups as their members told it."""

    def __init__(self) -> None:
        self.readings: defaultdict[Place, Reading] = defaultdict(Reading)
        self.shared: defaultdict[str, Shared] = defaultdict(Shared)
        self.left: set[str] = set()
        """Names of members that have left as they were asked to."""
        self.refused_commits: Counter[str] = Counter()
        self.late_beginnings = 0
        """Positions of a member without processor time, whose session may have ended before."""
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
                self.shared[words[0]].take(kind, int(words[1]), int(words[2]))

    @property
    def wrong(self) -> list[str]:
        """All that is wrong so far."""
        return list(self._wrong)

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

    @property
    def late(self) -> int:
        """Deliveries of shared records that were printed after their acceptance."""
        return sum(each.late for each in self.shared.values())

    def counts(self) -> dict[int, int]:
        """Return how many shared records have which highest delivery count."""
        found = Counter(count for each in self.shared.values() for count in each.counts.values())
        return dict(sorted(found.items()))

    def _offset_line(self, kind: str, place: Place, first: int, end: int = 0) -> None:
        reading = self.readings[place]
        if kind == "r":
            reading.deliver(first, end)
        elif kind == "c":
            reading.confirmed = max(reading.confirmed, first)
        elif kind == "l":
            self.late_beginnings += 1
        elif reading.confirmed <= first <= len(reading.times):
            # A commit may count although its answer was lost, and its next attempt refused.
            reading.confirmed = first
        else:
            self._wrong.append(
                f"{place}: begins at {first}; {reading.confirmed} was committed, "
                f"{len(reading.times)} read"
            )
