"""The requests and answers of clients, and whether they are consistent.

Every written value is unique, so that an answer can be found in the log. Judged at each answer: an
acknowledged write is committed (S10), and writes that followed one another in real time do so in
the log; a read shows a committed value, and never an older one than the same process showed before;
no producer id is given twice. At the end each register's history is searched for an order that
explains it (`linearizable`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from kraft_wire.sim.judge.ledger import Ledger, Register
from kraft_wire.sim.judge.linearizable import Call, find_order
from kraft_wire.sim.judge.violation import Violation

__all__ = ["History", "Operation"]


@dataclass(slots=True, eq=False)
class Operation:
    """One request of a client."""

    client: int
    kind: str
    """"write", "read" or "producer-id"."""
    register: Register
    value: str | None
    """The value written or read."""
    node_id: int
    life: tuple[int, int] = (0, 0)
    """The process that served it."""
    served: int = 0
    """Which response to the client it was, counted from the first."""
    invoked_us: int = 0
    returned_us: int | None = None
    outcome: str = "open"
    """"ok", "failed" (certainly nothing happened), "unknown" or "open"."""
    is_current: bool = False
    """Of a read: whether the newest leader answered it, having applied all before its epoch."""


@dataclass(slots=True)
class History:
    """All operations of one run."""

    ledger: Ledger
    operations: list[Operation] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    _returned_us: list[int] = field(default_factory=list)
    _highest: list[int] = field(default_factory=list)
    """The highest offset acknowledged until then."""
    _shown: dict[tuple[tuple[int, int], Register], list[tuple[int, int]]] = field(
        default_factory=dict
    )
    """By process and register: (when it was served, place of the value in the log), in order."""
    _producer_ids: dict[int, int] = field(default_factory=dict)

    def invoked(self, operation: Operation) -> None:
        """A client has asked."""
        self.operations.append(operation)

    def returned(self, operation: Operation, now_us: int, outcome: str) -> None:
        """A client was answered, or gave up: judge it."""
        operation.returned_us = now_us
        operation.outcome = outcome
        name = f"{operation.kind} {outcome}"
        self.counts[name] = self.counts.get(name, 0) + 1
        if outcome != "ok":
            return
        if operation.kind == "write":
            self._written(operation, now_us)
        elif operation.kind == "read":
            self._read(operation)
        elif operation.value is not None:
            number = int(operation.value)
            if number in self._producer_ids:
                raise Violation("S10 AckedIsCommitted", operation.node_id, number, "given twice")
            self._producer_ids[number] = operation.client

    def _written(self, operation: Operation, now_us: int) -> None:
        offsets = self.ledger.offsets.get((operation.register, operation.value), [])
        if not offsets:
            facts = (operation.register, operation.value, "is acknowledged and not committed")
            raise Violation("S10 AckedIsCommitted", operation.node_id, *facts)
        at = bisect_left(self._returned_us, operation.invoked_us) - 1
        if at >= 0 and self._highest[at] > offsets[-1]:
            order = (offsets[-1], "after", self._highest[at])
            raise Violation("S10 LogOrder", operation.node_id, operation.register, *order)
        self._returned_us.append(now_us)
        self._highest.append(max(offsets[0], self._highest[-1] if self._highest else -1))

    def _read(self, operation: Operation) -> None:
        place = -1
        if operation.value is not None:
            offsets = self.ledger.offsets.get((operation.register, operation.value), [])
            if not offsets:
                facts = (operation.register, operation.value, "is shown and not committed")
                raise Violation("S26 CommittedReadOnly", operation.node_id, *facts)
            place = offsets[-1]
        shown = self._shown.setdefault((operation.life, operation.register), [])
        at = bisect_left(shown, (operation.served, place))
        shown.insert(at, (operation.served, place))
        around = [each[1] for each in shown[max(0, at - 1) : at + 2]]
        if around != sorted(around):
            raise Violation("S26 MonotoneReads", operation.node_id, operation.register, shown)

    def judge_registers(self) -> int:
        """Search an order for each register; return how many histories were explained."""
        by_register: dict[Register, list[Operation]] = {}
        for operation in self.operations:
            if operation.kind == "write" or (operation.kind == "read" and operation.is_current):
                by_register.setdefault(operation.register, []).append(operation)
        for register, operations in by_register.items():
            seen = {each.value for each in operations if each.kind == "read"}
            calls = [_call(each) for each in operations if _matters(each, seen)]
            if find_order(calls) is None:
                raise Violation("S10 Linearizable", 0, register, calls)
        return len(by_register)


def _matters(operation: Operation, seen: set[str | None]) -> bool:
    """Return whether an order must have the operation: an unobserved write is optional."""
    if operation.outcome == "ok":
        return True
    return operation.kind == "write" and operation.outcome != "failed" and operation.value in seen


def _call(operation: Operation) -> Call:
    end_us = operation.returned_us if operation.outcome == "ok" else None
    return Call(operation.invoked_us, end_us, operation.kind == "write", operation.value)
