"""The cycles: who is hurt and how, and when the quorum counts as whole again."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kraft_wire.sim.judge.history import Operation
from tests.chaos.clients import ChaosClient, Shared
from tests.chaos.network import Network
from tests.chaos.quorum import NODES, ChaosQuorum

CLIENTS = 4
HELD_S = (0.2, 2.0)
LEADER_TOO = 0.4
TWO_AT_ONCE = 0.1
WRITES_SECONDS_MAX = 120
FAULTS = ("kill", "kill", "pause")
FAULTS_OF_NETWORKS = ("cut", "cut")


@dataclass
class Outcome:
    """What a campaign leaves for its judge."""

    cycles: int = 0
    seconds: float = 0.0
    epochs: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    operations: list[Operation] = field(default_factory=list)
    high_watermark: int = 0
    died: list[str] = field(default_factory=list)

    @property
    def a_minute(self) -> float:
        """Cycles a minute."""
        return self.cycles / max(self.seconds / 60, 1e-9)


class Campaign:
    """One run over one quorum."""

    def __init__(
        self, home: Path, network: Network | None, seed: int, say: Callable[[str], None]
    ) -> None:
        self.quorum = ChaosQuorum(home, network)
        self.outcome = Outcome()
        self._network = network
        self._draw = random.Random(seed)
        self._faults = FAULTS + (FAULTS_OF_NETWORKS if network is not None else ())
        self._say = say
        self._shared = Shared(self.quorum.members)
        self._clients = [
            ChaosClient(number, self._shared, seed) for number in range(1, CLIENTS + 1)
        ]

    def run(self, cycles: int, seconds_max: float, writes_min: int = 0) -> Outcome:
        """Hurt and heal `cycles` times, or as often as there is time for.

        Few cycles may leave nobody time to write: `writes_min` are acknowledged at the end.
        """
        outcome, began = self.outcome, time.monotonic()
        with self.quorum as quorum:
            for node in quorum.nodes.values():
                node.format()
            quorum.start()
            quorum.leader()
            for client in self._clients:
                client.start()
            while outcome.cycles < cycles and time.monotonic() - began < seconds_max:
                try:
                    self._cycle()
                except AssertionError:
                    self._see_alive()
                    if not outcome.died:
                        raise
                outcome.cycles += 1
                outcome.seconds = time.monotonic() - began
                if outcome.died:
                    break
            self._wait_for_writes(writes_min)
            self._end()
        return outcome

    def _cycle(self) -> None:
        """Hurt somebody, wait, make it good, and wait until all have caught up."""
        draw, quorum = self._draw, self.quorum
        self._shared.cycle += 1
        fault = draw.choice(self._faults)
        victims = draw.sample(NODES, 2 if draw.random() < TWO_AT_ONCE else 1)
        leader = quorum.leader()
        if draw.random() < LEADER_TOO:
            victims = list(dict.fromkeys([leader, *victims[1:]]))
        held_s = draw.uniform(*HELD_S)
        story = ", ".join(self._hurt(victim, fault) for victim in victims)
        time.sleep(held_s)
        if self._network is not None:
            self._network.heal()
        for victim in victims:
            self._heal(victim, fault)
        described = quorum.describe()
        for node_id in NODES:
            self._see_alive()
            if not self.outcome.died:
                quorum.has_caught_up(node_id)
        self.outcome.faults[fault] += 1
        self.outcome.epochs = described.leader_epoch
        self._say(
            f"{self.outcome.cycles + 1:4} {story} for {held_s:.1f} s; leader {leader} -> "
            f"{described.leader_id}, epoch {described.leader_epoch}, "
            f"{sum(len(each.operations) for each in self._clients)} operations"
        )

    def _hurt(self, victim: int, fault: str) -> str:
        self._see_alive()
        if fault == "kill":
            self.quorum[victim].kill()
        elif fault == "pause":
            self.quorum[victim].pause()
        else:
            return self._cut(victim)
        return f"{fault} {victim}"

    def _cut(self, victim: int) -> str:
        """Take away one direction between a node and another, or both others."""
        assert self._network is not None, "only where there are namespaces"
        others = [each for each in NODES if each != victim]
        hit = self._draw.sample(others, self._draw.randint(1, 2))
        is_mute = self._draw.random() < 0.5
        for other in hit:
            sender, receiver = (victim, other) if is_mute else (other, victim)
            self._network.cut(sender, receiver)
        return f"{victim} {'mute to' if is_mute else 'deaf to'} {hit}"

    def _heal(self, victim: int, fault: str) -> None:
        if fault == "kill":
            self.quorum[victim].start()
        elif fault == "pause":
            self.quorum[victim].resume()

    def _see_alive(self) -> None:
        self.outcome.died += [
            f"node {node.node_id} ended by itself: {node.text[-2000:]}"
            for node in self.quorum.nodes.values()
            if node.died
        ]

    def _wait_for_writes(self, wanted: int) -> None:
        """Wait until the clients have been told that as many writes are safe."""
        deadline = time.monotonic() + WRITES_SECONDS_MAX
        while not self.outcome.died and self._writes() < wanted:
            self._see_alive()
            assert time.monotonic() < deadline, f"{self._writes()} writes, wanted {wanted}"
            time.sleep(0.1)

    def _writes(self) -> int:
        told = (each for client in self._clients for each in tuple(client.operations))
        return sum(each.kind == "write" and each.outcome == "ok" for each in told)

    def _end(self) -> None:
        """Let the clients finish and the nodes agree, then stop everything."""
        self._shared.ends.set()
        for client in self._clients:
            client.join(30)
            assert not client.is_alive(), "a client does not end"
            self.outcome.operations += client.operations
        self._see_alive()
        if not self.outcome.died:
            self.outcome.high_watermark = self.quorum.describe().high_watermark
            for node_id in NODES:
                self.quorum.has_caught_up(node_id)
        for node in self.quorum.nodes.values():
            node.stop()
