"""Crashed runs with transactions: markers, `.txnindex`, producer snapshots, `__transaction_state`.

Two producers have transactions open at once, so that an abort's index entry names another last
stable offset than its own; rolls, truncation, compaction and clean stops come between. `harness`
judges the runs.
"""

from typing import Final

from kraft_wire.broker.transactions.records import transaction_record, transaction_tombstone
from kraft_wire.broker.transactions.states import TransactionState
from kraft_wire.broker.transactions.transactional_id import TransactionMetadata
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.sim.crash.harness import Harness, LogScenario
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.directory.log_directory import note_compaction
from kraft_wire.storage.log_config import LogConfig

__all__ = ["TRANSACTION_SCENARIOS"]

_COMMITTED: Final = True
_ABORTED: Final = False


def _transactional(harness: Harness, producer_id: int, *sizes: int, key: bytes = b"k") -> None:
    harness.append(list(sizes), producer_id=producer_id, key=key, is_transactional=True)


def _end_and_roll(harness: Harness) -> None:
    _transactional(harness, 5, 300, 90)
    harness.flush()
    _transactional(harness, 6, 500)
    harness.end(5, commit=_ABORTED)
    harness.flush()
    _transactional(harness, 5, 700)
    harness.end(6, commit=_ABORTED)
    harness.append([200])
    harness.flush()
    harness.directory.checkpoint()
    harness.end(5, commit=_COMMITTED)
    _transactional(harness, 6, 900)
    harness.flush()
    harness.stop_cleanly_and_start()
    harness.end(6, commit=_ABORTED)
    harness.flush()
    harness.restart()
    _transactional(harness, 5, 60)
    harness.flush()


def _truncate(harness: Harness) -> None:
    _transactional(harness, 5, 500)
    harness.end(5, commit=_ABORTED)
    _transactional(harness, 6, 700, 60)
    harness.flush()
    harness.end(6, commit=_ABORTED)
    _transactional(harness, 5, 400)
    harness.flush()
    harness.directory.checkpoint()
    harness.truncate(4)
    harness.epoch = 3
    harness.end(6, commit=_COMMITTED)
    harness.flush()
    _transactional(harness, 5, 640)
    harness.truncate(1)
    harness.epoch = 4
    harness.end(5, commit=_ABORTED)
    harness.flush()


def _compact(harness: Harness) -> None:
    for key, producer_id, commit in (
        *((b"a", 5, _COMMITTED), (b"b", 6, _ABORTED), (b"a", 5, _ABORTED)),
        *((b"b", 6, _COMMITTED), (b"a", 6, _COMMITTED), (b"c", 5, _ABORTED)),
    ):
        _transactional(harness, producer_id, 280, key=key)
        harness.flush()
        harness.end(producer_id, commit=commit)
        harness.flush()
    _clean(harness)
    _transactional(harness, 5, 120, key=b"d")
    harness.end(5, commit=_COMMITTED)
    harness.flush()
    _clean(harness)


def _clean(harness: Harness) -> None:
    """Compact all but the active segment, and note it as the node does."""
    log = harness.log
    log.roll(1)
    log.update_high_watermark(log.log_end_offset)
    dirty = harness.directory.cleaner_offsets.get(harness.log.topic_partition, Offset(0))
    note_compaction(harness.directory, log.topic_partition, dirty)
    result = compact(harness.fs, log, dirty, 5_000)
    harness.directory.cleaner_offsets[log.topic_partition] = result.next_dirty_offset
    harness.directory.checkpoint()


def _coordinate(harness: Harness) -> None:
    """Write the states of two transactional ids as a coordinator does, and compact them."""
    partitions: dict[TopicPartition, None] = {TopicPartition("t", 0): None}
    states = (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.COMPLETE_COMMIT,
    )
    for epoch in range(3):
        for state in states:
            for name in ("one", "two"):
                is_open = state in (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT)
                metadata = TransactionMetadata(
                    producer_id=7,
                    producer_epoch=epoch,
                    state=state,
                    partitions=dict(partitions) if is_open else {},
                    timeout_ms=1_000,
                )
                harness.write(*transaction_record(name, metadata, 2))
            harness.flush()
        _clean(harness)
    harness.write(*transaction_tombstone("one"))
    harness.flush()
    harness.restart()
    _clean(harness)


_SMALL: Final = LogConfig(flush_messages=1, segment_bytes=1400, index_interval_bytes=300)
_COMPACTED: Final = LogConfig(
    flush_messages=1, segment_bytes=800, cleanup_policy=("compact",), delete_retention_ms=0
)

TRANSACTION_SCENARIOS: Final = [
    LogScenario("transactions ended and rolled", _SMALL, _end_and_roll),
    LogScenario("transactions truncated", _SMALL, _truncate),
    LogScenario("transactions compacted", _COMPACTED, _compact, is_keyed=True),
    LogScenario("states of transactional ids", _COMPACTED, _coordinate, is_keyed=True),
]
