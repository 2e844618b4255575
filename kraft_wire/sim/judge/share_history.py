"""What members of a share group were given, and what became of it (KIP-932).

C03: "acknowledging a record with accept" ends its deliveries. C04: each delivery "increments the
delivery count", up to the limit. C05: a record is acquired by one member until its lock ends. C06:
each committed record is delivered. Only answers of the leader count: a broker that was replaced and
does not know it gives out records from its old state, as in Kafka. An acknowledgement counts from
whomever it comes, for the share coordinator has written it.

Errors: `Violation`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kraft_wire.model import Uuid
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.network import SimConnection
from kraft_wire.sim.stage import Stage

__all__ = ["Delivery", "ShareHistory"]

_OVER: Final = "C03 AcceptedIsOver"
_COUNTED: Final = "C04 DeliveriesCount"
_HELD: Final = "C05 OneHolder"
_DELIVERED: Final = "C06 EverythingDelivered"
Key = tuple[Uuid, int, int]
"""Topic id, partition, offset."""


@dataclass(slots=True)
class Delivery:
    """One answer of a leader to one member."""

    node_id: int
    life: object
    """The leader's state of the partition: counts and locks that are not stored end with it."""
    member: int
    asked_us: int
    asked_ms: int
    """The same by the leader's clock."""
    told_us: int
    lock_ms: int
    connection: SimConnection | None


class _Told(NamedTuple):
    times: int
    by: Delivery


@dataclass(slots=True)
class ShareHistory:
    """The deliveries of one share group."""

    stage: Stage
    looked: Counter[str]
    limit: int
    _over: dict[Key, int] = field(default_factory=dict)
    """When it was known that a record is accepted or rejected."""
    _released: dict[Key, tuple[int, int]] = field(default_factory=dict)
    """The delivery count with which a record was released, and when that was known."""
    _told: dict[Key, _Told] = field(default_factory=dict)
    """The last delivery of a record."""
    _held: dict[Key, _Told] = field(default_factory=dict)
    lost: Counter[tuple[Uuid, int]] = field(default_factory=Counter)
    """Answers that may have had records of a partition, and that no member received."""

    def delivered(
        self, delivery: Delivery, truth: PartitionTruth, first: int, last: int, count: int
    ) -> None:
        """A member was given records of a partition, by its leader."""
        for invariant in (_OVER, _COUNTED, _HELD):
            self.looked[invariant] += 1
        node_id = delivery.node_id
        if last >= truth.end:
            raise Violation("S26 CommittedReadOnly", node_id, truth.name, last, "of", truth.end)
        if not 1 <= count <= self.limit:
            what = (truth.name, first, "delivered", count, "times of", self.limit)
            raise Violation(_COUNTED, node_id, *what)
        for offset in range(first, last + 1):
            key = (truth.topic_id, truth.number, offset)
            facts = (truth.name, offset, "to", delivery.member, "for the", count, "th time")
            if self._over.get(key, delivery.asked_us) < delivery.asked_us:
                raise Violation(_OVER, node_id, *facts)
            self._count(key, delivery, count, facts)
            held = self._held.get(key)
            if held is not None and self._is_locked(held.by, delivery):
                raise Violation(_HELD, node_id, *facts, "held by", held.by.member)
            self._held[key] = self._told[key] = _Told(count, delivery)

    def _count(self, key: Key, delivery: Delivery, count: int, facts: tuple[object, ...]) -> None:
        """Counts grow in one life of the leader's state, and from what was written on."""
        told = self._told.get(key)
        is_later = (
            told is not None
            and told.by.life is delivery.life
            and told.by.told_us < delivery.asked_us
        )
        if told is not None and is_later and count <= told.times:
            raise Violation(_COUNTED, delivery.node_id, *facts, "after", told.times)
        released, known_us = self._released.get(key, (0, 0))
        if known_us < delivery.asked_us and count <= released:
            raise Violation(_COUNTED, delivery.node_id, *facts, "released after", released)

    def _is_locked(self, held: Delivery, delivery: Delivery) -> bool:
        """Whether the former delivery's lock cannot have ended."""
        connection = held.connection
        if connection is None or held.life is not delivery.life or held.told_us > delivery.asked_us:
            return False
        is_whole = (
            self.stage.network.connections.get(connection.number) is connection
            and not connection.is_left_by_acceptor
            and not connection.is_left_by_dialler
        )
        now_ms = self.stage.machines[delivery.node_id].now_ms
        return is_whole and now_ms < held.asked_ms + held.lock_ms

    def acknowledges(self, member: int, keys: list[Key]) -> None:
        """A member is about to acknowledge records, or gives up what it has."""
        for key in keys:
            held = self._held.get(key)
            if held is not None and held.by.member == member:
                del self._held[key]

    def gave_up(self, member: int, node_id: int | None = None) -> None:
        """A member lost its session with a broker, or all of them, and with it all records."""
        for key, held in list(self._held.items()):
            if held.by.member == member and node_id in (None, held.by.node_id):
                del self._held[key]

    def finished(self, key: Key) -> None:
        """A record was accepted or rejected, and the member was told so."""
        self._over.setdefault(key, self.stage.now_us)

    def released(self, key: Key, count: int) -> None:
        """A record was released after so many deliveries, and the member was told so."""
        before, _ = self._released.get(key, (0, 0))
        self._released[key] = (max(before, count), self.stage.now_us)

    def why_undelivered(self, partitions: list[PartitionTruth]) -> str | None:
        """Return a record that no member received, None if there is none.

        Records of answers that were lost as often as a record is delivered at most may be given up.
        """
        self.looked[_DELIVERED] += 1
        for truth in partitions:
            place = (truth.topic_id, truth.number)
            if self.lost[place] >= self.limit:
                continue
            for offset in range(truth.end):
                key = (*place, offset)
                if key not in self._told and key not in self._over:
                    return f"{truth.name} {offset} of {truth.end} was delivered to no member"
        return None
