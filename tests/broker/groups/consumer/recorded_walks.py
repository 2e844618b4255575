"""Walks that Apache's group manager has taken.

`python -m tests.broker.groups.consumer.recorded_walks` records them again, in `walks.jsonl` beside
this file: one line for each step with its answer; a walk begins with its "start".
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.broker.groups.consumer.apache_groups import Answer, ApacheGroups, Step
from tests.broker.groups.consumer.walk import Walk

WALKS = Path(__file__).parent / "walks.jsonl"
SEEDS = range(6)
STEPS = 45


def recorded() -> list[list[tuple[Step, Answer]]]:
    """Return the steps of each walk, with Apache's answers."""
    walks: list[list[tuple[Step, Answer]]] = []
    for line in WALKS.read_text().splitlines():
        step, answer = json.loads(line)
        if step["step"] == "start":
            walks.append([])
        walks[-1].append((step, answer))
    return walks


def fresh(seeds: range, steps: int) -> list[list[tuple[Step, Answer]]]:
    """Have Apache take the walks of some seeds."""
    with ApacheGroups() as apache:
        walks = [Walk(seed, apache.ask) for seed in seeds]
        for walk in walks:
            walk.run(steps)
    return [walk.taken for walk in walks]


if __name__ == "__main__":
    taken = [step for walk in fresh(SEEDS, STEPS) for step in walk]
    WALKS.write_text("".join(json.dumps(step) + "\n" for step in taken))
