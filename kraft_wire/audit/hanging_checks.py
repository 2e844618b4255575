"""`hanging`: a transaction that is open in a partition is one that its coordinator will end.

The newest records of `__transaction_state` decide, if a directory holds them. A transaction hangs
if no transactional id has it, or if its id does not have the partition: no marker will come, and
read_committed readers stop before it (`kraft-wire transactions abort` ends it). Data may be newer
than the records that were read, so only data older than the maximum transaction timeout counts. A
transaction that the coordinator knows is a note, once its timeout has passed: it ends as soon as a
broker coordinates it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kraft_wire.audit.finding import Finding
from kraft_wire.audit.transaction_checks import OpenTransaction

__all__ = ["CoordinatedTransaction", "check_hanging"]

TIMEOUT_MS_MAX: Final = 900_000
"""Kafka's default of `transaction.max.timeout.ms`."""


@dataclass(frozen=True, slots=True)
class CoordinatedTransaction:
    """The newest record of a transactional id."""

    transactional_id: str
    state: str
    partitions: frozenset[tuple[str, int]]
    start_ms: int
    timeout_ms: int


def check_hanging(
    opened: Iterable[OpenTransaction],
    coordinated: Mapping[int, CoordinatedTransaction],
    wall_ms: int,
) -> Iterator[Finding]:
    """Yield a finding for each open transaction that hangs, or is overdue; by producer id."""
    for each in opened:
        known = coordinated.get(each.producer_id)
        place = (each.node, each.topic, each.partition, each.first_offset, each.file, each.position)
        producer = f"producer {each.producer_id} epoch {each.producer_epoch}"
        if known is None or (each.topic, each.partition) not in known.partitions:
            if wall_ms - each.last_timestamp > TIMEOUT_MS_MAX:
                owner = "no transactional id" if known is None else known.transactional_id
                detail = f"open transaction of {producer}, whose {owner} lacks this partition"
                if known is None:
                    detail = f"open transaction of {producer}, which belongs to no transactional id"
                yield Finding("hanging", "warn", *place, detail)
        elif wall_ms - known.start_ms > known.timeout_ms:
            detail = f"open transaction of {known.transactional_id} ({known.state}), {producer}"
            yield Finding("hanging", "info", *place, f"{detail}, is older than its timeout")
