"""Where an exploration begins: the later the start, the deeper the states that it reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kraft_wire.sim.quorum_model.logs import Disk, History, changed
from kraft_wire.sim.quorum_model.states import Append, Key, Replica

__all__ = ["STARTS"]

Start: TypeAlias = tuple[History, list[Replica]]


def formatted(count: int, voters: tuple[int, ...]) -> Start:
    """Return replicas that never ran; an observer has an empty disk."""
    keys = frozenset(Key(each, 1) for each in voters)
    disk = Disk(base_voters=keys)
    ids = range(1, count + 1)
    return History(), [Replica(Key(each, 1), disk if each in voters else Disk()) for each in ids]


def led(count: int, voters: tuple[int, ...]) -> Start:
    """Return replicas whose first voter leads epoch 1, with its whole log committed."""
    _, found = formatted(count, voters)
    leader = Key(voters[0], 1)
    disk = changed(found[leader.id - 1].log, Append(), 1, 0)._replace(flushed=1)
    for each in voters:
        common = (Key(each, 1), disk, 1, leader, leader.id)
        found[each - 1] = Replica(*common, "follower", 1, has_fetched=True, leader_high_watermark=1)
    ends = frozenset((Key(each, 1), 1) for each in voters[1:])
    found[leader.id - 1] = Replica(
        leader, disk, 1, leader, leader.id, "leader", 1, commits=1, ends=ends
    )
    leaders = frozenset({(1, leader, 0)})
    return History(committed=disk.entries, committed_in=1, leaders=leaders), found


def ahead(count: int, voters: tuple[int, ...]) -> Start:
    """Return the same with one more record everywhere, which the third voter has not flushed."""
    history, found = led(count, voters)
    for place, voter in enumerate(voters[:3]):
        disk = changed(found[voter - 1].log, Append(), 1, 0)
        flushed = 1 if place == 2 else 2
        found[voter - 1] = found[voter - 1]._replace(log=disk._replace(flushed=flushed))
    return history, found


def split(count: int, voters: tuple[int, ...]) -> Start:
    """Return replicas whose first led epoch 1 and whose second led epoch 2, both alone."""
    history, found = led(count, voters)
    logs = [each.log for each in found]
    for at, epoch in ((0, 1), (1, 2)):
        disk = changed(changed(logs[at], Append(), epoch, 0), Append(), epoch, 0)
        logs[at] = disk._replace(flushed=3)
    second = found[1].key
    found = [Replica(each.key, disk, 2, second) for each, disk in zip(found, logs, strict=True)]
    found[1] = found[1]._replace(leader=second.id, role="resigned")
    return history._replace(leaders=history.leaders | {(2, second, 0)}), found


STARTS: Final[dict[str, Callable[[int, tuple[int, ...]], Start]]] = {
    "formatted": formatted,
    "led": led,
    "ahead": ahead,
    "split": split,
}
