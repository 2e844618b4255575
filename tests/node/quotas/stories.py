"""Stories about quotas that Apache's own managers and ours can be told, drawn from a seed.

`tests/apache/java/judge/ClientQuotas.java` names the lines. Times begin far from 0, because a
bucket of Apache's is empty at the epoch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from kraft_wire.metadata.image import QuotaEntity
from kraft_wire.node.quotas.levels import MUTATION, PRODUCER, levels_of
from kraft_wire.node.quotas.mutation_quota import MutationQuota
from kraft_wire.node.quotas.rate_quota import RateQuota
from kraft_wire.node.quotas.windows import Windows

BEGIN_MS = 1_800_000_000_000
USERS = ("alice", "bob", "ANONYMOUS")
CLIENTS = ("one", "two", "-")
KINDS = ("produce", "request", "mutation")
STEPS = 60


def story(seed: int) -> Iterator[str]:
    """Yield the lines of one story."""
    chance = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    number, seconds = chance.choice(((11, 1), (11, 1), (2, 1), (1, 1), (5, 3)))
    yield f"begin {kind} {number} {seconds}"
    now_ms = BEGIN_MS + chance.randrange(1_000_000)
    places = [(user, client) for user in ("-", "*", *USERS[:2]) for client in ("-", "*", "one")]
    levels = chance.sample(places[1:], chance.choice((1, 1, 2, 4)))
    for _ in range(STEPS):
        now_ms += chance.choice((0, 0, 1, 7, 130, 999, 1_000, 1_001, 2_500, 11_000, 30_000))
        who = f"{now_ms} {chance.choice(USERS)} {chance.choice(CLIENTS)}"
        if chance.random() < 0.15:
            user, client = chance.choice(levels)
            bound = chance.choice(("-", "1", "10", "1000", "2.5", "123456"))
            yield f"set {now_ms} {user} {client} {bound}"
        elif kind == "mutation":
            permits = " ".join(
                str(chance.choice((1, 3, 20, 500))) for _ in range(chance.randint(1, 4))
            )
            yield f"{chance.choice(('strict', 'permissive'))} {who} {permits}"
        else:
            value = chance.choice((0, 1, 99, 12_327, 20_111, 0.125, 1_000_000))
            verb = chance.choice(("record", "record", "record", "unrecord", "most"))
            yield f"{verb} {who} {value}"


class Ours:
    """Our quotas, told the same lines."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self._image: dict[QuotaEntity, dict[str, float]] = {}

    def tell(self, line: str) -> None:
        """Follow one line, and note the answer to it if it has one."""
        verb, *words = line.split()
        if verb == "begin":
            self._begin(words[0], Windows(int(words[1]), int(words[2]) * 1_000))
        elif verb == "set":
            self._set(*words[1:])
        else:
            client = "" if words[2] == "-" else words[2]
            answer = self._answer(verb, int(words[0]), words[1], client, words[3:])
            self.answers.append(answer)

    def _begin(self, kind: str, windows: Windows) -> None:
        self._image = {}
        self._kind = MUTATION if kind == "mutation" else PRODUCER
        self._mutations = MutationQuota(windows)
        self._rates = RateQuota(windows)
        if kind == "request":
            self._rates = RateQuota(windows, throttle_ms_max=windows.size_ms)

    def _set(self, user: str, client: str, bound: str) -> None:
        named = {"client-id": client, "user": user}
        parts = [
            (kind, None if name == "*" else name) for kind, name in named.items() if name != "-"
        ]
        entity: QuotaEntity = tuple(parts)
        self._image.pop(entity, None)
        if bound != "-":
            self._image[entity] = {self._kind: float(bound)}
        levels = levels_of(self._image)[self._kind]
        self._mutations.follow(levels)
        self._rates.follow(levels)

    def _answer(self, verb: str, now_ms: int, user: str, client: str, values: list[str]) -> str:
        if verb in ("strict", "permissive"):
            budget = self._mutations.budget(user, client, is_strict=verb == "strict", now_ms=now_ms)
            if budget is None:
                return "." * len(values) + " 0"
            marks = "".join(".x"[not budget.admits(int(value))] for value in values)
            return f"{marks} {budget.throttle_ms}"
        if verb == "most":
            most = self._rates.most(user, client, now_ms)
            return repr(1.7976931348623157e308 if most is None else most)
        if verb == "unrecord":
            self._rates.note(user, client, -float(values[0]), now_ms)
            return "done"
        return str(self._rates.charge(user, client, float(values[0]), now_ms))


def ours(lines: list[str]) -> list[str]:
    """Return our answers to the lines of stories."""
    quotas = Ours()
    for line in lines:
        quotas.tell(line)
    return quotas.answers


def is_answered(line: str) -> bool:
    """Whether a line has an answer."""
    return line.split()[0] not in ("begin", "set")
