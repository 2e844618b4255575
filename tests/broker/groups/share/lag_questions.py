"""Questions about the lag of a group, with the answers of Apache's coordinator (`judge.ShareLag`).

`python -m tests.broker.groups.share.lag_questions` records them again, in `lag.jsonl` beside this
file: a line is a question and its answer. What a question says is written in `ShareLag.java`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.apache.java_process import java_command
from tests.waiting import HANG_S

RECORDED = Path(__file__).parent / "lag.jsonl"
SEEDS = range(40)
RETRIES_MAX = 5
STATE_ERRORS = (E.NONE, E.NONE, E.NONE, E.COORDINATOR_NOT_AVAILABLE)
LEADER_ERRORS = (
    E.NONE,
    E.NONE,
    E.NONE,
    E.UNKNOWN_SERVER_ERROR,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.NOT_LEADER_OR_FOLLOWER,
    E.TOPIC_AUTHORIZATION_FAILED,
    E.KAFKA_STORAGE_ERROR,
    E.OFFSET_NOT_AVAILABLE,
)

Question = dict[str, Any]
Answer = dict[str, Any]


def question(seed: int) -> Question:
    """Return a question about up to five partitions."""
    chance = Random(seed)
    numbers = range(1 + chance.randrange(5))
    states = [
        [
            chance.choice((-1, 0, 2, 5)),
            chance.choice((-1, 0, 1, 3)),
            chance.choice(STATE_ERRORS),
            chance.randrange(4),
        ]
        for _ in numbers
    ]
    failures = chance.choice((0, 0, 1, RETRIES_MAX, RETRIES_MAX + 1))
    outcomes: list[Any] = [chance.choice(("disconnected", "timed out")) for _ in range(failures)]
    if failures <= RETRIES_MAX:
        outcomes.append([_end(chance, number) for number in numbers if chance.randrange(6)])
    leaderless = [number for number in numbers if not chance.randrange(5)]
    return {"states": states, "leaderless": leaderless, "outcomes": outcomes}


def _end(chance: Random, number: int) -> list[int]:
    error = chance.choice(LEADER_ERRORS)
    return [number, error, -1 if error else 5 + chance.randrange(9)]


def ask_apache(questions: list[Question]) -> list[Answer]:
    """Return the answers of Apache's classes."""
    done = subprocess.run(
        java_command("judge.ShareLag"),
        input="".join(json.dumps(each) + "\n" for each in questions),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def recorded() -> list[tuple[Question, Answer]]:
    """Return the questions of the file, with Apache's answers."""
    return [tuple(json.loads(line)) for line in RECORDED.read_text().splitlines()]


if __name__ == "__main__":
    asked = [question(seed) for seed in SEEDS]
    pairs = zip(asked, ask_apache(asked), strict=True)
    RECORDED.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
