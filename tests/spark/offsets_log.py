"""A directory with one partition of `__consumer_offsets`, made by hand, and its three tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.views import topic_logs
from kraft_wire.spark.metadata.group_state import CONSUMER_OFFSETS_TOPIC
from kraft_wire.spark.metadata.group_tables import group_tables
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.storage.making import marker_bytes

__all__ = ["BEGAN_MS", "TOPIC_ID", "OffsetsLog", "Rows", "tables_in"]

BEGAN_MS = 360_000_000
TOPIC_ID = Uuid(bytes(range(1, 17)))
Rows = dict[str, list[dict[str, Any]]]


class OffsetsLog:
    """A log that is written record by record; the record at offset n has time BEGAN_MS + n."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._logs = LogDirectory.open(OsFileSystem(), str(path))
        self._log = self._logs.create_log(
            TopicPartition(CONSUMER_OFFSETS_TOPIC, 0), TOPIC_ID, LogConfig(), 1
        )

    def put(
        self, key: Message, value: Message | None, version: int = 0, producer_id: int | None = None
    ) -> int:
        """Write a record, in a transaction of the producer if one is given; return its offset."""
        data = None if value is None else version.to_bytes(2, "big") + bytes(value.encode(version))
        kind = key.RECORD_TYPE
        return self.raw(kind.to_bytes(2, "big") + bytes(key.encode(0)), data, producer_id)

    def raw(self, key: bytes | None, value: bytes | None, producer_id: int | None = None) -> int:
        """Write a record of any bytes; return its offset."""
        end = self._log.log_end_offset
        batch = build_batch(
            [Record(key, value, timestamp=BEGAN_MS + end)],
            base_offset=end,
            partition_leader_epoch=0,
            producer_id=-1 if producer_id is None else producer_id,
            producer_epoch=-1 if producer_id is None else 0,
            base_sequence=-1 if producer_id is None else self._sequence(producer_id),
            is_transactional=producer_id is not None,
        )
        self._append(bytes(batch))
        return end

    def commit(
        self,
        group: str,
        offset: int | None,
        *,
        partition: int = 0,
        producer_id: int | None = None,
        **more: Any,
    ) -> int:
        """Commit an offset of topic `t`; None is a tombstone."""
        key = OffsetCommitKey(group=group, topic="t", partition=partition)
        fields = {"metadata": "", "commit_timestamp": BEGAN_MS} | more
        value = None if offset is None else OffsetCommitValue(offset=offset, **fields)
        return self.put(key, value, 4, producer_id)

    def end(self, producer_id: int, *, abort: bool = False) -> None:
        """End the producer's transaction."""
        end = self._log.log_end_offset
        self._append(
            marker_bytes(end, producer_id=producer_id, abort=abort, timestamp=BEGAN_MS + end)
        )

    def _sequence(self, producer_id: int) -> int:
        known = self._log.producer_states.get(producer_id)
        return 0 if known is None else known.last_sequence + 1

    def _append(self, data: bytes) -> None:
        self._log.append(data, parse_batches(data), 0, BEGAN_MS)

    def close(self) -> Path:
        """Stop writing; return the file of the log."""
        self._logs.close(broker_epoch=1)
        return self.path / f"{CONSUMER_OFFSETS_TOPIC}-0" / f"{0:020d}.log"

    def tables(self, until_offset: int | None = None, **names: Uuid) -> Rows:
        """Close the log, and return its tables as of the time of a record, which is included."""
        self.close()
        until_ms = None if until_offset is None else BEGAN_MS + until_offset
        return tables_in(self.path, until_ms, {topic_id: name for name, topic_id in names.items()})


def tables_in(path: Path, until_ms: int | None, names: Mapping[Uuid, str]) -> Rows:
    """Return the rows of the three tables of a directory."""
    fs = OsFileSystem()
    options = parse_log_options({"path": str(path), "view": "metadata"})
    (logs,) = topic_logs(fs, options, CONSUMER_OFFSETS_TOPIC).values()
    found = group_tables(fs, logs, until_ms, "cluster", names)
    return {name: table.to_pylist() for name, table in found.items()}
