"""`MetadataSnapshots`: the complete snapshots of the metadata log, and the one being fetched.

KIP-630: a fetched snapshot grows under a `.part` name and is verified before it is valid; the state
machine's own is written batch by batch; both exist whole or not at all (`snapshots`). Reads for a
follower copy nothing. `open_snapshots` runs at start: it completes or undoes interrupted work.

The formatted checkpoint (0, 0) of a dynamic quorum is not counted, served or removed; it can only
be read. Removal of old snapshots: `snapshots_cleaning`.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from kraft_wire.model import FileSlice, LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.log import Log
from kraft_wire.storage.snapshots.contents import (
    VOTER_CONTROL_TYPES,
    SnapshotHead,
    control_messages,
    snapshot_batches,
)
from kraft_wire.storage.snapshots.metadata_snapshot import (
    CorruptMetadataSnapshot,
    SnapshotReader,
    SnapshotWriter,
    list_snapshots,
    remove_leftovers,
    retire_snapshots,
)
from kraft_wire.wire.generated.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.wire.message import Message, Part
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["FORMATTED_ID", "MetadataSnapshots", "open_snapshots"]

FORMATTED_ID: Final = OffsetAndEpoch(Offset(0), LeaderEpoch(0))
"""Id of the checkpoint that formatting a dynamic quorum leaves: voters, no metadata."""


class MetadataSnapshots:
    """The snapshots of one metadata log; `raft` reads it as its SnapshotView.

    Errors of all writes: DiskFull and StorageError, with unchanged complete snapshots, and with
    the unfinished file removed; FsyncFailed stops the process.
    """

    def __init__(self, fs: FileSystem, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._sizes: dict[OffsetAndEpoch, int] = {}
        """Complete ones, oldest first."""
        self._partial: SnapshotWriter | None = None
        self._served: SnapshotReader | None = None
        self._attempts_count = 0
        for snapshot_id in list_snapshots(fs, directory):
            if snapshot_id != FORMATTED_ID:
                self._note(snapshot_id)
        assert FORMATTED_ID not in self._sizes, directory

    # -- what there is ---------------------------------------------------------------------------

    @property
    def ids(self) -> list[OffsetAndEpoch]:
        """The complete snapshots, oldest first."""
        assert self._partial is None or self._partial.snapshot_id != FORMATTED_ID
        return list(self._sizes)

    @property
    def latest_id(self) -> OffsetAndEpoch | None:
        """Newest snapshot, by epoch and then offset."""
        assert FORMATTED_ID not in self._sizes, self._directory
        return next(reversed(self._sizes), None)

    @property
    def earliest_id(self) -> OffsetAndEpoch | None:
        """Oldest snapshot."""
        assert FORMATTED_ID not in self._sizes, self._directory
        return next(iter(self._sizes), None)

    def size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """Return the size of a snapshot, None if it does not exist."""
        return self._sizes.get(snapshot_id)

    def _note(self, snapshot_id: OffsetAndEpoch) -> None:
        """Add a snapshot that has become complete."""
        reader = SnapshotReader(self._fs, self._directory, snapshot_id)
        self._sizes[snapshot_id] = reader.size_bytes
        reader.close()
        ordered = sorted(self._sizes, key=lambda known: (known.epoch, known.offset))
        self._sizes = {known: self._sizes[known] for known in ordered}
        assert snapshot_id in self._sizes, snapshot_id

    # -- reading ---------------------------------------------------------------------------------

    def batches(self, snapshot_id: OffsetAndEpoch) -> Iterator[RecordBatch]:
        """Yield the batches of a snapshot, verified, in chunks of bounded memory.

        CorruptMetadataSnapshot at the first error, MissingFile if it does not exist.
        """
        assert snapshot_id.offset >= 0, snapshot_id
        reader = SnapshotReader(self._fs, self._directory, snapshot_id)
        try:
            yield from reader.batches()
        finally:
            reader.close()

    def control_records(self, snapshot_id: OffsetAndEpoch) -> tuple[Message, ...]:
        """Return KRaftVersionRecord and VotersRecord of a snapshot, in file order (KIP-853)."""
        head = next(self.batches(snapshot_id))
        assert head.is_control, snapshot_id
        return tuple(
            message for kind, message in control_messages(head) if kind in VOTER_CONTROL_TYPES
        )

    def header_timestamp_ms(self, snapshot_id: OffsetAndEpoch) -> int:
        """Return the append time of the newest batch that a snapshot contains."""
        _, header = control_messages(next(self.batches(snapshot_id)))[0]
        assert isinstance(header, SnapshotHeaderRecord), header
        return header.last_contained_log_timestamp

    def slice(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> FileSlice:
        """Return bytes of a snapshot; the slice outlives the snapshot."""
        assert snapshot_id in self._sizes, snapshot_id
        if self._served is None or self._served.snapshot_id != snapshot_id:
            self._served = SnapshotReader(self._fs, self._directory, snapshot_id)
        return self._served.slice(position, max_bytes)

    # -- writing ---------------------------------------------------------------------------------

    def writing(
        self, snapshot_id: OffsetAndEpoch, head: SnapshotHead, values: Iterable[bytes]
    ) -> Iterator[int]:
        """Write a snapshot in steps: each step writes one batch and yields the size so far.

        It is valid and durable once the iterator is exhausted. An iterator that is closed before
        leaves no file, and neither does a snapshot whose id exists already.
        """
        assert snapshot_id != FORMATTED_ID, "formatting writes that one"
        assert snapshot_id.offset > 0, "nothing is contained in it"
        if snapshot_id in self._sizes:
            return
        writer = self._begin(snapshot_id)
        try:
            for batch in snapshot_batches(snapshot_id, head, values):
                writer.append(batch)
                yield writer.size_bytes
            writer.freeze()
        finally:
            _abandon(writer)
        self._note(snapshot_id)

    def _begin(self, snapshot_id: OffsetAndEpoch) -> SnapshotWriter:
        self._attempts_count += 1
        assert self._attempts_count > 0
        return SnapshotWriter(self._fs, self._directory, snapshot_id, self._attempts_count)

    # -- fetching --------------------------------------------------------------------------------

    def append_chunk(self, snapshot_id: OffsetAndEpoch, position: int, data: Part) -> None:
        """Add a chunk to the fetched snapshot; position 0 starts or restarts it."""
        if position == 0:
            self.abandon_partial()
            self._partial = self._begin(snapshot_id)
        partial = self._partial
        assert partial is not None, (snapshot_id, position)
        assert (partial.snapshot_id, partial.size_bytes) == (snapshot_id, position), position
        try:
            partial.append(data.read() if isinstance(data, FileSlice) else data)
        except StorageError:
            self.abandon_partial()
            raise

    def arrived(self) -> Iterator[RecordBatch]:
        """Yield the batches of the fetched snapshot that are whole by now, each once, verified.

        `freeze` reads only the batches that were not read here. CorruptMetadataSnapshot for an
        invalid batch; `freeze` raises the same error.
        """
        assert self._partial is not None, "nothing is being fetched"
        return self._partial.arrived()

    def freeze(self, snapshot_id: OffsetAndEpoch) -> None:
        """Verify the fetched file, from the first byte to the last, and make it valid, durably.

        CorruptMetadataSnapshot, with the unfinished file removed, if it is not a whole snapshot.
        """
        partial = self._partial
        assert partial is not None, snapshot_id
        assert partial.snapshot_id == snapshot_id, (partial.snapshot_id, snapshot_id)
        try:
            _verify(partial)
            partial.freeze()
        finally:
            self.abandon_partial()
        self._note(snapshot_id)

    def abandon_partial(self) -> None:
        """Remove the partial file; harmless without one."""
        if self._partial is not None:
            _abandon(self._partial)
        self._partial = None

    # -- dropping --------------------------------------------------------------------------------

    def delete_before(self, snapshot_id: OffsetAndEpoch) -> list[str]:
        """Remove the snapshots older than this one; return the renamed files for unlinking.

        Kafka erases them a minute later; one that stays is removed at the next start.
        """
        assert snapshot_id in self._sizes, snapshot_id
        retired = retire_snapshots(self._fs, self._directory, snapshot_id)
        left = list_snapshots(self._fs, self._directory)
        self._sizes = {known: size for known, size in self._sizes.items() if known in left}
        if self._served is not None and self._served.snapshot_id not in self._sizes:
            self._served = None
        assert snapshot_id in self._sizes, snapshot_id
        return retired

    def install(self, log: Log, snapshot_id: OffsetAndEpoch) -> list[str]:
        """Freeze the fetched snapshot and make it the whole log, durably; errors are `freeze`'s.

        In this order: a power loss in between leaves a snapshot that the log does not reach, which
        `open_snapshots` completes. Return the files of older snapshots, as `delete_before`.
        """
        assert log.directory == self._directory, log.directory
        self.freeze(snapshot_id)
        log.truncate_fully_and_start_at(snapshot_id.offset)
        return self.delete_before(snapshot_id)


def _abandon(writer: SnapshotWriter) -> None:
    """Remove an unfinished file; the next start removes it if this fails."""
    assert writer.size_bytes >= 0, writer.snapshot_id
    with suppress(StorageError):
        writer.abandon()


def _verify(partial: SnapshotWriter) -> None:
    """Read a fetched file; CorruptMetadataSnapshot for any error that a start would refuse."""
    position = partial.read_bytes
    for batch in partial.arrived():
        try:
            control_messages(batch)
            batch.check_records()
        except CorruptRecordBatch as bad:  # records, or their compression
            raise CorruptMetadataSnapshot(partial.path, position, bad.reason) from bad
        position += batch.size_bytes
    partial.check_end()
    assert position == partial.size_bytes, (position, partial.size_bytes)


def open_snapshots(fs: FileSystem, log: Log) -> MetadataSnapshots:
    """Open the snapshots beside an opened metadata log, and make both consistent.

    1. The newest snapshot is not part of the log: power was lost between its installation and the
    log's reset. The snapshot is verified, then the log restarts at its end.
    2. The log begins above 0 and no snapshot reaches its start: StorageError, nothing is removed.
    3. Unfinished and retired files are removed, and snapshots below the log's start. The log's
    start, which only its segments' names have, moves up to the oldest snapshot again.
    """
    found = [known for known in list_snapshots(fs, log.directory) if known != FORMATTED_ID]
    if found and not _contains(log, found[-1]):
        for _ in SnapshotReader(fs, log.directory, found[-1]).batches():
            pass
        log.truncate_fully_and_start_at(found[-1].offset)
    remove_leftovers(fs, log.directory, log.log_start_offset)
    snapshots = MetadataSnapshots(fs, log.directory)
    earliest = snapshots.earliest_id
    if log.log_start_offset > 0 and earliest is not None:
        log.advance_log_start_offset(min(earliest.offset, log.log_end_offset))
    assert earliest is None or earliest.offset >= log.log_start_offset, earliest
    return snapshots


def _contains(log: Log, snapshot_id: OffsetAndEpoch) -> bool:
    """Return whether the log continues from the snapshot's end, or has the record before it."""
    assert snapshot_id.offset > 0, snapshot_id
    if not log.log_start_offset <= snapshot_id.offset <= log.log_end_offset:
        return log.log_start_offset > snapshot_id.offset
    if log.log_start_offset == snapshot_id.offset:
        first = log.epochs.epoch_at(snapshot_id.offset)
        return first is None or first >= snapshot_id.epoch
    return log.epochs.epoch_at(Offset(snapshot_id.offset - 1)) == snapshot_id.epoch
