"""Reads the newest records of `__transaction_state` from all directories."""

from collections.abc import Iterable, Iterator

from kraft_wire.audit.collector.sources import PartitionReplicas
from kraft_wire.audit.finding import Finding
from kraft_wire.audit.hanging_checks import CoordinatedTransaction, check_hanging
from kraft_wire.audit.transaction_checks import OpenTransaction
from kraft_wire.columnar.transaction_log import (
    TRANSACTION_STATE_TOPIC,
    TransactionRecord,
    transaction_records,
)
from kraft_wire.storage.files import FileSystem

__all__ = ["hanging_findings"]


def hanging_findings(
    fs: FileSystem,
    sources: Iterable[PartitionReplicas],
    opened: list[OpenTransaction],
    wall_ms: int,
) -> Iterator[Finding]:
    """Judge open transactions; without a directory of `__transaction_state` none is judged."""
    states = [each for each in sources if each.topic == TRANSACTION_STATE_TOPIC]
    if not opened or not states:
        return
    coordinated: dict[int, CoordinatedTransaction] = {}
    for source in states:
        newest: dict[str, TransactionRecord] = {}
        for files in source.replicas:
            for record in transaction_records(fs, files):
                known = newest.get(record.transactional_id)
                if known is None or known.offset <= record.offset:
                    newest[record.transactional_id] = record
        for record in newest.values():
            if record.value is not None:
                coordinated[record.value.producer_id] = _coordinated(record)
    yield from check_hanging(opened, coordinated, wall_ms)


def _coordinated(record: TransactionRecord) -> CoordinatedTransaction:
    value = record.value
    assert value is not None, record
    return CoordinatedTransaction(
        record.transactional_id,
        record.state or "",
        frozenset(
            (topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_timeout_ms,
    )
