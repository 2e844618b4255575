"""Snapshots of the metadata log: `<offset>-<epoch>.checkpoint` files (KIP-630, KIP-853).

The id is the end offset (exclusive) with the epoch of the record before it; the newest is the
largest by epoch, then offset. A snapshot is written under a `.part` name and frozen: fsync,
read-only, rename, fsync of the directory; so it is there whole or not at all. It begins with a
header record and ends with a footer; a file without them, or with a bad batch, is refused.

What stands between header and footer is the controller's; when to take or drop one is raft's.
"""

import struct
from collections.abc import Iterator

from kraft_wire.model import FileSlice, LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.storage.files import Buffer, File, FileSystem
from kraft_wire.storage.scan import BadBatch, batches
from kraft_wire.wire.record_batch import RecordBatch

__all__ = [
    "CorruptMetadataSnapshot",
    "SnapshotReader",
    "SnapshotWriter",
    "list_snapshots",
    "remove_leftovers",
    "retire_snapshots",
    "snapshot_name",
]

_SUFFIX = ".checkpoint"
_PART_SUFFIX = ".checkpoint.part"
_DELETED_SUFFIX = ".checkpoint.deleted"
_HEADER_TYPE, _FOOTER_TYPE = 3, 4
_CONTROL_KEY = struct.Struct(">hh")


class CorruptMetadataSnapshot(StorageError):
    """A snapshot file is not whole and valid; names the position."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        assert position >= 0, position
        super().__init__("verify", path, f"position {position}: {reason}")
        self.position = position


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    """Return Kafka's file name of a complete snapshot."""
    assert snapshot_id.offset >= 0, snapshot_id
    assert snapshot_id.epoch >= 0, snapshot_id
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{_SUFFIX}"


def list_snapshots(fs: FileSystem, directory: str) -> list[OffsetAndEpoch]:
    """Return the complete snapshots, oldest first."""
    found: list[OffsetAndEpoch] = []
    for name in fs.names(directory):
        if name.endswith(_SUFFIX):
            offset, dash, epoch = name.removesuffix(_SUFFIX).partition("-")
            if dash and (len(offset), len(epoch)) == (20, 10) and (offset + epoch).isdigit():
                found.append(OffsetAndEpoch(Offset(int(offset)), LeaderEpoch(int(epoch))))
    found.sort(key=lambda known: (known.epoch, known.offset))
    assert len(set(found)) == len(found), found
    return found


