"""The cycles: somebody is hurt and made good while producers write and a consumer reads along.

Mostly a cycle waits until every partition has its whole ISR again, at each broker; now and then it
does not, so that the next fault finds replicas that are catching up. Whatever goes wrong is written
down, with what the brokers said, and ends the cycles; what was done until then is judged.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.network import Network
from tests.replicas.apache_producer import ApacheLoad
from tests.replicas.cluster import PARTITIONS, TOPIC, ReplicaCluster
from tests.replicas.faults import Faults
from tests.replicas.layouts import Layout
from tests.replicas.librdkafka_producer import LibrdkafkaLoad
from tests.replicas.load import KINDS, Load, Order, Pace
from tests.replicas.reading import Reader, Stored, high_watermarks, read_back
from tests.replicas.replica_logs import Tail, cut_by_make, tails

FIRST_CYCLE_S = 8.0
HURRY = 0.2
"""Share of cycles that do not wait until all is whole."""
FINISH_S = 180.0
LOG_CHARACTERS = 4_000

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What a run leaves for its judge."""

    cycles_wanted: int = 0
    records_wanted: int = 0
    cycles: int = 0
    seconds: float = 0.0
    is_stopped: bool = False
    """Whether somebody ended it before its time."""
    faults: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    led: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)
    """Batches by make that a killed broker had, and that were not there once it had caught up."""
    waits_s: list[float] = field(default_factory=list)
    """From a fault's end until everything was whole."""
    high_watermarks: dict[int, int] = field(default_factory=dict)
    stored: dict[int, Stored] = field(default_factory=dict)
    leader_epochs: int = 0
    """Of all partitions together, at the end."""
    violations: list[str] = field(default_factory=list)


