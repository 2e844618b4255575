"""Find in a history what a log with transactions must never show.

The names are those of Jepsen's queue checker. Nothing of the broker's own accounts is used: values
are known to their transactions, and readers tell offsets.

| anomaly | what was seen |
|---|---|
| aborted-read (G1a) | a value of an aborted transaction |
| precommitted-read | a value before its producer asked for the commit |
| circular-flow (G1c) | committed transactions that each read what the next one wrote, in a circle |
| lost-write | a committed value that nobody ever sees, although later ones are seen there |
| unseen | a committed value that the last reader does not see, behind all that it sees |
| torn | a transaction of unknown outcome of which only a part is seen |
| duplicate | a value at two places |
| inconsistent-offsets | two values at one offset |
| moved-twice | an input whose offset two committed transactions of a group have passed |
| unmoved | an input that a group has passed by without any transaction's having moved it |
| nonmonotonic-send | a producer's records of a partition in another order |
| nonmonotonic-poll | a consumer's position that goes back without a reason |
| poll-skip | a consumer that passes over a value that is there |

Write cycles (G0) are allowed: producers interleave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from tests.histories.history import History, Outcome, Poll, Seen, Transaction

__all__ = ["Anomaly", "find_anomalies"]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One, with the evidence."""

    kind: str
    detail: str


