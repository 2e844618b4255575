"""Compare our server assignors with Apache's: `python -m tests.broker.groups.assignors`.

`--groups N --seed S` takes N random groups; `--large` adds one of 1,000 members and 5,000
partitions for each assignor and kind of subscription, and prints both times. `--write` records the
groups that the tests compare without Java.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from tests.apache.java_process import java_command
from tests.broker.groups.assignors.groups import (
    ASSIGNORS,
    SIMPLE,
    Group,
    Targets,
    assigned,
    history,
    store,
)
from tests.broker.groups.assignors.recorded import RECORDED

GROUPS_LOOKED_AT = 800
RECORDED_OF_A_KIND = 14


class ApacheAssignors:
    """Apache's assignors in a process of their own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command("judge.Assignors", heap_mb=512),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, group: Group) -> dict[str, Any]:
        """Return Apache's targets, and how long it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(group) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)


def compared(
    apache: ApacheAssignors,
    seed: int,
    group_count: int,
    assignors: Sequence[str] = tuple(ASSIGNORS),
) -> Iterator[tuple[Group, Targets | None]]:
    """Yield random groups with Apache's targets, which are also ours."""
    chance = random.Random(seed)
    taken = 0
    while taken < group_count:
        sizes = chance.choice(((3, 2, 5), (8, 5, 12), (30, 20, 40)))
        for group in history(chance, 6, *sizes, assignors):
            targets: Targets | None = apache.ask(group)["targets"]
            ours = assigned(group)
            assert ours == targets, json.dumps(group)
            yield deepcopy(group), targets
            store(group, targets)
            taken += 1


def recordable(pairs: Iterator[tuple[Group, Targets | None]]) -> Iterator[str]:
    """Yield lines of small groups, as many of each assignor and kind of subscription."""
    taken: Counter[tuple[str, bool]] = Counter()
    for group, targets in pairs:
        kind = (group["assignor"], group["homogeneous"])
        line = json.dumps([group, targets]) + "\n"
        if len(group["topics"]) > 2 and len(line) < 6_000 and taken[kind] < RECORDED_OF_A_KIND:
            taken[kind] += 1
            yield line


def large(apache: ApacheAssignors) -> None:
    """Compare groups of 1,000 members and 5,000 partitions, and print how long each make takes."""
    for assignor in (*ASSIGNORS, SIMPLE):
        for homogeneous in (True, False):
            group = _large_group(assignor, homogeneous)
            for state in ("first", "again"):
                started = time.perf_counter()
                ours = assigned(group)
                seconds = time.perf_counter() - started
                answer = apache.ask(group)
                assert ours == answer["targets"]
                kind = "homogeneous" if homogeneous else "heterogeneous"
                theirs = answer["microseconds"] / 1_000
                print(f"{assignor} {kind} {state}: {seconds * 1_000:.0f} ms, Java {theirs:.0f} ms")
                store(group, ours)
                del group["members"][:10]


def _large_group(assignor: str, homogeneous: bool) -> Group:
    chance = random.Random(7)
    (group,) = history(chance, 1, 1, 1, 1)
    group.update(assignor=assignor, homogeneous=homogeneous)
    group["topics"] = [[f"topic-{n}", chance.randbytes(16).hex()[:22], 100] for n in range(50)]
    names = [name for name, _, _ in group["topics"]]
    group["members"] = [
        {
            "id": f"member-{chance.getrandbits(64):x}",
            "instance": None,
            "target": [],
            "names": names if homogeneous else chance.sample(names, 25),
        }
        for _ in range(1_000)
    ]
    for topic in group["topics"]:
        topic[1] = topic[1][:21] + "A"
    group["assignable"] = {text: list(range(count)) for _, text, count in group["topics"]}
    return group


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.broker.groups.assignors")
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--assignors", nargs="+", default=[*ASSIGNORS, SIMPLE])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    apache = ApacheAssignors()
    if arguments.write:
        consumer = recordable(compared(apache, 0, GROUPS_LOOKED_AT))
        share = recordable(compared(apache, 0, GROUPS_LOOKED_AT, (SIMPLE,)))
        RECORDED.write_text("".join((*consumer, *share)))
    else:
        assignors = arguments.assignors
        count = sum(1 for _ in compared(apache, arguments.seed, arguments.groups, assignors))
        print(f"{count} groups: all targets equal")
    if arguments.large:
        large(apache)
    apache.close()


if __name__ == "__main__":
    main()
