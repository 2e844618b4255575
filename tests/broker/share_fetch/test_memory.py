"""What a record in flight takes of memory: bounded, and given back."""

import gc
import tracemalloc

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_fetch.acknowledge import Acknowledgement, acknowledge
from kraft_wire.broker.share_fetch.acquire import Fetched, acquire
from kraft_wire.broker.share_fetch.locks import Locks
from kraft_wire.broker.share_fetch.log_batches import LogBatch
from kraft_wire.broker.share_fetch.share_partition import (
    Outcome,
    ShareEnvironment,
    SharePartition,
)
from kraft_wire.broker.share_fetch.share_settings import ShareGroupSettings
from kraft_wire.model import LeaderEpoch
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.share_fetch.recording_persister import RecordingPersister
from tests.broker.share_fetch.sharing import key_of

RECORDS = 2_000
BYTES_PER_RECORD = 900
"""As `in_flight` states it, for a record with a state and a lock of its own."""
AT = ClockReading(1_000, 0)


def loaded() -> SharePartition:
    """A share partition that begins at 0, with the default limit of records in flight."""
    persister, locks, settings = RecordingPersister(), Locks(), ShareGroupSettings()
    persister.start(key_of(), 0)
    env = ShareEnvironment(
        persister,
        locks,
        lambda group: settings,
        lambda changed: None,
        lambda asked, at: ErrorCode.OFFSET_NOT_AVAILABLE,
    )
    partition = SharePartition(key_of(), LeaderEpoch(0), env)
    partition.load(AT, lambda outcome, at: None)
    return partition


def acquire_all(partition: SharePartition, batch_records: int) -> None:
    """Acquire as many records as may be in flight, one by one as their states go."""
    firsts = range(0, RECORDS, batch_records)
    batches = [LogBatch(first, first + batch_records - 1, 70) for first in firsts]
    fetched = Fetched("m", False, batch_records, RECORDS, 0, batches)
    assert acquire(partition, fetched, AT).records_count == RECORDS
    for batch in list(partition.in_flight):
        batch.split()


def measured(batch_records: int) -> float:
    """The bytes of each record with a state and a lock of its own."""
    partition = loaded()
    gc.collect()
    tracemalloc.start()
    acquire_all(partition, batch_records)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert partition.in_flight_count == RECORDS
    return used / RECORDS


def test_record_in_flight_takes_no_more_than_is_stated() -> None:
    """In one batch of the log, and in batches of one record."""
    assert measured(RECORDS) < BYTES_PER_RECORD
    assert measured(1) < BYTES_PER_RECORD


def test_memory_of_acknowledged_records_is_given_back() -> None:
    partition = loaded()
    acquire_all(partition, 10)
    results: list[Outcome] = []
    everything = [Acknowledgement(0, RECORDS - 1, [1])]
    acknowledge(partition, "m", everything, AT, lambda outcome, at: results.append(outcome))
    assert results == [Outcome(ErrorCode.NONE)]
    assert len(partition.in_flight) == partition.env.locks.count == 0
    assert partition.env.locks.deadline_ms() is None


def test_locks_that_are_renewed_again_and_again_take_no_more_memory() -> None:
    """Cancelled ones are removed when most of the list are such."""
    partition = loaded()
    acquire_all(partition, RECORDS)
    renewal = [Acknowledgement(0, RECORDS - 1, [4])]
    for step in range(20):
        at = ClockReading(1_000 + step, 0)
        acknowledge(partition, "m", renewal, at, lambda outcome, at: None)
    assert partition.env.locks.count == RECORDS
    assert partition.env.locks.listed_count <= 3 * RECORDS
