"""Replicas of the model with their disks and a network, checked for violations.

The network is a bounded set of messages: each may be lost, delivered late, twice or out of order.
Replicas crash, lose their disks, and take snapshots, as often as a `Scope` allows. Replicas,
messages and histories are kept in tables, a state is a tuple of their numbers, and the steps of one
replica are computed once for all states in which it is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

from kraft_wire.sim.quorum_model import rules
from kraft_wire.sim.quorum_model.judgment import Violated, judge_step, log_conflict
from kraft_wire.sim.quorum_model.logs import Disk, History, changed
from kraft_wire.sim.quorum_model.starts import STARTS
from kraft_wire.sim.quorum_model.states import (
    NOBODY,
    Answer,
    Append,
    Fetched,
    FetchedSnapshot,
    Install,
    Key,
    Message,
    Point,
    Replica,
    Step,
    Voted,
)

__all__ = ["Scope", "State", "World"]

State: TypeAlias = tuple[int, ...]
"""Numbers: one for each replica, one for the history, then those of the messages, ascending."""


class Scope(NamedTuple):
    """How much may happen."""

    replicas: int = 3
    voters: tuple[int, ...] = (1, 2, 3)
    start: str = "formatted"
    """One of `starts.STARTS`."""
    epochs: int = 2
    appends: int = 1
    crashes: int = 1
    wipes: int = 0
    changes: int = 0
    snapshots: int = 0
    in_flight: int = 2
    """Messages on the way at one time."""
    batch: int = 100
    """Records in one answer to a fetch."""
    has_pre_votes: bool = True
    """False: a replica due for pre-votes is a candidate at once: more runs, fewer states."""


class World:
    """All states within a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.replicas: list[Replica] = []
        self.messages: list[Message] = []
        self.histories: list[History] = []
        self._numbers: dict[Any, int] = {}
        self._local: dict[tuple[int, int, int], list[Any]] = {}
        self._relabelled: dict[tuple[int, int, int], int] = {}
        self._targets: list[int] = []
        self._sources: list[int] = []
        self._current: dict[tuple[int, int, int], bool] = {}
        self._matching: dict[tuple[int, int], bool] = {}
        ids = range(1, scope.replicas + 1)
        is_small = scope.replicas <= 4
        self._orders = list(permutations(ids)) if is_small else [tuple(ids)]
        self._peers = tuple(Key(each, 1) for each in ids)

    # -- tables ----------------------------------------------------------------------------------

    def _number(self, table: list[Any], value: Any) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(table)
            table.append(value)
            if table is self.messages:
                self._targets.append(_id(value.target) - 1)
                self._sources.append(_id(value.source) - 1)
        return found

    def initial(self) -> State:
        """Return where everything begins."""
        scope = self.scope
        history, all_of = STARTS[scope.start](scope.replicas, scope.voters)
        numbers = [self._number(self.replicas, each) for each in all_of]
        return self.canonical((*numbers, self._number(self.histories, history)))

    def canonical(self, state: State) -> State:
        """Return the least of the states that differ by the names of replicas only."""
        if len(self._orders) == 1:
            return state
        return min(self._renamed(at, state) for at in range(len(self._orders)))

    def _renamed(self, order: int, state: State) -> State:
        count, names = self.scope.replicas, self._orders[order]
        found = [0] * count
        for at in range(count):
            found[names[at] - 1] = self._rename(order, 0, state[at])
        found.append(self._rename(order, 1, state[count]))
        messages = [self._rename(order, 2, each) for each in state[count + 1 :]]
        messages.sort()
        return (*found, *messages)

    def _rename(self, order: int, kind: int, number: int) -> int:
        if order == 0:
            return number
        key = (order, kind, number)
        found = self._relabelled.get(key)
        if found is None:
            table: list[Any] = (self.replicas, self.histories, self.messages)[kind]
            value = renamed(table[number], self._orders[order])
            found = self._relabelled[key] = self._number(table, value)
        return found

    # -- steps -----------------------------------------------------------------------------------

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield the possible next states, by name of the step. Errors: Violated."""
        count = self.scope.replicas
        network = state[count + 1 :]
        for number in network:
            message, at = self.messages[number], self._targets[number]
            rest = tuple(each for each in network if each != number)
            if len(network) >= self.scope.in_flight:
                yield "lost", self._with(state, at, state[at], state[count], rest)
            for step in self._steps(state[at], number, state[count]):
                for kept in (rest, network):
                    after = self._after(state, at, step, kept)
                    if after is not None:
                        yield type(message).__name__, after
        for at in range(count):
            for step in self._steps(state[at], -1, state[count]):
                after = self._after(state, at, step, network)
                if after is not None:
                    yield step[0], after

    def _after(self, state: State, at: int, step: Any, network: State) -> State | None:
        """Return the state after a replica's step; None if it does not fit into the scope."""
        _, replica, history, sent = step
        if sent is not None and sent not in network:
            if len(network) >= self.scope.in_flight:
                return None
            network = (*network, sent)
        if replica != state[at]:
            self._judge_logs(state, at, replica)
        return self._with(state, at, replica, history, network)

    def _with(self, state: State, at: int, replica: int, history: int, network: State) -> State:
        """Return the state with one replica, the history and the network replaced."""
        count = self.scope.replicas
        replicas = (*state[:at], replica, *state[at + 1 : count])
        current = [each for each in network if self._is_current(each, replicas)]
        return self.canonical((*replicas, history, *sorted(current)))

    def _is_current(self, number: int, replicas: State) -> bool:
        key = (number, replicas[self._targets[number]], replicas[self._sources[number]])
        found = self._current.get(key)
        if found is None:
            message = self.messages[number]
            receiver, sender = self.replicas[key[1]], self.replicas[key[2]]
            found = self._current[key] = _is_of_use(message, receiver, sender)
        return found

    def _judge_logs(self, state: State, at: int, replica: int) -> None:
        for other_at in range(self.scope.replicas):
            if other_at == at:
                continue
            pair = (replica, state[other_at])
            fits = self._matching.get(pair)
            if fits is None:
                one, other = self.replicas[pair[0]].log, self.replicas[pair[1]].log
                assert isinstance(one, Disk)
                assert isinstance(other, Disk)
                fits = self._matching[pair] = log_conflict(one, other) is None
            if not fits:
                raise Violated("LogMatching", self.replicas[pair[0]], self.replicas[pair[1]])

    # -- one replica -----------------------------------------------------------------------------

    def _steps(self, replica: int, message: int, history: int) -> list[Any]:
        """Return (name, replica, history, message sent or None) of its possible steps."""
        key = (replica, message, history)
        found = self._local.get(key)
        if found is None:
            found = self._local[key] = list(
                dict.fromkeys(self._numbered(replica, message, history))
            )
        return found

    def _numbered(self, replica: int, message: int, history: int) -> Iterator[Any]:
        r, h = self.replicas[replica], self.histories[history]
        found = self._heard(r, self.messages[message], h) if message >= 0 else self._own(r, h)
        for name, allowed, past, sent in found:
            after = self._plain(allowed)
            if after.epoch > self.scope.epochs or (after.role, after.leader < 0) == _ASTRAY:
                continue
            number = None if sent is None else self._number(self.messages, _short(sent))
            if (after, past, sent) == (r, h, None) and message < 0:
                continue
            now = self._number(self.replicas, after)
            yield name, now, self._number(self.histories, past), number

    def _plain(self, r: Replica) -> Replica:
        """Drop state without an effect: refusals, and fields that only pre-votes use."""
        if r.refused:
            r = r._replace(refused=frozenset())
        if self.scope.has_pre_votes:
            return r
        r = r._replace(has_ended=False)
        return rules.standing(r) if r.role == "prospective" else r._replace(has_fetched=False)

    def _heard(self, r: Replica, m: Message, h: History) -> Iterator[Any]:
        for step in rules.receive(r, m):
            yield (type(m).__name__, *self._done(r, step, h))

    def _own(self, r: Replica, h: History) -> Iterator[Any]:
        """Yield the steps of one replica without a message."""
        disk = r.log
        assert isinstance(disk, Disk)
        for step in rules.internal(r):
            yield (step.after.role, *self._done(r, step, h))
        for message in rules.requests(r, self._peers):
            if message.target != r.key.id:
                yield "send", r, h, message
        if disk.flushed < disk.last.offset:
            yield "flush", r._replace(log=disk._replace(flushed=disk.last.offset)), h, None
        scope = self.scope
        if h.appends < scope.appends and r.role == "leader":
            counted = h._replace(appends=h.appends + 1)
            yield ("append", *self._done(r, Step(r, None, Append()), counted))
        yield from self._misfortunes(r, disk, h)
        if h.changes < scope.changes and r.role == "leader":
            counted = h._replace(changes=h.changes + 1)
            for step in self._voter_changes(r):
                yield ("change", *self._done(r, step, counted))

    def _misfortunes(self, r: Replica, disk: Disk, h: History) -> Iterator[Any]:
        scope = self.scope
        if h.crashes < scope.crashes:
            past = h._replace(crashes=h.crashes + 1)
            for after in rules.restarted(r._replace(log=disk.after_power_loss())):
                yield "crash", after, past, None
        if h.wipes < scope.wipes:
            fresh = Replica(Key(r.key.id, int(r.key.directory or 0) + 1), Disk())
            yield "wipe", fresh, h._replace(wipes=h.wipes + 1), None
        if h.snapshots < scope.snapshots and r.watermark > disk.start:
            past = h._replace(snapshots=h.snapshots + 1)
            yield "snapshot", r._replace(log=disk.from_snapshot(r.watermark)), past, None

    def _voter_changes(self, r: Replica) -> Iterator[Step]:
        for each, _ in sorted(r.ends):
            if each not in r.log.voters and each.id not in {one.id for one in r.log.voters}:
                yield from rules.begin_change(r, r.log.voters | {each})
        for each in sorted(r.log.voters):
            yield from rules.begin_change(r, r.log.voters - {each})

    def _done(self, r: Replica, step: Step, h: History) -> tuple[Replica, History, Message | None]:
        """Carry a step out: change the log, fill the answer, judge, and remember."""
        after, answer, change = step
        disk = r.log
        assert isinstance(disk, Disk)
        if change is not None:
            after = after._replace(log=changed(disk, change, after.epoch, h.crashes))
            if isinstance(change, Install):
                after = rules.installed(after)
        h = judge_step(r, after, answer, h)
        if isinstance(answer, Fetched) and answer.diverging is None and answer.snapshot is None:
            records = disk.records_from(answer.asked.offset)[: self.scope.batch]
            answer = answer._replace(records=records)
        if isinstance(answer, FetchedSnapshot):
            answer = answer._replace(voters=disk.base_voters)
        return after, h, answer