class SnapshotWriter:
    """A snapshot that is being written or fetched; nobody sees it before `freeze`."""

    def __init__(
        self, fs: FileSystem, directory: str, snapshot_id: OffsetAndEpoch, attempt: int
    ) -> None:
        assert attempt >= 0, attempt
        stem = snapshot_name(snapshot_id).removesuffix(_SUFFIX)
        self.snapshot_id = snapshot_id
        self.size_bytes = 0
        self._fs = fs
        self._directory = directory
        self._path = f"{directory}/{stem}-{attempt}{_PART_SUFFIX}"
        self._file: File | None = fs.open(self._path, create=True)
        self._file.truncate(0)

    def append(self, data: Buffer) -> None:
        """Add bytes at the end; they may be any chunk of the file."""
        assert self._file is not None, "frozen or abandoned"
        self._file.pwrite(data, self.size_bytes)
        self.size_bytes += len(data)

    def freeze(self) -> None:
        """Make it the snapshot of its id, durably. A snapshot that is there already stays."""
        assert self._file is not None, "frozen or abandoned"
        final = f"{self._directory}/{snapshot_name(self.snapshot_id)}"
        if self._fs.exists(final):
            self.abandon()
            return
        self._file.fsync()
        self._file.close()
        self._file = None
        self._fs.make_read_only(self._path)
        self._fs.rename(self._path, final)
        self._fs.sync_directory(self._directory)

    def abandon(self) -> None:
        """Drop what was written; harmless after `freeze`."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._fs.unlink(self._path)
        assert self._file is None


class SnapshotReader:
    """An open, complete snapshot."""

    def __init__(self, fs: FileSystem, directory: str, snapshot_id: OffsetAndEpoch) -> None:
        self.snapshot_id = snapshot_id
        self.path = f"{directory}/{snapshot_name(snapshot_id)}"
        self._file = fs.open_for_reading(self.path)
        self.size_bytes = self._file.size_bytes()
        assert self.size_bytes >= 0, self.path

    def slice(self, position: int, max_bytes: int) -> FileSlice:
        """Return bytes from `position` on for a FetchSnapshot answer."""
        assert max_bytes >= 0, max_bytes
        assert 0 <= position <= self.size_bytes, (position, self.size_bytes)
        return FileSlice(self._file, position, min(max_bytes, self.size_bytes - position))

    def batches(self) -> Iterator[RecordBatch]:
        """Yield every batch, verified; CorruptMetadataSnapshot at the first thing that is wrong.

        Errors, in this order: bad batch, offsets with a gap, another epoch than the id's, no
        header first, no footer last.
        """
        expected, last_position, is_closed = 0, 0, False
        try:
            for position, batch in batches(self._file, 0, self.size_bytes):
                self._check(batch, position, expected)
                yield batch
                expected, last_position = batch.next_offset, position
                is_closed = _holds(batch, _FOOTER_TYPE)
        except BadBatch as bad:
            raise CorruptMetadataSnapshot(self.path, bad.position, bad.reason) from bad
        if not is_closed:
            raise CorruptMetadataSnapshot(self.path, last_position, "no footer at the end")
        assert expected > 0, self.path

    def _check(self, batch: RecordBatch, position: int, expected: int) -> None:
        reason = ""
        if batch.base_offset != expected:
            reason = f"base offset {batch.base_offset} where {expected} is next"
        elif batch.partition_leader_epoch != self.snapshot_id.epoch:
            reason = f"leader epoch {batch.partition_leader_epoch} is not the snapshot's"
        elif position == 0 and not _holds(batch, _HEADER_TYPE):
            reason = "no header at the beginning"
        if reason:
            raise CorruptMetadataSnapshot(self.path, position, reason)
        assert expected >= 0, expected

    def close(self) -> None:
        """Close the file."""
        assert self._file is not None
        self._file.close()


def _holds(batch: RecordBatch, kind: int) -> bool:
    """Tell whether the batch is one of control records with one of that type among them."""
    assert kind in (_HEADER_TYPE, _FOOTER_TYPE), kind
    if not batch.is_control:
        return False
    keys = [record.key for record in batch.iter_records()]
    return any(
        key is not None and len(key) == _CONTROL_KEY.size and _CONTROL_KEY.unpack(key)[1] == kind
        for key in keys
    )


def retire_snapshots(fs: FileSystem, directory: str, below: OffsetAndEpoch) -> list[str]:
    """Rename the snapshots older than `below` to `.deleted`; return their paths for unlinking.

    Nothing is synced: an old snapshot that comes back is removed at the next start.
    """
    assert below in list_snapshots(fs, directory), below
    retired: list[str] = []
    for snapshot_id in list_snapshots(fs, directory):
        if snapshot_id != below and snapshot_id.epoch <= below.epoch:
            if snapshot_id.offset >= below.offset:
                continue
            path = f"{directory}/{snapshot_name(snapshot_id)}"
            doomed = path.removesuffix(_SUFFIX) + _DELETED_SUFFIX
            fs.rename(path, doomed)
            retired.append(doomed)
    return retired


def remove_leftovers(fs: FileSystem, directory: str, log_start_offset: Offset) -> None:
    """Clean up at start: unfinished and retired files, and snapshots below the log's start.

    StorageError, before anything is removed, when the log starts above 0 and no snapshot reaches
    its start: the records below are then nowhere (S14).
    """
    snapshots = list_snapshots(fs, directory)
    if log_start_offset > 0 and all(known.offset < log_start_offset for known in snapshots):
        reason = f"the log starts at {log_start_offset}, but no snapshot reaches that offset"
        raise StorageError("open", directory, reason)
    assert log_start_offset >= 0, log_start_offset
    for name in fs.names(directory):
        if name.endswith((_PART_SUFFIX, _DELETED_SUFFIX)):
            fs.unlink(f"{directory}/{name}")
    for snapshot_id in snapshots:
        if snapshot_id.offset < log_start_offset:
            fs.unlink(f"{directory}/{snapshot_name(snapshot_id)}")
