"""How long after the leader's `kill -9` a change is acknowledged again: ours beside Apache's.

Two quorums of three controllers with the same properties run side by side. They take turns: the one
whose turn it is has a client that writes all the time; its leader is killed, and the time counts
until the first change that was asked for after that is acknowledged. Then the dead one is started
again and catches up, before the other side has its turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.apache.jars import RELEASE
from tests.mixed.controller import OURS
from tests.mixed.load import FIRST_VALUE, change
from tests.mixed.quorum import MixedQuorum
from tests.server.wire_client import WireClient

DEFAULTS = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.request.timeout.ms": "2000",
    "controller.quorum.election.backoff.max.ms": "1000",
}
"""Kafka's own, said aloud."""
SIDES = {"ours": OURS, "apache": RELEASE}
WARM_CHANGES = 50
SECONDS_MAX = 600.0
PATIENCE_S = 3.0
PATIENCE_MAX_S = 60.0
"""A machine that is busy with others may need longer for the first change of all."""
PAUSE_S = 0.01


def quorum_of(home: Path, make: str, overrides: Mapping[str, str] | None = None) -> MixedQuorum:
    """Three formatted controllers of one make, not started."""
    quorum = MixedQuorum(
        home, dict.fromkeys((1, 2, 3), make), voters=(1, 2, 3), overrides=overrides or DEFAULTS
    )
    for node in quorum.nodes.values():
        node.format()
    return quorum


class Writer:
    """Writes one change after the other, at whoever takes it."""

    def __init__(self, quorum: MixedQuorum) -> None:
        self._quorum = quorum
        self._client: WireClient | None = None
        self._turn = 0
        self._patience_s = PATIENCE_S
        self._value = FIRST_VALUE

    def write(self) -> None:
        """Return once a change is acknowledged, whoever must be asked for it."""
        deadline = time.monotonic() + SECONDS_MAX
        while not self._try():
            assert time.monotonic() < deadline, self._quorum.logs()
            time.sleep(PAUSE_S)

    def close(self) -> None:
        """Leave."""
        client, self._client = self._client, None
        if client is not None:
            client.sock.close()

    def _try(self) -> bool:
        self._value = FIRST_VALUE + (self._value + 1) % 1_000_000
        try:
            if self._client is None:
                nodes = self._quorum.answering
                address = self._quorum[nodes[self._turn % len(nodes)]].address
                self._client = WireClient(address)
            self._client.sock.settimeout(self._patience_s)
            if change(self._client, "failover", self._value) == ErrorCode.NONE:
                self._patience_s = PATIENCE_S
                return True
        except TimeoutError:
            self._patience_s = min(2 * self._patience_s, PATIENCE_MAX_S)
        except (OSError, AssertionError):
            pass
        self._turn += 1
        self.close()
        return False


def failover_seconds(quorum: MixedQuorum) -> float:
    """Kill the leader once; leave the quorum whole."""
    writer = Writer(quorum)
    for _ in range(WARM_CHANGES):
        writer.write()
    leader = quorum[quorum.leader()]
    began = time.monotonic()
    leader.kill()
    writer.write()
    seconds = time.monotonic() - began
    writer.close()
    leader.start()
    quorum.has_caught_up(leader.node_id)
    return seconds


def compared(home: Path, rounds: int, say: Callable[[str], None]) -> dict[str, list[float]]:
    """Let both sides take turns; return the seconds of each."""
    quorums = {name: quorum_of(home / name, make) for name, make in SIDES.items()}
    samples: dict[str, list[float]] = {name: [] for name in quorums}
    with quorums["ours"], quorums["apache"]:
        for quorum in quorums.values():
            quorum.start()
            for node_id in quorum.nodes:
                quorum.has_caught_up(node_id)
        for number in range(rounds):
            for name, quorum in quorums.items():
                samples[name].append(failover_seconds(quorum))
            took = ", ".join(f"{name} {each[-1]:.2f} s" for name, each in samples.items())
            say(f"failover {number + 1}/{rounds}: {took}")
    return samples


def percentile(samples: list[float], share: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
