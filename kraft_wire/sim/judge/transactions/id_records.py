"""Records of `__transaction_state` as the judge reads them, and their allowed order.

T01 and T13: each record of an id is a step from the one before it that KIP-98, KIP-360 and KIP-890
allow. The rules are written here from the KIPs, not from the coordinator's code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.workload import AGED_EPOCH
from kraft_wire.wire.generated.transaction_log_key import TransactionLogKey
from kraft_wire.wire.generated.transaction_log_value import TransactionLogValue
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = [
    "ABORTED",
    "COMMITTED",
    "EMPTY",
    "ONGOING",
    "PREPARED",
    "IdFold",
    "IdRecord",
    "id_records",
    "why_forbidden",
]

EMPTY: Final = 0
ONGOING: Final = 1
_PREPARE_COMMIT: Final = 2
_PREPARE_ABORT: Final = 3
_COMPLETE_COMMIT: Final = 4
_COMPLETE_ABORT: Final = 5
PREPARED: Final = (_PREPARE_COMMIT, _PREPARE_ABORT)
COMMITTED: Final = (_PREPARE_COMMIT, _COMPLETE_COMMIT)
ABORTED: Final = (_PREPARE_ABORT, _COMPLETE_ABORT)
_AT_REST: Final = (EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT)
_MAY_FOLLOW: Final = {
    EMPTY: _AT_REST,
    ONGOING: (ONGOING, *_AT_REST),
    _PREPARE_COMMIT: (ONGOING,),
    _PREPARE_ABORT: (ONGOING, *_AT_REST),
    _COMPLETE_COMMIT: (_PREPARE_COMMIT,),
    _COMPLETE_ABORT: (_PREPARE_ABORT,),
}
"""State -> the states that it may follow."""
_LAST_EPOCH: Final = 32_766
_NO_TIME: Final = -1


@dataclass(frozen=True, slots=True)
class IdRecord:
    """The value of one record."""

    state: int
    producer: tuple[int, int]
    partitions: frozenset[tuple[str, int]]
    next_producer_id: int
    rules: int
    """ClientTransactionVersion."""
    timeout_ms: int
    start_ms: int

    @property
    def is_commit(self) -> bool:
        """Whether it decides for a commit, or completes one."""
        return self.state in COMMITTED


def id_records(batch: SeenBatch) -> Iterator[tuple[str, IdRecord | None]]:
    """Yield id and value of the records of a batch; no value: the id is removed."""
    if batch.is_control:
        return
    for record in RecordBatch(memoryview(batch.data)).records():
        key, value = record.key, record.value
        assert key is not None, batch.identity
        named, _ = TransactionLogKey.decode(memoryview(key), 0, 2)
        yield named.transactional_id, None if value is None else _record(bytes(value))


def _record(data: bytes) -> IdRecord:
    version = int.from_bytes(data[:2], "big")
    value, _ = TransactionLogValue.decode(memoryview(data), version, 2)
    partitions = frozenset(
        (topic.topic, number)
        for topic in value.transaction_partitions or ()
        for number in topic.partition_ids
    )
    return IdRecord(
        value.transaction_status,
        (value.producer_id, value.producer_epoch),
        partitions,
        value.next_producer_id,
        value.client_transaction_version,
        value.transaction_timeout_ms,
        value.transaction_start_timestamp_ms,
    )


def why_forbidden(before: IdRecord | None, after: IdRecord | None) -> str | None:
    """Return why one record of an id may not follow another one, None if it may."""
    if after is None:
        is_idle = before is not None and before.state in _AT_REST
        return None if is_idle else "removed"
    if before is None:
        is_first = after.producer[1] in (0, AGED_EPOCH)
        return None if after.state == EMPTY and is_first else "begins elsewhere"
    if before.state not in _MAY_FOLLOW.get(after.state, ()):
        return "state"
    if _has_other_start(before, after):
        return "start"
    if after.producer[0] != before.producer[0]:
        return _why_no_new_id(before, after)
    raised = after.producer[1] - before.producer[1]
    match after.state:
        case 0:
            allowed: tuple[int, ...] = (0, 1)
        case 1 | 4 | 5:
            allowed = (0,)
        case 2:
            allowed = (1,) if after.rules == 2 else (0,)
        case _:
            allowed = (1,) if after.rules == 2 or before.state != ONGOING else (0, 1)
    if raised not in allowed:
        return "epoch"
    return _why_other_partitions(before, after)


def _has_other_start(before: IdRecord, after: IdRecord) -> bool:
    """Whether the time is not that at which the transaction began; an id at rest has none."""
    if after.state == EMPTY:
        return after.start_ms != _NO_TIME
    begins = before.state in _AT_REST
    return after.start_ms < 0 if begins else after.start_ms != before.start_ms


def _why_no_new_id(before: IdRecord, after: IdRecord) -> str | None:
    """A new producer id: the epochs are exhausted, and the first one is 0."""
    is_exhausted = before.producer[1] >= _LAST_EPOCH
    if after.producer[1] != 0 or not is_exhausted:
        return "producer id"
    if after.state == EMPTY:
        return None
    is_reserved = before.next_producer_id == after.producer[0]
    is_completed = after.state in (_COMPLETE_COMMIT, _COMPLETE_ABORT)
    return None if is_completed and is_reserved else "rotation"


def _why_other_partitions(before: IdRecord, after: IdRecord) -> str | None:
    if after.state == ONGOING and before.state == ONGOING:
        return None if after.partitions >= before.partitions else "lost partitions"
    if after.state in PREPARED:
        wanted = before.partitions if before.state == ONGOING else frozenset()
        return None if after.partitions == wanted else "other partitions"
    return "has partitions" if after.state != ONGOING and after.partitions else None


class IdFold:
    """The newest record of each id in a part of one log."""

    def __init__(self) -> None:
        self.ids: dict[str, IdRecord] = {}
        self._seen: list[SeenBatch] = []

    def follow(self, batches: Sequence[SeenBatch], count: int) -> bool:
        """Read the first `count` batches; return whether any of them is new."""
        at = len(self._seen)
        is_same = at <= count and (
            at == 0 or (batches[0] is self._seen[0] and batches[at - 1] is self._seen[at - 1])
        )
        if not is_same:
            self.ids, self._seen, at = {}, [], 0
        for batch in batches[at:count]:
            self._seen.append(batch)
            for name, record in id_records(batch):
                if record is None:
                    self.ids.pop(name, None)
                else:
                    self.ids[name] = record
        return not is_same or at < count
