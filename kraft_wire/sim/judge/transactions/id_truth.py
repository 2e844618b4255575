"""The committed records of `__transaction_state`: the result of every transaction, in order.

T01: a transaction has one verdict, and its completion agrees. T12: a producer id belongs to one
transactional id. T13: each record may follow the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.judge.partition_truth import PartitionTruth, Truth
from kraft_wire.sim.judge.transactions.id_records import (
    EMPTY,
    ONGOING,
    PREPARED,
    IdRecord,
    id_records,
    why_forbidden,
)
from kraft_wire.sim.judge.violation import Violation

__all__ = ["IdTruth", "TransactionVerdict"]

_NEW_RULES: Final = 2
_OPEN: Final = (ONGOING, *PREPARED)


@dataclass(frozen=True, slots=True, eq=False)
class TransactionVerdict:
    """A committed Prepare record."""

    transactional_id: str
    producer_id: int
    data_epoch: int
    marker_epoch: int
    is_commit: bool
    is_legacy: bool
    instance: int
    """Which transaction of its id it ends, counted from the first."""
    event: int
    """In which event it was committed, as the judge counts."""
    partitions: frozenset[tuple[str, int]]
    truths: tuple[PartitionTruth, ...]
    """The partitions of these names that existed then."""


@dataclass(slots=True)
class IdTruth:
    """The committed records of all ids."""

    truth: Truth
    ids: dict[str, IdRecord] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    """The partition of each id."""
    verdicts: dict[int, list[TransactionVerdict]] = field(default_factory=dict)
    """By producer id, oldest first."""
    owners: dict[int, str] = field(default_factory=dict)
    """Producer id -> transactional id."""
    instances: dict[str, int] = field(default_factory=dict)
    membership: dict[tuple[int, int], dict[tuple[str, int], int]] = field(default_factory=dict)
    """Producer id and epoch -> partitions, and the newest transaction that they joined."""
    floors: dict[int, int] = field(default_factory=dict)
    """Producer id -> the epoch below which everything is over."""
    completed: list[TransactionVerdict] = field(default_factory=list)
    """Just completed, for the check that all markers are written."""
    expired: int = 0
    """How many ids were removed."""
    exhausted: int = 0
    """How many producers have used up their epochs."""
    event: int = 0

    def committed(self, node_id: int, number: int, batch: SeenBatch) -> None:
        """Take a committed batch of a partition of `__transaction_state`."""
        for name, record in id_records(batch):
            before = self.ids.get(name)
            why = why_forbidden(before, record)
            if why is not None:
                raise Violation("T13 MemoryIsTheLog", node_id, name, why, before, "->", record)
            if record is None:
                self.expired += 1
                del self.ids[name]
                continue
            self.ids[name], self.places[name] = record, number
            self._note(node_id, name, before, record)

    def _note(self, node_id: int, name: str, before: IdRecord | None, record: IdRecord) -> None:
        producer_id, epoch = record.producer
        for each in (producer_id, record.next_producer_id):
            owner = self.owners.setdefault(each, name) if each >= 0 else name
            if owner != name:
                raise Violation("T12 Identity", node_id, "producer id", each, owner, name)
        was_open = before is not None and before.state in _OPEN
        if record.state in _OPEN and not was_open:
            self.instances[name] = self.instances.get(name, 0) + 1
        if record.state == ONGOING:
            joined = self.membership.setdefault(record.producer, {})
            joined.update(dict.fromkeys(record.partitions, self.instances[name]))
        elif record.state in PREPARED:
            assert before is not None, name
            self._decided(node_id, name, before, record)
        else:
            if before is not None and before.producer[0] != producer_id:
                self.floors[before.producer[0]] = 1 << 15
                self.exhausted += 1
            self.floors[producer_id] = epoch
            if record.state != EMPTY:
                assert before is not None, name
                self.completed.append(self.verdicts[before.producer[0]][-1])

    def _decided(self, node_id: int, name: str, before: IdRecord, record: IdRecord) -> None:
        producer_id, marker_epoch = record.producer
        known = self.verdicts.setdefault(producer_id, [])
        is_legacy = record.rules != _NEW_RULES
        data_epoch = before.producer[1]
        if known and known[-1].data_epoch == data_epoch and not known[-1].is_legacy:
            raise Violation("T01 OneVerdict", node_id, name, known[-1], record)
        truths = tuple(
            each
            for topic, number in sorted(record.partitions)
            for each in self.truth.of_topic(topic)
            if each.number == number
        )
        known.append(
            TransactionVerdict(
                name,
                producer_id,
                data_epoch,
                marker_epoch,
                record.is_commit,
                is_legacy,
                self.instances[name],
                self.event,
                record.partitions,
                truths,
            )
        )

    def verdict_of(self, producer: tuple[int, int]) -> TransactionVerdict | None:
        """Return the newest verdict about data of a producer id and epoch."""
        found = self.verdicts.get(producer[0], ())
        return next((each for each in reversed(found) if each.data_epoch == producer[1]), None)

    def is_current(self, name: str, producer: tuple[int, int]) -> bool:
        """Return whether a producer id and epoch are those of the newest record of an id."""
        record = self.ids.get(name)
        return record is not None and record.producer == producer
