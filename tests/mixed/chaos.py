"""Random kill -9, stop and pause of a quorum's controllers, whoever made them, under a load.

A cycle hurts one controller or two, waits a little, makes it good and waits until everybody has
caught up. What must hold then: no process ended by itself, every acknowledged change is there at
every controller, and what two logs both hold below the high watermark is the same, byte for byte.
The errors that Apache's controllers write are counted by their words, to be compared with a quorum
of Apache's alone.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.mixed.load import Load
from tests.mixed.log_bytes import compare
from tests.mixed.quorum import MixedQuorum

FAULTS = ("kill", "kill", "kill", "pause", "pause", "stop")
HELD_S = (0.1, 2.5)
TWO_AT_ONCE = 0.1
LEADER_TOO = 0.5
COMPARED_EVERY = 5
OVERRIDES = {
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.max.retention.bytes": "20000",
}
_VARYING = re.compile(r"\b[0-9a-zA-Z_-]{22}\b|(?<=event ).*(?= took)|-?\d+")
_ERROR_LINE = re.compile(r"^[\d:.]+ (ERROR|FATAL) (.*)$", re.MULTILINE)

Say = Callable[[str], None]


@dataclass
class Verdict:
    """What a run showed."""

    makes: dict[int, str]
    cycles: int = 0
    seconds: float = 0.0
    changes: int = 0
    elections: int = 0
    compared_offsets: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    led_by_ours: int = 0
    lost: list[str] = field(default_factory=list)
    halted: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    stop_races: int = 0
    """Apache controllers that SIGTERM found loading metadata: see `lost_a_stop_race`."""

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost and nobody fell over; differing logs raise by themselves."""
        return not self.lost and not self.halted

    def lines(self) -> list[str]:
        """The figures as text."""
        ours = sum(make == "ours" for make in self.makes.values())
        minutes = max(self.seconds / 60, 1e-9)
        return [
            f"{len(self.makes) - ours} Apache + {ours} ours: {self.cycles} cycles in "
            f"{self.seconds:.0f} s ({self.cycles / minutes:.1f} a minute), {dict(self.faults)}",
            f"{self.changes} changes acknowledged, {len(self.lost)} lost; {self.elections} epochs, "
            f"{self.led_by_ours} cycles ended under our leadership",
            f"{self.compared_offsets} offsets compared byte for byte; "
            f"{len(self.halted)} controllers ended by themselves, {self.stop_races} of Apache's "
            "stopped in the middle of loading",
            *(f"error x{count}: {line}" for line, count in self.errors.most_common()),
            *self.lost,
            *self.halted,
        ]


class Chaos:
    """One run over a quorum of static voters."""

    def __init__(self, home: Path, makes: Mapping[int, str], seed: int, say: Say) -> None:
        self.quorum = MixedQuorum(home, makes, voters=tuple(makes), overrides=OVERRIDES)
        self.verdict = Verdict(dict(makes))
        self._draw = random.Random(seed)
        self._say = say
        self._compared_to = 0

    def run(self, cycles: int, seconds_max: float) -> Verdict:
        """Hurt and heal `cycles` times, or as often as there is time for."""
        quorum, verdict, began = self.quorum, self.verdict, time.monotonic()
        load = Load(lambda: [quorum[each].address for each in quorum.answering])
        with quorum:
            for node in quorum.nodes.values():
                node.format()
            quorum.start()
            quorum.leader()
            load.start()
            while verdict.cycles < cycles and time.monotonic() - began < seconds_max:
                self._cycle()
                verdict.cycles += 1
                verdict.seconds = time.monotonic() - began
                if verdict.halted:
                    break
                if verdict.cycles % COMPARED_EVERY == 0:
                    self._compare()
            load.finish()
            verdict.changes = load.changes
            self._judge(load)
        return verdict

    def _cycle(self) -> None:
        quorum, draw = self.quorum, self._draw
        victims = draw.sample(list(quorum.nodes), 2 if draw.random() < TWO_AT_ONCE else 1)
        if draw.random() < LEADER_TOO:
            victims[0] = quorum.leader()
        victims = list(dict.fromkeys(victims))
        fault = draw.choice(FAULTS)
        held_s = draw.uniform(*HELD_S)
        for victim in victims:
            self._hurt(victim, fault)
        time.sleep(held_s)
        for victim in victims:
            self._heal(victim, fault)
        described = quorum.describe()
        for victim in victims:
            quorum.until_listening(victim)
        for node_id in quorum.nodes:
            self._see_alive()
            if not self.verdict.halted:
                quorum.has_caught_up(node_id)
        leader = quorum.describe()
        self.verdict.elections = leader.leader_epoch
        self.verdict.led_by_ours += quorum[leader.leader_id].is_ours
        self._say(
            f"{self.verdict.cycles:4} {fault} {victims} for {held_s:.1f} s; leader "
            f"{described.leader_id} -> {leader.leader_id}, epoch {leader.leader_epoch}, "
            f"high watermark {leader.high_watermark}"
        )

    def _hurt(self, victim: int, fault: str) -> None:
        node = self.quorum[victim]
        self._see_alive()
        self.verdict.faults[fault] += 1
        if fault == "pause":
            node.pause()
        elif fault == "kill":
            node.kill()
        else:
            before = len(node.text)
            code = node.stop()
            if not node.is_ours and lost_a_stop_race(node.text[before:]):
                self.verdict.stop_races += 1
            elif code not in (0, 143):
                self.verdict.halted.append(f"node {victim} ({node.make}) stopped with {code}")

    def _heal(self, victim: int, fault: str) -> None:
        node = self.quorum[victim]
        if fault == "pause":
            node.resume()
        else:
            node.start()

    def _see_alive(self) -> None:
        self.verdict.halted += [
            f"node {node.node_id} ({node.make}) ended by itself: {node.text[-2000:]}"
            for node in self.quorum.nodes.values()
            if node.died
        ]

    def _compare(self) -> None:
        """Compare what was committed since the last time, and what is still there of before."""
        high_watermark = self.quorum.describe().high_watermark
        for node_id in self.quorum.nodes:
            self.quorum.has_caught_up(node_id)
        directories = {node_id: node.data for node_id, node in self.quorum.nodes.items()}
        found = compare(directories, high_watermark)
        fresh = high_watermark - self._compared_to
        self.verdict.compared_offsets += min(fresh, found.offsets)
        self._compared_to = high_watermark
        self._say(f"     logs are identical up to {high_watermark} ({found.size_bytes} bytes)")

    def _judge(self, load: Load) -> None:
        self._see_alive()
        if not self.verdict.halted:
            self._compare()
            for node in self.quorum.nodes.values():
                self.verdict.lost += load.lost_for_good(node.address)
        for node in self.quorum.nodes.values():
            if not node.is_ours:
                self.verdict.errors.update(error_lines(node.text))


def lost_a_stop_race(log: str) -> bool:
    """Whether a controller of Apache's, being stopped, fell over what it was still starting.

    4.3.1 closes its log while the metadata loader still reads what was committed, or takes away a
    publisher that it has not installed yet, and calls that a fatal fault: its exit code is 1. Seen
    where SIGTERM comes within a second of the start; the quorum has no part in it.
    """
    is_reading = "MetadataLoader#handleCommit" in log and "ClosedChannelException" in log
    return is_reading or "Attempted to remove publisher" in log


def error_lines(log: str) -> list[str]:
    """The errors in a log, with what varies left out."""
    return [_VARYING.sub("#", match.group(2))[:160] for match in _ERROR_LINE.finditer(log)]
