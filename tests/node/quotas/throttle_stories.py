"""Stories of replication throttles that Apache's manager and ours can be told, drawn from a seed.

`tests/apache/java/judge/ReplicationThrottle.java` names the lines.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from kraft_wire.node.quotas.replication_quota import ReplicationQuota
from kraft_wire.node.quotas.windows import Windows
from tests.node.quotas.stories import BEGIN_MS

STEPS = 60
BROKER = 5


def throttle_story(seed: int) -> Iterator[str]:
    """Yield the lines of one story."""
    chance = random.Random(seed)
    number, seconds = chance.choice(((11, 1), (11, 1), (2, 1), (1, 1), (5, 3)))
    yield f"begin {number} {seconds}"
    now_ms = BEGIN_MS + chance.randrange(1_000_000)
    yield f"bound {now_ms} {chance.choice((1_000, 50_000))}"
    for _ in range(STEPS):
        now_ms += chance.choice((0, 0, 1, 7, 130, 499, 999, 1_000, 1_001, 2_500, 11_000, 30_000))
        drawn = chance.random()
        if drawn < 0.08:
            yield f"bound {now_ms} {chance.choice((1, 1_000, 50_000, 9_223_372_036_854_775_807))}"
        elif drawn < 0.18:
            numbers = chance.choice(("all", "none", "1,2", "0"))
            yield f"list {now_ms} {chance.choice('ab')} {numbers}"
        elif drawn < 0.3:
            yield f"listed {now_ms} {chance.choice('ab')} {chance.randrange(3)}"
        elif drawn < 0.65:
            yield f"record {now_ms} {chance.choice((0, 500, 1_000, 20_111, 1_000_000))}"
        else:
            yield f"exceeded {now_ms}"


def is_question(line: str) -> bool:
    """Whether a line has an answer."""
    return line.startswith(("exceeded", "listed"))


def ours(lines: list[str]) -> list[str]:
    """Return our answers to the lines of stories."""
    answers: list[str] = []
    quota = ReplicationQuota("leader", BROKER, Windows(11, 1_000))
    for line in lines:
        verb, *words = line.split()
        if verb == "begin":
            quota = ReplicationQuota(
                "leader", BROKER, Windows(int(words[0]), int(words[1]) * 1_000)
            )
        elif verb == "bound":
            quota.set_bound(int(words[1]))
        elif verb == "record":
            quota.record(int(words[1]), int(words[0]))
        elif verb == "list":
            quota.throttle(words[1], _setting(words[2]))
        elif verb == "listed":
            answers.append(str(quota.is_throttled(words[1], int(words[2]))).lower())
        else:
            answers.append(str(quota.is_exceeded(int(words[0]))).lower())
    return answers


def _setting(partitions: str) -> str:
    """Return a list as the topic's setting has it, with replicas of another broker too."""
    if partitions in ("all", "none"):
        return {"all": "*", "none": ""}[partitions]
    own = [f"{each}:{BROKER}" for each in partitions.split(",")]
    return ",".join([*own, f"0:{BROKER + 1}", f"2:{BROKER + 1}"])
