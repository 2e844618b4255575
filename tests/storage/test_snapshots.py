"""Metadata snapshots: frozen whole or not there, verified when read."""

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.snapshots.metadata_snapshot import (
    CorruptMetadataSnapshot,
    SnapshotReader,
    SnapshotWriter,
    list_snapshots,
    remove_leftovers,
    retire_snapshots,
    snapshot_name,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

ID = OffsetAndEpoch(Offset(20), LeaderEpoch(2))
D = "disk/__cluster_metadata-0"


def control(kind: int, offset: int, epoch: int = 2) -> bytes:
    record = Record(bytes([0, 0, 0, kind]), b"\0\0\0", timestamp=1)
    return bytes(
        build_batch([record], base_offset=offset, partition_leader_epoch=epoch, is_control=True)
    )


def data(offset: int, epoch: int = 2) -> bytes:
    record = Record(None, b"x" * 90, timestamp=1)
    return bytes(build_batch([record], base_offset=offset, partition_leader_epoch=epoch))


def behind_another(kind: int) -> bytes:
    """A control record that is not the first one of its batch."""
    records = [Record(bytes([0, 0, 0, each]), b"\0\0\0", timestamp=1) for each in (5, kind)]
    return bytes(build_batch(records, partition_leader_epoch=2, is_control=True))


def disk() -> SimFileSystem:
    fs = SimFileSystem()
    fs.make_directory(D)
    return fs


def freeze(fs: SimFileSystem, snapshot_id: OffsetAndEpoch, *parts: bytes) -> None:
    writer = SnapshotWriter(fs, D, snapshot_id, 1)
    for part in parts:
        writer.append(part)
    writer.freeze()


def at(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))


def test_frozen_snapshot_reads_back_and_is_read_only() -> None:
    fs = disk()
    parts = [control(3, 0), data(1), control(4, 2)]
    freeze(fs, ID, *parts)
    assert fs.names(D) == ["00000000000000000020-0000000002.checkpoint"]
    reader = SnapshotReader(fs, D, ID)
    assert [bytes(batch.view) for batch in reader.batches()] == parts
    whole = b"".join(parts)
    assert reader.slice(5, 10).read() == whole[5:15]
    assert reader.slice(len(whole) - 3, 10).read() == whole[-3:]
    reader.close()
    with pytest.raises(StorageError):
        fs.open(f"{D}/{snapshot_name(ID)}")


def test_unfrozen_snapshot_is_not_listed_and_can_be_abandoned() -> None:
    fs = disk()
    writer = SnapshotWriter(fs, D, ID, 77)
    writer.append(b"abc")
    assert writer.size_bytes == 3
    assert fs.names(D) == ["00000000000000000020-0000000002-77.checkpoint.part"]
    assert list_snapshots(fs, D) == []
    writer.abandon()
    writer.abandon()
    assert fs.names(D) == []


def test_snapshot_that_is_there_already_stays() -> None:
    fs = disk()
    freeze(fs, ID, b"first")
    freeze(fs, ID, b"second")
    assert fs.read(f"{D}/{snapshot_name(ID)}") == b"first"
    assert len(fs.names(D)) == 1


def test_order_is_by_epoch_then_offset_and_other_files_do_not_count() -> None:
    fs = disk()
    for snapshot_id in (at(30, 1), at(20, 2), at(25, 2)):
        freeze(fs, snapshot_id, b"x")
    digits = "\N{SUPERSCRIPT TWO}" * 20  # for Python they are
    names = ["bootstrap.checkpoint", "1-2.checkpoint"]
    names += [f"{each}-{'0' * 10}.checkpoint" for each in ("x" * 20, digits)]
    for name in names:
        replace_file(fs, f"{D}/{name}", b"")
    assert list_snapshots(fs, D) == [at(30, 1), at(20, 2), at(25, 2)]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], "no footer"),
        ([control(3, 0), data(1)], "no footer"),
        ([data(0), control(4, 1)], "no header"),
        ([control(4, 0), control(4, 1)], "no header"),
        ([behind_another(3), control(4, 2)], "no header"),
        ([control(3, 0), data(5), control(4, 6)], "where 1 is next"),
        ([control(3, 0), data(1, epoch=1), control(4, 2)], "leader epoch 1"),
        ([control(3, 0), data(1)[:-1]], "beyond the end"),
        ([control(3, 0), data(1)[:-1] + b"?", control(4, 2)], "CRC"),
    ],
)
def test_damaged_snapshot_is_refused_by_name(parts: list[bytes], reason: str) -> None:
    fs = disk()
    freeze(fs, ID, *parts)
    with pytest.raises(CorruptMetadataSnapshot, match=reason):
        list(SnapshotReader(fs, D, ID).batches())


def test_older_snapshots_are_retired_and_leftovers_removed_at_start() -> None:
    fs = disk()
    for snapshot_id in (at(10, 1), at(30, 1), at(20, 2), at(40, 3)):
        freeze(fs, snapshot_id, b"x")
    retired = retire_snapshots(fs, D, at(20, 2))
    assert retired == [f"{D}/00000000000000000010-0000000001.checkpoint.deleted"]
    SnapshotWriter(fs, D, at(50, 3), 1)
    remove_leftovers(fs, D, Offset(25))
    assert list_snapshots(fs, D) == [at(30, 1), at(40, 3)]
    assert len(fs.names(D)) == 2


def test_log_start_without_snapshot_is_refused_before_anything_is_removed() -> None:
    fs = disk()
    freeze(fs, at(10, 1), b"x")
    SnapshotWriter(fs, D, at(50, 3), 1)
    with pytest.raises(StorageError, match="no snapshot reaches"):
        remove_leftovers(fs, D, Offset(25))
    assert len(fs.names(D)) == 2
    remove_leftovers(fs, D, Offset(0))
