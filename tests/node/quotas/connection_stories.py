"""Stories of connections that Apache's ConnectionQuotas and ours can be told, drawn from a seed.

`tests/apache/java/judge/Connections.java` names the lines.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from kraft_wire.node.limits import ListenerLimits, ServerLimits, server_limits
from kraft_wire.node.quotas.connection_quotas import ConnectionQuotas
from kraft_wire.node.quotas.levels import rates_of_addresses
from kraft_wire.settings.node_settings import NodeSettings
from tests.node.quotas.stories import BEGIN_MS

LISTENERS = ("EXTERNAL", "OTHER", "INTERNAL")
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
STEPS = 60
_RATES = (1, 2, 3, 10, 1_000, 2_147_483_647)
_NUMBERS = (1, 2, 4, 7, 2_147_483_647)


def connection_story(seed: int) -> Iterator[str]:
    """Yield the lines of one story."""
    chance = random.Random(seed)
    number, seconds = chance.choice(((11, 1), (11, 1), (2, 1), (1, 1), (5, 3)))
    per_host = chance.choice((2, 4, 2_147_483_647))
    overrides = chance.choice(("-", "10.0.0.1:1", "10.0.0.2:5,10.0.0.3:0"))
    rate, most = chance.choice(_RATES), chance.choice(_NUMBERS)
    yield f"begin {number} {seconds} {rate} {most} {per_host} {overrides}"
    now_ms = BEGIN_MS + chance.randrange(1_000_000)
    open_ones = Ours()
    open_ones.tell(f"begin {number} {seconds} {rate} {most} {per_host} {overrides}")
    for _ in range(STEPS):
        now_ms += chance.choice((0, 0, 0, 1, 7, 130, 999, 1_000, 1_001, 2_500, 11_000, 30_000))
        drawn = chance.random()
        if drawn < 0.05:
            line = f"all {now_ms} {chance.choice(_RATES)} {chance.choice(_NUMBERS)}"
        elif drawn < 0.12:
            limits = f"{chance.choice(_RATES)} {chance.choice(_NUMBERS)}"
            line = f"listener {now_ms} {chance.choice(LISTENERS)} {limits}"
        elif drawn < 0.22:
            host = chance.choice(("*", *HOSTS))
            line = f"ip {now_ms} {host} {chance.choice(('-', '1', '2', '5', '100'))}"
        elif drawn < 0.4 and open_ones.open:
            line = f"leave {now_ms} {' '.join(chance.choice(sorted(open_ones.open)))}"
        else:
            line = f"arrive {now_ms} {chance.choice(LISTENERS)} {chance.choice(HOSTS)}"
        open_ones.tell(line)
        now_ms = max(now_ms, open_ones.now_ms)
        yield line


class Ours:
    """Our quotas, told the same lines."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.open: list[tuple[str, str]] = []
        self.now_ms = 0
        """The time after a delay."""
        self._limits = ServerLimits()
        self._rates: dict[str, int] = {}

    def tell(self, line: str) -> None:
        """Follow one line, and note the answer to it if it has one."""
        verb, *words = line.split()
        if verb == "begin":
            self._begin(*words)
            return
        now_ms, *words = words
        if verb == "arrive":
            self.answers.append(self._arrive(int(now_ms), *words))
        elif verb == "leave":
            listener, host = words
            self.open.remove((listener, host))
            self._quotas.released(listener, host)
        else:
            self._change(verb, words)

    def _begin(self, number: str, seconds: str, rate: str, most: str, *of_hosts: str) -> None:
        settings = {
            "quota.window.num": number,
            "quota.window.size.seconds": seconds,
            "max.connection.creation.rate": rate,
            "max.connections": most,
            "max.connections.per.ip": of_hosts[0],
            "max.connections.per.ip.overrides": of_hosts[1].strip("-"),
        }
        own = {"max.connection.creation.rate": rate, "max.connections": most}
        entries = dict.fromkeys(LISTENERS, own)
        self._limits = server_limits(NodeSettings(settings), listener_entries=entries)
        self._quotas = ConnectionQuotas(self._limits, {"INTERNAL"})
        self._rates, self.open = {}, []

    def _change(self, verb: str, words: list[str]) -> None:
        if verb == "all":
            rate, most = map(int, words)
            self._limits = replace(
                self._limits, connections_max=most, connections_per_second_max=rate
            )
        elif verb == "listener":
            own = ListenerLimits(int(words[2]), int(words[1]))
            listeners = {**self._limits.listeners, words[0]: own}
            self._limits = replace(self._limits, listeners=listeners)
        else:
            self._rates.pop(words[0], None)
            if words[1] != "-":
                self._rates[words[0]] = int(words[1])
            image = {
                (("ip", None if host == "*" else host),): {"connection_creation_rate": float(rate)}
                for host, rate in self._rates.items()
            }
            self._limits = replace(self._limits, rate_of_address=rates_of_addresses(image))
        self._quotas.limits = self._limits

    def _arrive(self, now_ms: int, listener: str, host: str) -> str:
        delay_ms = self._quotas.delay_ms(listener, now_ms)
        if not self._quotas.has_room(listener):
            return f"{delay_ms} full"
        self.now_ms = now_ms + delay_ms
        refusal = self._quotas.admit(listener, host, self.now_ms)
        if refusal is None:
            self.open.append((listener, host))
            verdict = "in"
        else:
            verdict = f"held {refusal.held_ms}" if refusal.held_ms else "many"
        is_over = len(self.open) > self._limits.connections_max
        exceeded = "".join(".x"[is_over and each != "INTERNAL"] for each in LISTENERS)
        is_charged = any(each != "INTERNAL" for each, _ in self.open)
        assert (self._quotas.excess_count > 0) is (is_over and is_charged), self.open
        return f"{delay_ms} {verdict} {exceeded}"


def ours(lines: list[str]) -> list[str]:
    """Return our answers to the lines of stories."""
    quotas = Ours()
    for line in lines:
        quotas.tell(line)
    return quotas.answers
