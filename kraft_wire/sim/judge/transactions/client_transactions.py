"""One transaction as its client knows it: its requests and their answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kraft_wire.sim.judge.partition_truth import GroupPartition, PartitionTruth

__all__ = ["ClientTransaction", "Value", "value_of", "value_to_bytes"]

_VALUE: Final = re.compile(rb"x(\d+)-(\d+)-(\d+)(?:@(\d+))?")


class Value(NamedTuple):
    """The fields of a record's value."""

    client: int
    transaction: int
    number: int
    """Of the record in its transaction."""
    source: int | None = None
    """The offset that it was made from, of a loop that reads, transforms and writes."""


def value_to_bytes(value: Value) -> bytes:
    """Return the unique bytes of a value."""
    text = b"x%d-%d-%d" % value[:3]
    return text if value.source is None else text + b"@%d" % value.source


def value_of(data: bytes | None) -> Value | None:
    """Read a value; None if no transactional client has written it."""
    found = None if data is None else _VALUE.fullmatch(data)
    if found is None:
        return None
    client, transaction, number, source = found.groups()
    made_from = None if source is None else int(source)
    return Value(int(client), int(transaction), int(number), made_from)


@dataclass(slots=True, eq=False)
class ClientTransaction:
    """One transaction of one client."""

    client: int
    number: int
    transactional_id: str
    producer: tuple[int, int]
    """Producer id and epoch of its data."""
    is_legacy: bool
    """Whether it is ended by the rules of `transaction.version` 0 and 1."""
    sent: dict[int, PartitionTruth] = field(default_factory=dict)
    """Number of each record, and where it was sent."""
    acked: dict[int, int] = field(default_factory=dict)
    """Number of each record that was acknowledged, and its offset."""
    offsets: list[tuple[GroupPartition, int, str]] = field(default_factory=list)
    """Offsets that were acknowledged as part of it, with their notes."""
    has_unknown: bool = False
    """Whether a request was sent whose result is unknown."""
    asked: bool | None = None
    """The result that the client requested: commit, abort, or none yet."""
    told: bool | None = None
    """The result that the client got, None if it never got one."""

    @property
    def name(self) -> str:
        """How it is called."""
        return f"{self.transactional_id} {self.client}-{self.number} {self.producer}"
