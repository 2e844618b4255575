"""Two clusters that take turns: rounds of figures, what a failed round leaves, idle partitions."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.cluster_load import AckedProducer
from benchmarks.cluster_sides import ClusterSide
from benchmarks.parts import FAILURES, Parts, Row, Samples, row

__all__ = ["SETTLING_S", "ClusterTurns", "Figures", "fill_idle_topic"]

IDLE_TOPIC = "idle"
SETTLING_S = 5.0
"""From the last change until nothing of it is left to be told."""

Figures = dict[str, float]


@dataclass
class ClusterTurns:
    """Both clusters, which take turns."""

    both: dict[str, ClusterSide]
    parts: Parts
    topics: int = 0
    filled: list[str] = field(default_factory=list)
    """Sides that have their idle partitions."""

    def make_whole(self) -> None:
        """Whatever was done to them, all processes run, and all brokers are in every ISR."""
        for side in self.both.values():
            side.make_whole()

    def measure(self, rounds: int, measure: Callable[[ClusterSide], Figures]) -> dict[str, Samples]:
        """Ask each side for its figures, so many times.

        What came before a failure counts, and the next one finds whole clusters.
        """
        found: dict[str, Samples] = {}
        try:
            for _ in range(rounds):
                for name, side in self.both.items():
                    for figure, value in measure(side).items():
                        samples = found.setdefault(figure, {each: [] for each in self.both})
                        samples[name].append(value)
                    self.parts.step()
        except FAILURES:
            if not found or not all(all(samples.values()) for samples in found.values()):
                raise
            self.parts.fail("a round, which does not count")
            self.make_whole()
        return found

    def new_topic(self) -> str:
        """A name that was not used before."""
        self.topics += 1
        return f"bench-{self.topics}"

    def memory_row(self, when: str) -> Row:
        """Resident memory of the broker that has most."""
        samples = {name: [side.resident_bytes() / 2**20] for name, side in self.both.items()}
        return row(f"memory of a broker, {when}", "MiB", samples)


def fill_idle_topic(turns: ClusterTurns, partitions: int) -> list[Row]:
    """Many partitions with a record in each, once for all that needs them."""
    if len(turns.filled) == len(turns.both):
        return []
    for name, side in turns.both.items():
        if name not in turns.filled:
            if not side.has(IDLE_TOPIC):  # which a part that failed may have left behind
                side.create(IDLE_TOPIC, partitions)
            producer = AckedProducer(side.bootstrap, linger_ms=0)
            producer.first_in_each(IDLE_TOPIC, range(partitions))
            turns.filled.append(name)
    time.sleep(SETTLING_S)
    return [turns.memory_row(f"{partitions:,} partitions")]
