"""Changes of transactional ids by time: open transactions time out, idle ids are removed."""

from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.transactions.fencing import abort_open_transaction
from kraft_wire.broker.transactions.open_shard import OpenShard
from kraft_wire.broker.transactions.records import transaction_tombstone
from kraft_wire.broker.transactions.states import CAN_EXPIRE, TransactionState
from kraft_wire.broker.transactions.transactional_id import TransactionalId
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["abort_timed_out", "remove_expired"]

_NEVER_MS: Final = (1 << 31) - 1
"""The timeout of a two-phase commit (KIP-939), which another coordinator may have logged."""
_BATCH_BYTES: Final = 64 << 10


def abort_timed_out(shard: OpenShard, at: ClockReading) -> None:
    """Abort open transactions that are older than their timeout (KIP-98)."""
    for name in list(shard.ongoing):
        entry = shard.ids[name]
        metadata = entry.metadata
        is_late = metadata.start_ms + metadata.timeout_ms < at.wall_ms
        if is_late and metadata.timeout_ms != _NEVER_MS and entry.pending is None:
            shard.env.report(
                "transaction_timed_out", transactional_id=name, producer_id=metadata.producer_id
            )
            abort_open_transaction(shard, entry, at, _no_answer)


def remove_expired(shard: OpenShard, at: ClockReading) -> None:
    """Write tombstones for ids without an open transaction that are idle for too long."""
    oldest_ms = at.wall_ms - shard.env.settings().transactional_id_expiration_ms
    batch: list[TransactionalId] = []
    tombstones: list[CoordinatorRecord] = []
    size_bytes = 0
    for entry in list(shard.ids.values()):
        metadata = entry.metadata
        can_expire = entry.pending is None and metadata.state in CAN_EXPIRE
        if not can_expire or metadata.last_update_ms > oldest_ms:
            continue
        tombstone = transaction_tombstone(entry.name)
        if size_bytes + len(tombstone.key) > _BATCH_BYTES and batch:
            _remove(shard, batch, tombstones, at)
            batch, tombstones, size_bytes = [], [], 0
        batch.append(entry)
        tombstones.append(tombstone)
        size_bytes += len(tombstone.key)
    if batch:
        _remove(shard, batch, tombstones, at)


def _remove(
    shard: OpenShard,
    batch: list[TransactionalId],
    tombstones: list[CoordinatorRecord],
    at: ClockReading,
) -> None:
    """Write one batch of tombstones; the ids are removed once it is committed."""
    appended = shard.log.append_for_later(tombstones, at)
    if appended.error is not ErrorCode.NONE:
        return
    for entry in batch:
        entry.pending = TransactionState.DEAD
    if appended.safe_at is None:
        _removed(shard, batch)
    else:
        _await_removal(shard, batch, appended.safe_at, at)


def _await_removal(
    shard: OpenShard, batch: list[TransactionalId], safe_at: int, at: ClockReading
) -> None:
    def on_committed(error: ErrorCode, then: ClockReading) -> None:
        if shard.is_released or error is ErrorCode.NOT_COORDINATOR:
            return
        if error is ErrorCode.NONE or shard.log.high_watermark() >= safe_at:
            _removed(shard, batch)
        else:
            _await_removal(shard, batch, safe_at, then)

    shard.log.await_commit(safe_at, at, on_committed)


def _removed(shard: OpenShard, batch: list[TransactionalId]) -> None:
    for entry in batch:
        assert shard.ids[entry.name] is entry, entry.name
        del shard.ids[entry.name]


def _no_answer(error: ErrorCode, at: ClockReading) -> None:
    """No client waits for a timeout; the next scan tries again."""