class _Facts:
    """What follows from a history and several checks need."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.writer: dict[str, Transaction] = {
            sent.value: each for each in history.transactions for sent in each.sent
        }
        self.seen: list[Seen] = [
            *(seen for polls in history.polls.values() for poll in polls for seen in poll.records),
            *(seen for each in history.transactions for seen in each.moved),
            *history.final,
        ]
        self.at: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.places: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for seen in self.seen:
            self.at[seen.partition, seen.offset].add(seen.value)
            self.places[seen.value].add((seen.partition, seen.offset))
        self.of_partition: dict[str, list[int]] = defaultdict(list)
        for partition, offset in sorted(self.at):
            self.of_partition[partition].append(offset)

    def with_outcome(self, outcome: Outcome) -> Iterator[Transaction]:
        """Transactions that ended so."""
        return (each for each in self.history.transactions if each.outcome is outcome)


def find_anomalies(history: History) -> list[Anomaly]:
    """All of them; the empty list where the history is as it must be."""
    facts = _Facts(history)
    return [
        Anomaly(kind, detail) for kind, check in _CHECKS.items() for detail in sorted(check(facts))
    ]


def _aborted_reads(facts: _Facts) -> Iterator[str]:
    for each in facts.with_outcome(Outcome.ABORTED):
        for sent in each.sent:
            for place in facts.places.get(sent.value, ()):
                yield f"{sent.value} of {each.name} at {place}"


def _precommitted_reads(facts: _Facts) -> Iterator[str]:
    for name, polls in facts.history.polls.items():
        for poll in polls:
            for seen in poll.records:
                writer = facts.writer.get(seen.value)
                if writer and writer.outcome is not Outcome.ABORTED and poll.at < writer.ending_at:
                    yield f"{name} sees {seen.value} before {writer.name} is committed"


def _circular_flow(facts: _Facts) -> Iterator[str]:
    readers: dict[str, set[str]] = defaultdict(set)
    for each in facts.history.transactions:
        if each.outcome is not Outcome.ABORTED:
            for seen in each.moved:
                writer = facts.writer.get(seen.value)
                if writer is not None:
                    readers[writer.name].add(each.name)
    for circle in _circles(readers):
        yield " -> ".join(circle)


def _circles(following: dict[str, set[str]]) -> Iterator[list[str]]:
    """One circle for each transaction at which a walk in depth comes back to itself."""
    done: set[str] = set()
    for start in sorted(following):
        path: list[str] = []
        on_path: set[str] = set()
        waiting: list[tuple[str, bool]] = [(start, False)]
        while waiting:
            name, is_left = waiting.pop()
            if is_left:
                on_path.discard(path.pop())
                done.add(name)
            elif name in on_path:
                yield [*path[path.index(name) :], name]
            elif name not in done:
                path.append(name)
                on_path.add(name)
                waiting.append((name, True))
                waiting += [(each, False) for each in sorted(following.get(name, ()))]


def _lost_writes(facts: _Facts) -> Iterator[str]:
    for value, partition, is_behind in _missing(facts):
        if not is_behind:
            yield f"{value} of {facts.writer[value].name} in {partition}"


def _unseen(facts: _Facts) -> Iterator[str]:
    for value, partition, is_behind in _missing(facts):
        if is_behind:
            yield f"{value} of {facts.writer[value].name} in {partition}"


def _missing(facts: _Facts) -> Iterator[tuple[str, str, bool]]:
    """Committed values that the last reader lacks, and whether they lie behind all that it has."""
    last: dict[str, int] = defaultdict(lambda: -1)
    found = set()
    for seen in facts.history.final:
        last[seen.partition] = max(last[seen.partition], seen.offset)
        found.add(seen.value)
    for each in facts.with_outcome(Outcome.COMMITTED):
        for sent in each.sent:
            if sent.value not in found:
                is_behind = sent.offset is not None and sent.offset > last[sent.partition]
                yield sent.value, sent.partition, is_behind


def _torn(facts: _Facts) -> Iterator[str]:
    found = {seen.value for seen in facts.history.final}
    for each in facts.with_outcome(Outcome.UNKNOWN):
        there = [sent.value in found for sent in each.sent if sent.offset is not None]
        if any(there) and not all(there):
            yield f"{each.name}: {sum(there)} of {len(there)} acknowledged records are there"


def _duplicates(facts: _Facts) -> Iterator[str]:
    for value, places in facts.places.items():
        if len(places) > 1:
            yield f"{value} at {sorted(places)}"


def _inconsistent_offsets(facts: _Facts) -> Iterator[str]:
    told = {place: set(values) for place, values in facts.at.items()}
    for each in facts.history.transactions:
        for sent in each.sent:
            if sent.offset is not None and (sent.partition, sent.offset) in told:
                told[sent.partition, sent.offset].add(sent.value)
    for place, values in told.items():
        if len(values) > 1:
            yield f"{place} has {sorted(values)}"


def _moved_twice(facts: _Facts) -> Iterator[str]:
    movers: dict[str, list[str]] = defaultdict(list)
    for each in facts.with_outcome(Outcome.COMMITTED):
        for seen in each.moved:
            movers[seen.value].append(each.name)
    for value, names in movers.items():
        if len(names) > 1:
            yield f"{value} by {names}"


def _unmoved(facts: _Facts) -> Iterator[str]:
    """Whatever became of a transaction of unknown outcome, it may have moved its inputs."""
    passed: dict[str, int] = {}
    moved: set[str] = set()
    for each in facts.history.transactions:
        if each.outcome is not Outcome.ABORTED:
            moved |= {seen.value for seen in each.moved}
        if each.outcome is Outcome.COMMITTED:
            for seen in each.moved:
                passed[seen.partition] = max(seen.offset, passed.get(seen.partition, -1))
    for seen in facts.history.final:
        if seen.offset < passed.get(seen.partition, -1) and seen.value not in moved:
            yield f"{seen.value} at {seen.offset} of {seen.partition}"


def _nonmonotonic_sends(facts: _Facts) -> Iterator[str]:
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for each in facts.history.transactions:
        for sent in each.sent:
            if sent.offset is None:
                continue
            before = last.get((each.producer, sent.partition))
            if before is not None and sent.offset <= before[0]:
                yield f"{each.producer} in {sent.partition}: {sent.value} before {before[1]}"
            last[each.producer, sent.partition] = (sent.offset, sent.value)


def _steps(polls: Iterable[Poll]) -> Iterator[tuple[Seen, Seen]]:
    """Each record beside the one before it in its partition, where nothing moved the consumer."""
    before: dict[str, Seen] = {}
    for poll in polls:
        if poll.is_anew:
            before.clear()
        for seen in poll.records:
            if seen.partition in before:
                yield before[seen.partition], seen
            before[seen.partition] = seen


def _nonmonotonic_polls(facts: _Facts) -> Iterator[str]:
    for name, polls in facts.history.polls.items():
        for before, seen in _steps(polls):
            if seen.offset <= before.offset:
                yield f"{name}: {seen} after {before}"


def _poll_skips(facts: _Facts) -> Iterator[str]:
    following: dict[tuple[str, int], int] = {}
    for partition, offsets in facts.of_partition.items():
        for offset, after in pairwise(offsets):
            following[partition, offset] = after
    for name, polls in facts.history.polls.items():
        for before, seen in _steps(polls):
            due = following.get((before.partition, before.offset))
            if due is not None and due < seen.offset:
                yield f"{name}: {seen.partition} from {before.offset} to {seen.offset}, not {due}"


_CHECKS: dict[str, Callable[[_Facts], Iterator[str]]] = {
    "aborted-read": _aborted_reads,
    "precommitted-read": _precommitted_reads,
    "circular-flow": _circular_flow,
    "lost-write": _lost_writes,
    "unseen": _unseen,
    "torn": _torn,
    "duplicate": _duplicates,
    "inconsistent-offsets": _inconsistent_offsets,
    "moved-twice": _moved_twice,
    "unmoved": _unmoved,
    "nonmonotonic-send": _nonmonotonic_sends,
    "nonmonotonic-poll": _nonmonotonic_polls,
    "poll-skip": _poll_skips,
}
