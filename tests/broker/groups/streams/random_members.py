"""Random groups for the task assignor, as a history: members, processes and tasks change."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import Any

Question = dict[str, Any]
Answer = dict[str, Any]


def assign_questions(chance: random.Random, length: int) -> Iterator[Question]:
    """Yield a group again and again; the caller stores each result in it (`store`)."""
    size = chance.choice((2, 6, 40))
    question: Question = {
        "kind": "assign",
        "replicas": chance.choice((None, "0", "1", "1", "2", "5")),
        "topology": {},
        "members": [],
    }
    processes = [_id(chance) for _ in range(chance.randint(1, size))]
    wanted = chance.randint(0 if chance.random() < 0.2 else 1, size)
    for _ in range(length):
        _change_topology(chance, question)
        members = question["members"]
        while len(members) < wanted:
            process = chance.choice(processes)
            members.append({"id": _id(chance), "process": process, "active": {}, "standby": {}})
        if chance.random() < 0.3:
            _disturb(chance, question)
        yield question
        wanted = max(0, wanted + chance.choice((-3, -1, 0, 1, 2)))
        chance.shuffle(members)
        del members[wanted:]


def store(question: Question, answer: Answer) -> None:
    """Make a result the former tasks of the group's members; a failure changes nothing."""
    for member in question["members"]:
        if "targets" in answer:
            target = answer["targets"][member["id"]]
            member.update(active=target["active"], standby=target["standby"])


def _id(chance: random.Random) -> str:
    return base64.b64encode(chance.randbytes(12)).decode()


def _change_topology(chance: random.Random, question: Question) -> None:
    topology = question["topology"]
    if not topology or chance.random() < 0.1:
        topology.clear()
        for number in range(chance.choice((0, 1, 1, 3, 11))):
            topology[str(number)] = [chance.choice((1, 3, 8, 40)), chance.random() < 0.6]


def _disturb(chance: random.Random, question: Question) -> None:
    """Give members tasks as before that no assignor gave: doubled, or of no subtopology."""
    for member in question["members"]:
        kind = chance.choice(("active", "standby", "standby"))
        subtopology_id = chance.choice([*question["topology"], "gone"])
        tasks = dict(member[kind])
        tasks[subtopology_id] = sorted(chance.sample(range(12), chance.randint(0, 6)))
        member[kind] = tasks