_ASTRAY = ("unattached", False)
"""Addresses are never lost here: a replica that knows a leader follows it."""


def _id(replica: Key | int) -> int:
    return replica.id if isinstance(replica, Key) else replica


def _is_of_use(message: Message, receiver: Replica, sender: Replica) -> bool:
    """Return whether a message can still have an effect.

    An answer of an older epoch cannot. A request of an older epoch is answered with the newer one:
    that is news to a sender that is still there, and any other sends a request of its own.
    """
    if isinstance(message, Answer | Voted | Fetched | FetchedSnapshot):
        if isinstance(message, Answer) and message.epoch == receiver.epoch:
            return message.leader not in (NOBODY, receiver.leader)
        return message.epoch >= receiver.epoch
    return message.epoch >= min(receiver.epoch, sender.epoch)


def _short(message: Message) -> Message:
    """Return a message without fields that have no effect: of a refusal only the sender counts."""
    if isinstance(message, Voted) and not message.is_granted:
        return Answer(message.source, message.target, message.epoch, message.leader)
    return message


def renamed(value: Any, names: tuple[int, ...]) -> Any:
    """Return a value with every replica's id replaced: 1 by `names[0]`, and so on."""
    if isinstance(value, Key):
        return value._replace(id=names[value.id - 1])
    if isinstance(value, Point) or value is None:
        return value
    if hasattr(value, "_fields"):
        fields = zip(value._fields, value, strict=True)
        return type(value)(*(_renamed_field(name, each, names) for name, each in fields))
    if isinstance(value, tuple):
        return tuple(renamed(each, names) for each in value)
    if isinstance(value, frozenset):
        return frozenset(renamed(each, names) for each in value)
    return value


def _renamed_field(name: str, value: Any, names: tuple[int, ...]) -> Any:
    if name in ("source", "target", "leader") and isinstance(value, int):
        return names[value - 1] if value >= 1 else value
    if name in ("granted", "refused"):
        return frozenset(names[each - 1] for each in value)
    return renamed(value, names)
