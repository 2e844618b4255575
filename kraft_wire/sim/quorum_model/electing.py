"""Whether a leader can still be elected: the deadlocks that no safety invariant sees.

From a state of the model all faults are healed: no message is lost, no replica crashes, and a
request is answered at once. If a majority of the newest voter set runs, some order of steps must
lead to a leader that commits its log and is followed by a majority. Every order is tried before the
search fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from kraft_wire.sim.quorum_model import rules
from kraft_wire.sim.quorum_model.judgment import Violated
from kraft_wire.sim.quorum_model.logs import Disk, History, changed
from kraft_wire.sim.quorum_model.states import (
    Fetched,
    FetchedSnapshot,
    Install,
    Key,
    Replica,
    Step,
    is_member,
)
from kraft_wire.sim.quorum_model.world import State, World

__all__ = ["LeaderElectable"]

_EPOCHS_MORE: Final = 2
_Quorum: TypeAlias = tuple[Replica, ...]


class LeaderElectable:
    """Judges states of a world; results of one state are reused for others."""

    def __init__(self) -> None:
        self._good: set[_Quorum] = set()
        self._own: dict[Replica, list[Replica]] = {}
        self._calls: dict[tuple[Replica, Replica], list[tuple[Replica, Replica]]] = {}
        self.asked = 0
        """States in which a majority was there."""

    def __call__(self, world: World, state: State) -> None:
        """Raise Violated where no leader can be elected although a majority is there."""
        count = world.scope.replicas
        quorum = tuple(_flushed(world.replicas[number]) for number in state[:count])
        history = world.histories[state[count]]
        if not has_majority(quorum, history):
            return
        self.asked += 1
        if not self._leads_somewhere(quorum):
            raise Violated("LeaderElectable", *quorum)

    def _leads_somewhere(self, first: _Quorum) -> bool:
        """Search depth first; every state on a path to a leader is good."""
        if first in self._good:
            return True
        epoch_max = max(each.epoch for each in first) + _EPOCHS_MORE
        seen = {first}
        way: list[tuple[_Quorum, Iterator[_Quorum]]] = [(first, self._next(first))]
        while way:
            quorum, following = way[-1]
            if quorum in self._good or any(_leads(each, quorum) for each in quorum):
                self._good.update(each for each, _ in way)
                return True
            after = next((one for one in following if one not in seen), None)
            if after is None:
                way.pop()
            elif max(each.epoch for each in after) <= epoch_max:
                seen.add(after)
                way.append((after, self._next(after)))
        return False

    def _next(self, quorum: _Quorum) -> Iterator[_Quorum]:
        """Yield the possible next steps: answers first, then the replicas' own steps."""
        for at, asker in enumerate(quorum):
            for to, asked in enumerate(quorum):
                if at == to:
                    continue
                for asker_after, asked_after in self._called(asker, asked):
                    found = list(quorum)
                    found[at], found[to] = asker_after, asked_after
                    yield tuple(found)
        for at, each in enumerate(quorum):
            for after in self._alone(each):
                yield (*quorum[:at], after, *quorum[at + 1 :])

    def _alone(self, r: Replica) -> list[Replica]:
        found = self._own.get(r)
        if found is None:
            steps = (_carried_out(r, step) for step in rules.internal(r))
            found = self._own[r] = [after for after in steps if not _is_astray(after)]
        return found

    def _called(self, asker: Replica, asked: Replica) -> list[tuple[Replica, Replica]]:
        """Return both replicas after one has sent the other all its possible requests."""
        key = (asker, asked)
        found = self._calls.get(key)
        if found is None:
            found = self._calls[key] = list(dict.fromkeys(_calls(asker, asked)))
        return found


def _calls(asker: Replica, asked: Replica) -> Iterator[tuple[Replica, Replica]]:
    for request in rules.requests(asker, (asked.key,)):
        target = request.target
        if (target.id if isinstance(target, Key) else target) != asked.key.id:
            continue
        for step in rules.receive(asked, request):
            answer, disk = step.answer, asked.log
            assert answer is not None
            assert isinstance(disk, Disk)
            if isinstance(answer, Fetched) and answer.diverging is answer.snapshot is None:
                answer = answer._replace(records=disk.records_from(answer.asked.offset))
            if isinstance(answer, FetchedSnapshot):
                answer = answer._replace(voters=disk.base_voters)
            for heard in rules.receive(asker, answer):
                both = (_carried_out(asker, heard), _carried_out(asked, step))
                if both != (asker, asked) and not any(map(_is_astray, both)):
                    yield both


def _carried_out(r: Replica, step: Step) -> Replica:
    after = step.after
    if step.change is not None:
        after = after._replace(log=changed(r.log, step.change, after.epoch, 0))
        if isinstance(step.change, Install):
            after = rules.installed(after)
    return _flushed(after)


def _flushed(r: Replica) -> Replica:
    disk = r.log
    assert isinstance(disk, Disk)
    if disk.flushed == disk.last.offset:
        return r
    return r._replace(log=disk._replace(flushed=disk.last.offset))


def _leads(leader: Replica, quorum: _Quorum) -> bool:
    """Return whether a leader has committed its whole log, and a majority follows it."""
    if leader.role != "leader" or leader.commits < leader.log.last.offset:
        return False
    under = [
        each
        for each in quorum
        if is_member(leader.log.voters, each.key)
        and (each.epoch, each.leader) == (leader.epoch, leader.key.id)
        and (each.has_fetched or each is leader)
    ]
    return len(under) >= leader.majority


def _is_astray(r: Replica) -> bool:
    """Addresses are known here: a replica that learns of a leader follows it."""
    return r.role == "unattached" and r.leader >= 0


def has_majority(quorum: _Quorum, history: History) -> bool:
    """Return whether a leader must be electable.

    Not if the majority of the newest voter set lost its disks. Nor if the longest log belongs to a
    replica that this log removes, by a record that no other replica has: KIP-853 does not resolve
    this.
    """
    newest = max(quorum, key=lambda each: each.log.last)
    if not newest.is_voter and newest.log.voters_offset >= len(history.committed):
        return False
    there = {each.key for each in quorum}
    alive = [voter for voter in newest.log.voters if voter in there]
    return 2 * len(alive) > len(newest.log.voters)
