"""Random groups for the server assignors, as JSON for Apache's and as a specification for ours."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kraft_wire.broker.groups.assignors import simple
from kraft_wire.broker.groups.assignors.names import ASSIGNORS
from kraft_wire.broker.groups.assignors.spec import (
    AssignmentFailed,
    Assignor,
    GroupSpec,
    MemberSpec,
)
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.model import uuid_from_text, uuid_to_text

Group = dict[str, Any]
Targets = dict[str, list[Any]]
SIMPLE = "simple"
EVERY: Mapping[str, Assignor] = {**ASSIGNORS, SIMPLE: simple.assign}
"""The assignors of consumer groups, and that of share groups."""


def history(
    chance: random.Random,
    length: int,
    members_max: int,
    topics_max: int,
    partitions_max: int,
    assignors: Sequence[str] = tuple(ASSIGNORS),
) -> Iterator[Group]:
    """Yield a group again and again: between two, members, topics and subscriptions change.

    The caller stores each result in the group that it got, as its former target.
    """
    group: Group = {
        "assignor": chance.choice(assignors),
        "homogeneous": chance.random() < 0.5,
        "topics": [],
        "members": [],
    }
    made = 0
    wanted_topics = chance.randint(1, topics_max)
    wanted_members = chance.randint(1, members_max)
    for _ in range(length):
        while len(group["topics"]) < wanted_topics:
            made += 1
            drawn = chance.getrandbits(128).to_bytes(16, "big")
            text = base64.urlsafe_b64encode(drawn).decode().rstrip("=")
            group["topics"].append([f"topic-{made}", text, chance.randint(1, partitions_max)])
        while len(group["members"]) < wanted_members:
            made += 1
            instance = f"instance-{made}" if chance.random() < 0.2 else None
            member_id = base64.b64encode(chance.getrandbits(96).to_bytes(12, "big")).decode()
            group["members"].append({"id": member_id, "instance": instance, "target": []})
        _subscribe(chance, group)
        if group["assignor"] == SIMPLE:
            _initialize(chance, group)
        yield group
        wanted_topics = max(1, wanted_topics + chance.choice((-1, 0, 0, 1)))
        wanted_members = max(1, wanted_members + chance.choice((-2, -1, 0, 1, 2)))
        chance.shuffle(group["members"])
        del group["members"][wanted_members:]
        for topic in group["topics"]:
            topic[2] += chance.choice((0, 0, 0, 2))
        del group["topics"][wanted_topics:]


def _subscribe(chance: random.Random, group: Group) -> None:
    """Choose the names that each member subscribes to; some of them do not exist."""
    names = [topic[0] for topic in group["topics"]] + ["missing"]
    same = chance.sample(names, chance.randint(1, len(names)))
    for member in group["members"]:
        if group["homogeneous"]:
            member["names"] = chance.sample(same, len(same))
        elif "names" not in member or chance.random() < 0.3:
            member["names"] = chance.sample(names, chance.randint(0, len(names)))


def _initialize(chance: random.Random, group: Group) -> None:
    """Choose the partitions that a share group may assign; seldom one is lost again."""
    former = group.get("assignable", {})
    group["assignable"] = {
        text: sorted(
            number
            for number in range(count)
            if chance.random() < (0.98 if number in former.get(text, ()) else 0.7)
        )
        for _, text, count in group["topics"]
        if chance.random() < 0.97
    }


def assigned(group: Group) -> Targets | None:
    """Return what our assignor makes of a group, in the form of Apache's answer; None: it fails."""
    try:
        targets = EVERY[group["assignor"]](specification(group))
    except AssignmentFailed:
        return None
    return {
        member_id: [[uuid_to_text(topic_id), list(each)] for topic_id, each in target.items()]
        for member_id, target in targets.items()
    }


def specification(group: Group) -> GroupSpec:
    """Return a group as our assignors take it."""
    ids = {name: uuid_from_text(text) for name, text, _ in group["topics"]}
    members: JavaHashMap[str, MemberSpec] = JavaHashMap()
    for member in group["members"]:
        names = java_hash_set(member["names"], max(int(len(member["names"]) / 0.75) + 1, 16))
        members[member["id"]] = MemberSpec(
            instance_id=member["instance"],
            topic_ids=tuple(ids[name] for name in names if name in ids),
            names_count=len(member["names"]),
            target={uuid_from_text(text): tuple(each) for text, each in member["target"]},
        )
    counts = {uuid_from_text(text): count for _, text, count in group["topics"]}
    assignable = {uuid_from_text(text): each for text, each in group.get("assignable", {}).items()}
    return GroupSpec(members, group["homogeneous"], counts, assignable)


def store(group: Group, targets: Targets | None) -> None:
    """Make a result the former targets of the group's members; a failure changes nothing."""
    if targets is None:
        return
    for member in group["members"]:
        member["target"] = targets.get(member["id"], [])