class Campaign:
    """One run over one layout."""

    def __init__(
        self, home: Path, layout: Layout, network: Network | None, seed: int, say: Say
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.layout = layout
        self.cluster = ReplicaCluster(home, layout, network)
        self.outcome = Outcome()
        kinds = [each for each in layout.faults if each != "cut" or network is not None]
        self._faults = Faults(self.cluster, kinds, layout.hurts_controllers, seed)
        self._draw = random.Random(f"{seed} hurry")
        self._tails: list[tuple[str, list[Tail]]] = []
        self._pace = Pace()
        self._story = home / "story.log"
        self._say = say
        self.loads: list[Load] = []
        self.reader = Reader(self.cluster.bootstrap, TOPIC, PARTITIONS)

    def run(self, cycles: int, records: int, seconds_max: float) -> Outcome:
        """Hurt and heal `cycles` times, or as often as there is time for, under all the records."""
        outcome, cluster = self.outcome, self.cluster
        each = records // len(KINDS)
        outcome.cycles_wanted, outcome.records_wanted = cycles, each * len(KINDS)
        try:
            cluster.begin()
            self.loads = [self._load(number, each) for number in range(len(KINDS))]
            for thread in (*self.loads, self.reader):
                thread.start()
            began = time.monotonic()
            try:
                while outcome.cycles < cycles and outcome.seconds < seconds_max:
                    self._set_pace(cycles, seconds_max)
                    self._cycle()
                    outcome.seconds = time.monotonic() - began
            except Exception as problem:  # noqa: BLE001  # whatever it is, what was done is judged
                self._violated(f"{type(problem).__name__}: {problem}")
            except KeyboardInterrupt:
                outcome.is_stopped = True
                self._tell("stopped; what was done is judged")
            self._finish()
        finally:
            cluster.end()
        return outcome

    def _load(self, number: int, records: int) -> Load:
        log = self.cluster.home / f"producer-{number}.log"
        servers = self.cluster.bootstrap
        order = Order(number, servers, TOPIC, PARTITIONS, records, self._pace, log)
        return ApacheLoad(order) if order.kind.is_apaches else LibrdkafkaLoad(order)

    # -- a cycle ---------------------------------------------------------------------------------

    def _set_pace(self, cycles: int, seconds_max: float) -> None:
        """Spread what is left to write over what is left to do, or the time that is left."""
        outcome = self.outcome
        left = max(each.left for each in self.loads)
        a_cycle_s = outcome.seconds / outcome.cycles if outcome.cycles else FIRST_CYCLE_S
        left_s = min((cycles - outcome.cycles) * a_cycle_s, seconds_max - outcome.seconds)
        self._pace.set(left / max(left_s, 1.0))

    def _cycle(self) -> None:
        self._see_alive()
        victims, held_s, story = self._faults.hurt()
        self._copy_counts()
        self._tails += [
            ("ours" if each.is_ours else "Apache", tails(each.data, TOPIC))
            for each in victims
            if not each.is_running and each.node_id in self.cluster.brokers
        ]
        time.sleep(held_s)
        self._faults.heal()
        waited = "in a hurry"
        if self._draw.random() >= HURRY:
            waited = f"whole after {self._until_whole():.1f} s"
        written = sum(each.acknowledged for each in self.loads)
        self.outcome.cycles += 1
        self._tell(
            f"{self.outcome.cycles:4} {story}; for {held_s:.1f} s, {waited}; "
            f"{written:,} acknowledged"
        )

    def _until_whole(self) -> float:
        waited_s = self.cluster.until_whole()
        self.outcome.waits_s.append(waited_s)
        self.outcome.cut.update(cut_by_make(self._tails))
        self._tails.clear()
        return waited_s

    def _see_alive(self) -> None:
        dead = [each.node_id for each in self.cluster.died]
        assert not dead, f"{dead} ended by themselves"

    def _copy_counts(self) -> None:
        self.outcome.faults = self._faults.done
        self.outcome.kills = self._faults.kills
        self.outcome.led = self._faults.led

    # -- the end ---------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Heal, let everybody finish, and read all back; what goes wrong does not end the rest."""
        for step in (self._heal, self._send_the_rest, self._read_back, self._see_alive):
            try:
                step()
            except Exception as problem:  # noqa: BLE001  # the other steps are to be judged
                self._violated(f"{type(problem).__name__}: {problem}")

    def _heal(self) -> None:
        for node in self.cluster.died:
            node.kill()  # which has been written down; it takes part in the end
        self._faults.heal()

    def _send_the_rest(self) -> None:
        if not self.outcome.is_stopped and not self.outcome.violations:
            self._pace.set(1e9)
            until = time.monotonic() + FINISH_S
            while any(each.left for each in self.loads) and time.monotonic() < until:
                time.sleep(0.1)
        for load in self.loads:
            load.finish(FINISH_S)

    def _read_back(self) -> None:
        cluster, outcome = self.cluster, self.outcome
        self._until_whole()
        views = [cluster.view(each) for each in cluster.brokers]
        outcome.leader_epochs = sum(each.leader_epoch for each in views[0].values())
        outcome.high_watermarks = high_watermarks(cluster.bootstrap, TOPIC, PARTITIONS)
        self.reader.finish(outcome.high_watermarks, FINISH_S)
        outcome.stored = read_back(cluster.bootstrap, TOPIC, outcome.high_watermarks)

    def _violated(self, what: str) -> None:
        """Write down what went wrong, and everything that helps to find out why."""
        logs = "\n".join(
            f"--- node {each.node_id} ({each.make})\n{each.text[-LOG_CHARACTERS:]}"
            for each in self.cluster.nodes.values()
        )
        report = self._story.with_name(f"violation-{len(self.outcome.violations) + 1}.txt")
        report.write_text(f"{what}\n{self.cluster.told()}\n{logs}\n")
        self.outcome.violations.append(f"{what} (see {report})")
        self._tell(f"VIOLATION: {what}")

    def _tell(self, line: str) -> None:
        stamped = time.strftime("%H:%M:%S ") + line
        with self._story.open("a") as story:
            story.write(stamped + "\n")
        self._say(stamped)
