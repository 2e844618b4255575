"""Changes of one row of a log directory, each with the name of the first row that differs then.

What has a checksum gets a right one again: nothing is damaged, it only says something else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kraft_wire.metadata.records import decode_record, encode_record
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.storage.directory.checkpoints import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    read_offsets,
    write_offsets,
)
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import (
    ControlRecordType,
    control_key,
    parse_control_key,
)
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches
from tests.spark.apache_dirs import TRANSACTION_RECORDS

REPLICAS = 3
Change = Callable[[Path], str]
"""Changes a directory, and returns how the first row is named that differs then."""


def at_offset(path: Path, record: Record) -> str:
    return f"{path.parent.name}, offset {record.offset}"


def rewritten(
    pattern: str,
    change: Callable[[Record], bool],
    named: Callable[[Path, Record], str] = at_offset,
    *,
    control: bool = False,
    append_time: bool = True,
) -> Change:
    """The first data (or control) record that `change` takes, under a right checksum again."""

    def write(directory: Path) -> str:
        path = next(each for each in sorted(directory.glob(pattern)) if each.stat().st_size)
        data, changed = bytearray(), None
        for batch in parse_batches(path.read_bytes()):
            is_asked = changed is None and batch.is_control == control
            records = batch.records() if is_asked else []
            changed = changed or next((each for each in records if change(each)), None)
            is_here = changed in records
            data += (
                again(batch, records, append_time) if is_here else batch.view[: batch.size_bytes]
            )
        assert changed is not None, f"no record of {path} is one that can be changed so"
        name = named(path, changed)
        path.unlink()  # snapshots are read-only
        path.write_bytes(data)
        path.with_suffix(".index").unlink(missing_ok=True)
        return name

    return write


def again(batch: RecordBatch, records: list[Record], append_time: bool) -> bytearray:
    """The batch with other records."""
    stamped = batch.max_timestamp if append_time and batch.is_log_append_time else None
    return build_batch(
        records,
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        compression=batch.compression,
        log_append_time=stamped,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        last_offset=batch.last_offset,
    )


def other_byte(record: Record) -> bool:
    if record.value:
        record.value = record.value[:-1] + bytes([record.value[-1] ^ 1])
    return bool(record.value)


def value_that_is_empty(record: Record) -> bool:
    was_null = record.value is None
    record.value = b"" if was_null else record.value
    return was_null


def header_that_is_empty(record: Record) -> bool:
    wanted = ("none", None) in record.headers
    record.headers = [(name, value or b"") for name, value in record.headers]
    return wanted


def headers_turned_round(record: Record) -> bool:
    record.headers = record.headers[::-1]
    return len(record.headers) > 1


def a_millisecond_later(record: Record) -> bool:
    record.timestamp += 1
    return True


def committed_after_all(record: Record) -> bool:
    was_abort = parse_control_key(record.key) == ControlRecordType.ABORT
    record.key = control_key(ControlRecordType.COMMIT) if was_abort else record.key
    return was_abort


def another_leader(record: Record) -> bool:
    """Of the first partition that the three nodes have."""
    known = decode_record(record.value or b"")
    if not isinstance(known.record, PartitionRecord) or len(known.record.replicas) < REPLICAS:
        return False
    known.record.leader = 7
    record.value = encode_record(known)
    return True


def another_time(record: Record) -> bool:
    """In the header of a snapshot, behind the version."""
    if parse_control_key(record.key) != ControlRecordType.SNAPSHOT_HEADER:
        return False
    assert record.value is not None
    record.value = record.value[:9] + bytes([record.value[9] ^ 1]) + record.value[10:]
    return True


def in_image(path: Path, record: Record) -> str:
    """Topic and partition of a PartitionRecord in a snapshot."""
    changed = decode_record(record.value or b"").record
    assert isinstance(changed, PartitionRecord)
    for batch in parse_batches(path.read_bytes()):
        for each in () if batch.is_control else batch.records():
            known = decode_record(each.value or b"").record
            if isinstance(known, TopicRecord) and known.topic_id == changed.topic_id:
                return f"{known.name}, partition {changed.partition_id}"
    raise AssertionError(f"{path} has no topic of this id")


def last_batch_gone(directory: Path) -> str:
    path = sorted((directory / "codec-none-1").glob("*.log"))[-1]
    data = path.read_bytes()
    last = parse_batches(data)[-1]
    path.write_bytes(data[: -last.size_bytes])
    return f"codec-none-1, offset {last.base_offset}"


def another_epoch(directory: Path) -> str:
    """In the header of a batch, where no checksum covers it."""
    path = sorted((directory / "codec-lz4-1").glob("*.log"))[-1]
    data = bytearray(path.read_bytes())
    last = parse_batches(data)[-1]
    last.assign(last.base_offset, last.partition_leader_epoch + 1)
    path.write_bytes(data)
    return f"codec-lz4-1, offset {last.base_offset}"


def checkpointed(name: str, change: int, named: str) -> Change:
    """The line of trimmed-0 in an offset checkpoint."""

    def write(directory: Path) -> str:
        fs, path, key = OsFileSystem(), str(directory / name), TopicPartition("trimmed", 0)
        offsets = read_offsets(fs, path)
        write_offsets(fs, path, offsets | {key: Offset(offsets[key] + change)})
        return named.format(offsets[key])

    return write


PHYSICAL, EARLIEST = (
    [f"records {start} read_{level}" for level in ("uncommitted", "committed")]
    for start in ("physical", "earliest")
)
CHANGES: dict[str, tuple[str, Change]] = {
    "value": (EARLIEST[1], rewritten("codec-zstd-1/*.log", other_byte)),
    "null value": (PHYSICAL[0], rewritten("codec-none-0/*.log", value_that_is_empty)),
    "null header": (EARLIEST[0], rewritten("codec-gzip-0/*.log", header_that_is_empty)),
    "order of headers": (PHYSICAL[1], rewritten("codec-lz4-0/*.log", headers_turned_round)),
    "time": (PHYSICAL[0], rewritten("codec-snappy-1/*.log", a_millisecond_later)),
    "kind of time": (
        "batches",
        rewritten(
            "appended-0/*.log",
            lambda record: record.offset == 0,
            lambda *_: "appended-0, baseOffset 0",
            append_time=False,
        ),
    ),
    "batch gone": (PHYSICAL[1], last_batch_gone),
    "leader epoch": (PHYSICAL[1], another_epoch),
    "marker": (
        EARLIEST[1],
        # half a transaction and its marker before the one that was aborted
        rewritten(
            "transactions-0/*.log",
            committed_after_all,
            lambda *_: f"transactions-0, offset {TRANSACTION_RECORDS // 2 + 2}",
            control=True,
        ),
    ),
    "log start": (EARLIEST[0], checkpointed(LOG_START_OFFSETS, 1, "trimmed-0, offset {}")),
    "high watermark": ("segments", checkpointed(HIGH_WATERMARKS, -1, "trimmed-0, baseOffset 0")),
    "metadata": ("metadata", rewritten("__cluster_metadata-0/*.log", another_leader)),
    "snapshot": (
        "snapshots",
        rewritten(
            "__cluster_metadata-0/*.checkpoint",
            another_time,
            lambda path, _: f"__cluster_metadata-0, endOffset {int(path.name[:20])}",
            control=True,
        ),
    ),
    "image": (
        "partitions snapshot",
        rewritten("__cluster_metadata-0/*.checkpoint", another_leader, in_image),
    ),
}
"""By what is changed: the view that shows it, and the change."""
