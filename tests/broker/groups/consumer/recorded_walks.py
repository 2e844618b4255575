"""Walks that Apache's group manager has taken.

`python -m tests.broker.groups.consumer.recorded_walks` records them again, in `walks.jsonl` and
`mixed_walks.jsonl` beside this file: one line for each step with its answer; a walk begins with its
"start".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.broker.groups.consumer.apache_groups import Answer, ApacheGroups, Step
from tests.broker.groups.consumer.mixed_walk import MixedWalk
from tests.broker.groups.consumer.walk import Walk

WALKS = Path(__file__).parent / "walks.jsonl"
MIXED_WALKS = Path(__file__).parent / "mixed_walks.jsonl"
STEPS = {**dict.fromkeys(range(6), 45), 131: 60, 266: 60}
"""Of each seed; in 131 a topic is gone before a heartbeat sees it, 266 trims two topics."""

MIXED_STEPS = dict.fromkeys((18, 25, 27, 48, 68, 102, 110, 114), 60)
"""Of each seed of a mixed walk; Apache draws other member ids in each recording."""


def recorded(file: Path = WALKS) -> list[list[tuple[Step, Answer]]]:
    """Return the steps of each walk of a file, with Apache's answers."""
    walks: list[list[tuple[Step, Answer]]] = []
    for line in file.read_text().splitlines():
        step, answer = json.loads(line)
        if step["step"] == "start":
            walks.append([])
        walks[-1].append((step, answer))
    return walks


def fresh(steps_of: Mapping[int, int], kind: type[Walk] = Walk) -> list[list[tuple[Step, Answer]]]:
    """Have Apache take the walks of some seeds, each with its number of steps."""
    with ApacheGroups() as apache:
        walks = {seed: kind(seed, apache.ask) for seed in steps_of}
        for seed, steps in steps_of.items():
            walks[seed].run(steps)
    return [walk.taken for walk in walks.values()]


def _record(file: Path, walks: list[list[tuple[Step, Answer]]]) -> None:
    steps = [step for walk in walks for step in walk]
    file.write_text("".join(json.dumps(step) + "\n" for step in steps))


if __name__ == "__main__":
    _record(WALKS, fresh(STEPS))
    _record(MIXED_WALKS, fresh(MIXED_STEPS, MixedWalk))
