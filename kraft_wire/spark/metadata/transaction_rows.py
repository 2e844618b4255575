"""The states of transactional ids as intervals, from the records of `__transaction_state`.

A state holds from its record until the next record of its id; a tombstone ends it. Compaction keeps
the newest record of an id: the history begins where the log does.
"""

from collections.abc import Iterator, Sequence

from kraft_wire.columnar import PartitionFiles
from kraft_wire.columnar.records import TIME_MS_MAX
from kraft_wire.columnar.transaction_log import TransactionRecord, transaction_records
from kraft_wire.storage.files import FileSystem

__all__ = ["transaction_rows"]


def transaction_rows(
    fs: FileSystem, logs: Sequence[PartitionFiles], until_ms: int | None
) -> Iterator[dict[str, object]]:
    """Yield rows by partition, id and offset, up to the time `until_ms`."""
    for files in logs:
        ids: dict[str, list[TransactionRecord]] = {}
        for record in transaction_records(fs, files):
            if until_ms is None or record.timestamp <= until_ms:
                ids.setdefault(record.transactional_id, []).append(record)
        for _, records in sorted(ids.items()):
            for record, following in zip(records, [*records[1:], None], strict=True):
                if record.value is not None:
                    yield _row(files.partition, record, following)


def _row(
    partition: int, record: TransactionRecord, following: TransactionRecord | None
) -> dict[str, object]:
    value = record.value
    assert value is not None, record
    return {
        "transactionalId": record.transactional_id,
        "statePartition": partition,
        "state": record.state,
        "producerId": value.producer_id,
        "producerEpoch": value.producer_epoch,
        "timeoutMs": value.transaction_timeout_ms,
        "partitions": [
            {"topic": topic.topic, "partition": number}
            for topic in value.transaction_partitions or ()
            for number in topic.partition_ids
        ],
        "startTimestamp": _time(value.transaction_start_timestamp_ms),
        "fromOffset": record.offset,
        "untilOffset": None if following is None else following.offset,
        "fromTimestamp": _time(record.timestamp),
        "untilTimestamp": None if following is None else _time(following.timestamp),
    }


def _time(timestamp_ms: int) -> int | None:
    return timestamp_ms * 1000 if 0 <= timestamp_ms <= TIME_MS_MAX else None
