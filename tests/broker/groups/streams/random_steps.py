"""Random members on their way to a target, in every state, also in ones that no walk leads to."""

from __future__ import annotations

import random
from typing import Any

Question = dict[str, Any]
_KINDS = ("active", "standby", "warmup")
_STATES = (1, 1, 2, 3, 127)
_SUBTOPOLOGIES = ("0", "1", "a")
_PARTITIONS = 3


def step_question(chance: random.Random) -> Question:
    """Return a member, its target, what it reports, and which processes have which tasks."""
    epoch = chance.randint(1, 5)
    assigned = _tasks(chance)
    pending = _tasks(chance) if chance.random() < 0.4 else _none()
    target = chance.choice((assigned, assigned, _tasks(chance), _tasks(chance), _none()))
    if chance.random() < 0.3:
        others = chance.sample(_KINDS, len(_KINDS))
        target = {kind: target[other] for kind, other in zip(_KINDS, others, strict=True)}
    owned = chance.choice((None, assigned, pending, _tasks(chance), _none(), target))
    return {
        "kind": "reconcile",
        "member": {
            "process": "p",
            "state": chance.choice(_STATES),
            "epoch": epoch,
            "previous": chance.randint(0, epoch),
            "assigned": _with_epochs(chance, assigned),
            "pending": _with_epochs(chance, pending),
        },
        "epoch": epoch + chance.choice((0, 0, 1, 2)),
        "target": target,
        "owned": owned,
        "holders": _holders(chance),
    }


def _none() -> dict[str, dict[str, list[int]]]:
    return {kind: {} for kind in _KINDS}


def _tasks(chance: random.Random) -> dict[str, dict[str, list[int]]]:
    kinds = _none()
    for kind in _KINDS:
        for each in _SUBTOPOLOGIES:
            if chance.random() < 0.4:
                size = chance.randint(1, _PARTITIONS)
                kinds[kind][each] = sorted(chance.sample(range(_PARTITIONS), size))
    return kinds


def _with_epochs(
    chance: random.Random, kinds: dict[str, dict[str, list[int]]]
) -> dict[str, dict[str, Any]]:
    active = {
        each: {str(partition): chance.randint(1, 5) for partition in partitions}
        for each, partitions in kinds["active"].items()
    }
    return {**kinds, "active": active}


def _holders(chance: random.Random) -> dict[str, dict[str, Any]]:
    """Return the processes that have each task; `p` is that of the member."""
    holders: dict[str, dict[str, Any]] = {kind: {} for kind in _KINDS}
    share = chance.choice((0, 0.1, 0.4))
    for each in _SUBTOPOLOGIES:
        for partition in range(_PARTITIONS):
            task = f"{each}/{partition}"
            if chance.random() < share:
                holders["active"][task] = chance.choice("pq")
            for kind in ("standby", "warmup"):
                if chance.random() < share:
                    holders[kind][task] = chance.sample("pqr", chance.randint(1, 2))
    return holders
