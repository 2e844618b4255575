"""Transactions that an Apache leader may leave in a log, the last of them still open.

Our brokers do not write these batches. A leader that takes over a log with them must keep its last
stable offset in front of the open transaction (KIP-98), however old that is.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.disk.file_nodes import DirectoryNode
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.scheduler import EPOCH_MS
from kraft_wire.sim.workload import AGED_EPOCH
from kraft_wire.wire.generated.transaction_log_key import TransactionLogKey
from kraft_wire.wire.generated.transaction_log_value import TransactionLogValue
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = ["aged_id", "append_to_last_segment", "transactions_of_another_leader"]

_ABORT: Final = 0
_COMMIT: Final = 1


def transactions_of_another_leader(
    offset: int, epoch: int, producer_id: int, draw: int, *, is_append_time: bool
) -> bytes:
    """Return a committed, an aborted and an open transaction, or only the last of them.

    They begin at an offset and have a leader epoch; their keys are those of other producers.
    """
    found = b""
    outcomes = (None,) if draw & 1 else (_COMMIT, _ABORT, None)
    for sequence, outcome in enumerate(outcomes):
        record = Record(
            key=b"k%d" % (draw % 3), value=b"transaction %d" % sequence, timestamp=EPOCH_MS
        )
        found += bytes(
            build_batch(
                [record],
                base_offset=offset,
                partition_leader_epoch=epoch,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
                log_append_time=EPOCH_MS if is_append_time else None,
            )
        )
        offset += 1
        if outcome is not None:
            found += _marker(offset, epoch, producer_id, outcome)
            offset += 1
    return found


def _marker(offset: int, epoch: int, producer_id: int, outcome: int) -> bytes:
    """Return the control batch that ends a transaction."""
    key, value = bytes([0, 0, 0, outcome]), bytes(6)
    return bytes(
        build_batch(
            [Record(key=key, value=value, timestamp=EPOCH_MS)],
            base_offset=offset,
            partition_leader_epoch=epoch,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )


def aged_id(offset: int, epoch: int, name: str, producer_id: int, timeout_ms: int) -> bytes:
    """Return the record of a transactional id whose producer's epochs are almost used up.

    It begins at an offset of `__transaction_state` and has a leader epoch.
    """
    value = TransactionLogValue(
        producer_id=producer_id,
        producer_epoch=AGED_EPOCH,
        transaction_timeout_ms=timeout_ms,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=EPOCH_MS,
        transaction_start_timestamp_ms=-1,
    )
    record = Record(
        key=bytes(2) + TransactionLogKey(transactional_id=name).encode(0),
        value=bytes(2) + value.encode(0),
        timestamp=EPOCH_MS,
    )
    return bytes(build_batch([record], base_offset=offset, partition_leader_epoch=epoch))


def append_to_last_segment(fs: SimFileSystem, directory: str, data: bytes) -> None:
    """Append batches to a log that no process has open, durably; do nothing without a log.

    Its process may have stopped cleanly, so that the next one trusts the indexes: they are removed,
    and built again from the log.
    """
    node = fs.look(directory)
    names = node.children if isinstance(node, DirectoryNode) else {}
    name = max((each for each in names if each.endswith(".log")), default=None)
    if name is None:
        return
    file = fs.open(f"{directory}/{name}")
    file.pwrite(data, file.size_bytes())
    file.fsync()
    file.close()
    stem = name.removesuffix(".log")
    for index in (f"{stem}.index", f"{stem}.timeindex"):
        if index in names:
            fs.unlink(f"{directory}/{index}")
