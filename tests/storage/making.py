"""Batches and logs for the storage tests, with no defaults that hide what a test is about."""

from collections.abc import Iterable

from kraft_wire.model import Offset, OffsetAndEpoch, TopicPartition, Uuid
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.damage import Damage, inspect
from kraft_wire.storage.recovery.opening import open_log
from kraft_wire.storage.recovery.repair import cut
from kraft_wire.storage.snapshots.contents import SnapshotHead
from kraft_wire.storage.snapshots.store import MetadataSnapshots
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches


class Refusing(SimFileSystem):
    """A disk without room for some calls: (operation, a part of the path)."""

    refused: tuple[tuple[str, str], ...] = ()

    def enter(self, operation: str, path: str) -> DiskFault | None:
        if any(operation == name and part in path for name, part in self.refused):
            self.fault = (self.calls_count, DiskFault.ENOSPC)
        return super().enter(operation, path)


PARTITION = TopicPartition("t", 0)
TOPIC_ID = Uuid(bytes(range(1, 17)))
DIRECTORY = "disk/t-0"


def batch_bytes(
    offset: int,
    *,
    count: int = 1,
    size: int = 40,
    epoch: int = 0,
    timestamp: int | None = None,
    key: bytes | None = b"k",
    value: bytes | None = b"",
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = -1,
    transactional: bool = False,
    compression: Compression = Compression.NONE,
) -> bytes:
    """One batch; record i has time `timestamp` + i and a value made of its offset."""
    first_time = 1000 + offset if timestamp is None else timestamp
    records = [
        Record(
            key,
            bytes((offset + at) % 251 for at in range(size)) if value == b"" else value,
            timestamp=first_time + at,
        )
        for at in range(count)
    ]
    return bytes(
        build_batch(
            records,
            base_offset=offset,
            partition_leader_epoch=epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            is_transactional=transactional,
            compression=compression,
        )
    )


def marker_bytes(
    offset: int,
    *,
    producer_id: int,
    abort: bool,
    timestamp: int = 5000,
    producer_epoch: int = 0,
) -> bytes:
    """An end-of-transaction marker of coordinator epoch 3."""
    record = Record(
        bytes([0, 0, 0, 0 if abort else 1]), b"\x00\x00\x00\x00\x00\x03", timestamp=timestamp
    )
    return bytes(
        build_batch(
            [record],
            base_offset=offset,
            partition_leader_epoch=0,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=True,
            is_control=True,
        )
    )


def parsed(data: bytes) -> RecordBatch:
    """The one batch that `data` is."""
    (batch,) = parse_batches(memoryview(data))
    return batch


def append(log: Log, data: bytes, wall_ms: int = 1) -> None:
    """Append whole batches as the partition does."""
    log.append(data, parse_batches(memoryview(data)), 1, wall_ms)


def fill(log: Log, count: int, **settings: int) -> list[bytes]:
    """Append `count` batches of one record each."""
    added: list[bytes] = []
    for _ in range(count):
        added.append(batch_bytes(log.log_end_offset, **settings))  # type: ignore[arg-type]  # of a batch
        append(log, added[-1])
    return added


def open_at(
    fs: FileSystem,
    config: LogConfig | None = None,
    *,
    is_clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    directory: str = DIRECTORY,
) -> Log:
    """Open the log under test."""
    return open_log(
        fs,
        directory,
        PARTITION,
        TOPIC_ID,
        config or LogConfig(),
        wall_ms=1,
        is_clean=is_clean,
        recovery_point=Offset(recovery_point),
        log_start_offset=Offset(log_start_offset),
    )


def cut_all(fs: FileSystem) -> list[Damage]:
    """Cut the log under test as an operator does; return what was cut."""
    found = inspect(fs, DIRECTORY.rpartition("/")[0], PARTITION)
    for damage in found:
        cut(fs, DIRECTORY.rpartition("/")[0], damage)
    return found


def contents(log: Log) -> list[bytes]:
    """Every batch, read one by one through the log."""
    found: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, 1, upper_bound=log.log_end_offset, min_one_batch=True)
        if isinstance(read.records, bytes):
            break
        found.append(read.records.read())
        offset = Offset(parsed(found[-1]).next_offset)
    return found


def flip(fs: SimFileSystem, path: str, position: int, mask: int = 1) -> None:
    """Change bits of one byte at rest."""
    file = fs.open(path)
    file.pwrite(bytes([file.pread(1, position)[0] ^ mask]), position)


def take_snapshot(
    snapshots: MetadataSnapshots,
    snapshot_id: OffsetAndEpoch,
    head: SnapshotHead,
    values: Iterable[bytes],
) -> None:
    """Write a snapshot of record values, all steps at once."""
    for _ in snapshots.writing(snapshot_id, head, values):
        pass
