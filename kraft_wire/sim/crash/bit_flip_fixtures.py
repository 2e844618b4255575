"""The files that `bit_flips` spoils: per kind a stream of small, different ones with their reader.

A reader puts the damaged bytes among the other files of a directory and asks production code for
all that the file decides. Logs are opened with the recovery point at their end, as after a flush:
then no damage can pass for a torn tail.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, ReplicaId, TopicPartition, Uuid
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.checkpoints import read_offsets, write_offsets
from kraft_wire.storage.directory.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraft_wire.storage.directory.partition_metadata import read_topic_id, write_topic_id
from kraft_wire.storage.directory.quorum_state import (
    ElectionState,
    read_quorum_state,
    write_quorum_state,
)
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.storage.recovery.opening import open_log
from kraft_wire.storage.snapshots.metadata_snapshot import (
    SnapshotReader,
    SnapshotWriter,
    snapshot_name,
)
from kraft_wire.storage.timestamps import offset_for_timestamp
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches

__all__ = ["KINDS", "Fixture", "Kind"]

_DISK = "disk"
_PARTITION = TopicPartition("t", 0)
_DIRECTORY = f"{_DISK}/{_PARTITION}"
_TOPIC_ID = Uuid(bytes(range(16)))
_STEM = f"{_DIRECTORY}/{0:020d}"
_CONFIG = LogConfig(index_interval_bytes=0)
_CODECS = (Compression.NONE, Compression.GZIP, Compression.ZSTD, Compression.LZ4)


@dataclass(frozen=True, slots=True)
class Fixture:
    """One good file: its bytes, production's reader of them, and the result."""

    content: bytes
    read: Callable[[bytes], object]
    expected: object


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file."""

    name: str
    is_checked: bool
    """Whether nothing may pass unseen: a checksum covers it, or it is verified where it is used."""
    fixtures: Callable[[], Iterator[Fixture]]
    has_checksum: bool = False


def _fixture(path: str, fs: SimFileSystem, read: Callable[[FileSystem], object]) -> Fixture:
    """Take the disk as it is; the file at `path` will be damaged."""
    image = fs.everything()
    content = image[path]
    assert content, path

    def read_spoilt(spoilt: bytes) -> object:
        return read(SimFileSystem.from_image({**image, path: spoilt}))

    return Fixture(content, read_spoilt, read(SimFileSystem.from_image(image)))


# -- logs and their indexes ----------------------------------------------------------------------


def _batches(random_source: Random, count: int, value_bytes: int) -> Iterator[bytes]:
    """Yield batches of some records in different codecs, every third of an idempotent producer."""
    offset = 0
    for number in range(count):
        size = random_source.randrange(1, value_bytes)
        records = [
            Record(b"k%d" % at, random_source.randbytes(size), timestamp=1000 * number + at)
            for at in range(1 + number % 3)
        ]
        is_idempotent = number % 3 == 2
        yield bytes(
            build_batch(
                records,
                base_offset=offset,
                partition_leader_epoch=number // 2,
                compression=_CODECS[number % len(_CODECS)],
                producer_id=7 if is_idempotent else -1,
                producer_epoch=0 if is_idempotent else -1,
                base_sequence=number if is_idempotent else -1,
            )
        )
        offset += len(records)


def _disk_with_log(random_source: Random, count: int, value_bytes: int) -> SimFileSystem:
    """A log that was stopped cleanly."""
    fs = SimFileSystem()
    log = _open(fs, is_clean=False)
    for data in _batches(random_source, count, value_bytes):
        log.append(data, parse_batches(data), 1, 1)
    log.close()
    return fs


def _open(fs: FileSystem, *, is_clean: bool, recovery_point: int = 0) -> Log:
    return open_log(
        fs,
        _DIRECTORY,
        _PARTITION,
        _TOPIC_ID,
        _CONFIG,
        wall_ms=1,
        is_clean=is_clean,
        recovery_point=Offset(recovery_point),
    )


def _logs() -> Iterator[Fixture]:
    random_source = Random(1)
    while True:
        fs = _disk_with_log(random_source, 6, 200)
        end = _open(SimFileSystem.from_image(fs.everything()), is_clean=True).log_end_offset
        yield _fixture(f"{_STEM}.log", fs, lambda fs, end=end: _records(fs, end))  # type: ignore[misc]  # bound now


def _records(fs: FileSystem, end: int) -> object:
    """Recover and read every record."""
    log = _open(fs, is_clean=False, recovery_point=end)
    data = log.read(Offset(0), 1 << 20, upper_bound=log.log_end_offset, min_one_batch=True).records
    assert not isinstance(data, bytes), data
    batches = parse_batches(data.read())
    return [(record.offset, record) for batch in batches for record in batch.records()]


def _epochs() -> Iterator[Fixture]:
    random_source = Random(2)
    while True:
        fs = _disk_with_log(random_source, 12, 20)
        yield _fixture(f"{_DIRECTORY}/leader-epoch-checkpoint", fs, _epoch_ends)


def _epoch_ends(fs: FileSystem) -> object:
    return _open(fs, is_clean=False).epochs.entries


def _indexes(suffix: str) -> Callable[[], Iterator[Fixture]]:
    def fixtures() -> Iterator[Fixture]:
        random_source = Random(3)
        while True:
            fs = _disk_with_log(random_source, 7, 30)
            yield _fixture(f"{_STEM}{suffix}", fs, _look_ups)

    return fixtures


def _look_ups(fs: FileSystem) -> object:
    """Open as after a clean stop, when indexes are trusted, and look up offsets and times."""
    log = _open(fs, is_clean=True)
    end = log.log_end_offset
    by_offset = [
        log.read(Offset(offset), 1, upper_bound=end, min_one_batch=True).first_offset
        for offset in range(0, end, 2)
    ]
    by_time = [offset_for_timestamp(log, at * 1000, upper_bound=end) for at in range(0, 7, 2)]
    return by_offset, by_time, end


# -- checked files -------------------------------------------------------------------------------


def _producer_snapshots() -> Iterator[Fixture]:
    random_source = Random(4)
    while True:
        states = ProducerStates()
        for producer_id in range(1 + random_source.randrange(24)):
            data = build_batch(
                [Record(None, b"v", timestamp=random_source.randrange(1 << 40))],
                base_offset=random_source.randrange(1 << 40),
                producer_id=producer_id + random_source.randrange(1 << 40),
                producer_epoch=random_source.randrange(1 << 15),
                base_sequence=random_source.randrange(1 << 31),
                is_transactional=random_source.randrange(2) == 1,
            )
            states.update(parse_batches(data)[0])
        content = states.snapshot()
        yield Fixture(content, _producer_table, content)


def _producer_table(content: bytes) -> object:
    states = ProducerStates()
    states.load_snapshot(content, Offset(1 << 41))
    return states.snapshot()


def _metadata_snapshots() -> Iterator[Fixture]:
    random_source = Random(5)
    snapshot_id = OffsetAndEpoch(Offset(40), LeaderEpoch(3))
    while True:
        fs = SimFileSystem()
        fs.make_directory(_DISK)
        writer = SnapshotWriter(fs, _DISK, snapshot_id, 1)
        values = [random_source.randbytes(random_source.randrange(1, 200)) for _ in range(6)]
        writer.append(_control(3, 0))
        for at, value in enumerate(values, 1):
            record = Record(None, value, timestamp=1)
            writer.append(build_batch([record], base_offset=at, partition_leader_epoch=3))
        writer.append(_control(4, 1 + len(values)))
        writer.freeze()
        yield _fixture(
            f"{_DISK}/{snapshot_name(snapshot_id)}",
            fs,
            lambda fs: [
                record
                for batch in SnapshotReader(fs, _DISK, snapshot_id).batches()
                for record in batch.records()
            ],
        )


def _control(kind: int, offset: int) -> bytes:
    record = Record(bytes([0, 0, 0, kind]), b"\x00\x00\x00", timestamp=1)
    data = build_batch([record], base_offset=offset, partition_leader_epoch=3, is_control=True)
    return bytes(data)


# -- text ----------------------------------------------------------------------------------------


def _offset_checkpoints() -> Iterator[Fixture]:
    random_source, path = Random(6), f"{_DISK}/recovery-point-offset-checkpoint"
    while True:
        fs = SimFileSystem()
        fs.make_directory(_DISK)
        names = [TopicPartition(f"topic-{at}", random_source.randrange(9)) for at in range(6)]
        write_offsets(fs, path, {name: Offset(random_source.randrange(1 << 40)) for name in names})
        yield _fixture(path, fs, lambda fs: read_offsets(fs, path))


def _votes() -> Iterator[Fixture]:
    random_source, number = Random(7), 0
    while True:
        fs = SimFileSystem()
        fs.make_directory(_DISK)
        voters = tuple(ReplicaId(at) for at in range(3)) if number % 2 == 0 else ()
        state = ElectionState(
            LeaderEpoch(random_source.randrange(1 << 31)),
            voted_id=ReplicaId(2),
            static_voters=voters,
        )
        write_quorum_state(fs, _DISK, state, number % 2)
        number += 1
        yield _fixture(f"{_DISK}/quorum-state", fs, lambda fs: read_quorum_state(fs, _DISK))


def _identities() -> Iterator[Fixture]:
    random_source = Random(8)
    while True:
        fs = SimFileSystem()
        fs.make_directory(_DISK)
        directory_id = Uuid(random_source.randbytes(16))
        meta = MetaProperties("cluster-of-this", random_source.randrange(1 << 31), directory_id)
        write_meta_properties(fs, _DISK, meta)
        yield _fixture(f"{_DISK}/meta.properties", fs, lambda fs: read_meta_properties(fs, _DISK))


def _topic_ids() -> Iterator[Fixture]:
    random_source = Random(9)
    while True:
        fs = SimFileSystem()
        fs.make_directory(_DIRECTORY)
        write_topic_id(fs, _DIRECTORY, Uuid(random_source.randbytes(16)))
        path = f"{_DIRECTORY}/partition.metadata"
        yield _fixture(path, fs, lambda fs: read_topic_id(fs, _DIRECTORY))


KINDS: tuple[Kind, ...] = (
    Kind(".log", True, _logs, has_checksum=True),
    Kind("metadata .checkpoint", True, _metadata_snapshots, has_checksum=True),
    Kind("producer .snapshot", True, _producer_snapshots, has_checksum=True),
    Kind(".index", True, _indexes(".index")),
    Kind(".timeindex", True, _indexes(".timeindex")),
    Kind("leader-epoch-checkpoint", False, _epochs),
    Kind("offset checkpoints", False, _offset_checkpoints),
    Kind("quorum-state", False, _votes),
    Kind("meta.properties", False, _identities),
    Kind("partition.metadata", False, _topic_ids),
)
