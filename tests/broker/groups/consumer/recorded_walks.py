"""Walks that Apache's group manager has taken.

`python -m tests.broker.groups.consumer.recorded_walks` records them again, in `walks.jsonl` beside
this file: one line for each step with its answer; a walk begins with its "start".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.broker.groups.consumer.apache_groups import Answer, ApacheGroups, Step
from tests.broker.groups.consumer.walk import Walk

WALKS = Path(__file__).parent / "walks.jsonl"
STEPS = {**dict.fromkeys(range(6), 45), 131: 60, 266: 60}
"""Of each seed; in 131 a topic is gone before a heartbeat sees it, 266 trims two topics."""


def recorded() -> list[list[tuple[Step, Answer]]]:
    """Return the steps of each walk, with Apache's answers."""
    walks: list[list[tuple[Step, Answer]]] = []
    for line in WALKS.read_text().splitlines():
        step, answer = json.loads(line)
        if step["step"] == "start":
            walks.append([])
        walks[-1].append((step, answer))
    return walks


def fresh(steps_of: Mapping[int, int]) -> list[list[tuple[Step, Answer]]]:
    """Have Apache take the walks of some seeds, each with its number of steps."""
    with ApacheGroups() as apache:
        walks = {seed: Walk(seed, apache.ask) for seed in steps_of}
        for seed, steps in steps_of.items():
            walks[seed].run(steps)
    return [walk.taken for walk in walks.values()]


if __name__ == "__main__":
    taken = [step for walk in fresh(STEPS) for step in walk]
    WALKS.write_text("".join(json.dumps(step) + "\n" for step in taken))
