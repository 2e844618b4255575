"""Log directories for the tests of the pipeline, written by the node's own storage.

What is in them is known record by record, from what was appended and not from what was read. The
formats themselves are judged elsewhere, by Apache's tools over the same storage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kraft_wire.model import Offset, TopicPartition, Uuid
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.storage.making import marker_bytes

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
TOPIC_ID = Uuid(bytes(range(1, 17)))
SEGMENT_BYTES = 12_000

Headers = list[tuple[str, bytes | None]]


@dataclass
class WrittenRecord:
    """One record as it was appended."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    is_aborted: bool = False
    is_open: bool = False
    """In a transaction that never ended."""


@dataclass
class WrittenLogs:
    """A log directory, and what was put into it."""

    path: Path
    node_id: int
    records: list[WrittenRecord] = field(default_factory=list)
    logs: LogDirectory | None = None

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        fs = OsFileSystem()
        write_meta_properties(fs, str(self.path), MetaProperties(CLUSTER_ID, self.node_id, None))
        self.logs = LogDirectory.open(fs, str(self.path))

    def log(self, topic: str, partition: int, segment_bytes: int = SEGMENT_BYTES) -> Log:
        """The log of a partition, made when it is first asked for."""
        assert self.logs is not None
        key = TopicPartition(topic, partition)
        if key not in self.logs.logs:
            config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=1000)
            self.logs.create_log(key, TOPIC_ID, config, 1)
        return self.logs.logs[key]

    def append(
        self,
        topic: str,
        partition: int,
        count: int,
        *,
        compression: Compression = Compression.NONE,
        producer_id: int = -1,
        sequence: int = -1,
        epoch: int = 0,
        is_transactional: bool = False,
        is_aborted: bool = False,
        is_open: bool = False,
        value_bytes: int = 60,
    ) -> None:
        """Append one batch; keys, values and headers are null in some records."""
        log = self.log(topic, partition)
        base = int(log.log_end_offset)
        records: list[Record] = []
        for offset in range(base, base + count):
            key = None if offset % 7 == 0 else b"key-%d" % (offset % 50)
            value = (
                None
                if offset % 11 == 0
                else bytes((offset + at) % 251 for at in range(value_bytes))
            )
            headers: Headers = [("h", b"%d" % offset), ("n", None)] if offset % 5 == 0 else []
            records.append(
                Record(key, value, headers=headers, timestamp=1_700_000_000_000 + offset)
            )
            self.records.append(
                WrittenRecord(
                    topic,
                    partition,
                    offset,
                    1_700_000_000_000 + offset,
                    key,
                    value,
                    headers,
                    is_aborted,
                    is_open,
                )
            )
        data = bytes(
            build_batch(
                records,
                base_offset=base,
                partition_leader_epoch=epoch,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=sequence,
                is_transactional=is_transactional,
                compression=compression,
            )
        )
        self._append(log, data)

    def mark(self, topic: str, partition: int, producer_id: int, *, abort: bool) -> None:
        """End a producer's transaction."""
        log = self.log(topic, partition)
        self._append(log, marker_bytes(log.log_end_offset, producer_id=producer_id, abort=abort))

    def _append(self, log: Log, data: bytes) -> None:
        log.append(data, parse_batches(memoryview(data)), 1, 1)
        log.update_high_watermark(Offset(log.log_end_offset))

    def close(self) -> None:
        """Write indexes and checkpoints as a clean stop does."""
        assert self.logs is not None
        self.logs.close(broker_epoch=1)
        self.logs = None

    def visible(self, *, committed: bool = False) -> list[WrittenRecord]:
        """The records that a reader sees, by topic, partition and offset."""
        shown = self.records
        if committed:
            ends = {
                (each.topic, each.partition): each.offset
                for each in reversed(shown)
                if each.is_open
            }
            shown = [
                each
                for each in shown
                if not each.is_aborted
                and each.offset < ends.get((each.topic, each.partition), each.offset + 1)
            ]
        return sorted(shown, key=lambda each: (each.topic, each.partition, each.offset))


def write_many_kinds(path: Path, node_id: int = 1) -> WrittenLogs:
    """Every codec, transactions that ended both ways and one that did not, many segments."""
    written = WrittenLogs(path, node_id)
    for at in range(60):
        codec = list(Compression)[at % len(Compression)]
        for partition in (0, 1):
            written.append("plain", partition, 1 + at % 40, compression=codec, epoch=at // 30)
    sequence = {1: 0, 2: 0, 3: 0}
    for at in range(30):
        producer = 1 + at % 2
        is_aborted = at % 4 in (2, 3)
        for _ in range(2):
            written.append(
                "money",
                0,
                5,
                producer_id=producer,
                sequence=sequence[producer],
                is_transactional=True,
                is_aborted=is_aborted,
            )
            sequence[producer] += 5
        written.append("money", 0, 3)
        written.mark("money", 0, producer, abort=is_aborted)
    written.append("money", 0, 4, producer_id=3, sequence=0, is_transactional=True, is_open=True)
    written.append("money", 0, 6)
    written.log("empty", 0)
    return written
