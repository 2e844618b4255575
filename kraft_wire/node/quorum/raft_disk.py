"""The effects of the raft core that change a disk: log, snapshots, quorum-state, and their flushes.

PersistElectionState, TruncateLog and InstallSnapshot are durable when `perform` returns. FlushLog
only notes that a flush is wanted: `begin_flush` orders one for everything appended so far, so that
appends which come while it runs share the next one.

Disk errors: a full disk gives up the ballast first; then records are
refused, what a leader sent is asked for again later, and only what cannot be refused is raised. Any
other error of the metadata's disk is raised, and stops the process.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from kraft_wire.frozen import slotted
from kraft_wire.model import DiskFull, Offset, OffsetAndEpoch, ReportEvent, StorageError
from kraft_wire.node.event_log import Line
from kraft_wire.node.outputs import FlushLogs
from kraft_wire.node.quorum.quorum_log import QuorumLog
from kraft_wire.node.quorum.snapshot_arrival import SnapshotArrival
from kraft_wire.raft.effects import (
    AppendControlRecords,
    AppendFetched,
    AppendRecords,
    AppendSnapshotChunk,
    FlushLog,
    InstallSnapshot,
    PersistElectionState,
    TruncateLog,
)
from kraft_wire.raft.events import (
    Event,
    LogFlushed,
    RecordsAppended,
    SnapshotInstalled,
    SnapshotRefused,
)
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.quorum_state import write_quorum_state
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.log import PendingFlush
from kraft_wire.storage.snapshots.metadata_snapshot import CorruptMetadataSnapshot
from kraft_wire.wire.message import Message

__all__ = ["DiskEffect", "PendingAppend", "RaftDisk"]

DiskEffect: TypeAlias = (
    PersistElectionState
    | AppendRecords
    | AppendControlRecords
    | AppendFetched
    | FlushLog
    | TruncateLog
    | AppendSnapshotChunk
    | InstallSnapshot
)

_AGAIN_AFTER_MS: Final = 500
"""Pause after what a leader sent could not be taken: it would send the same again at once."""
_LINE_EVERY_MS: Final = 1_000
"""What keeps on failing fills no log."""


@slotted(eq=False)
class PendingAppend:
    """Records to append in one batch; how that went is in it when `RaftIo.write` returns."""

    values: tuple[bytes, ...]
    records: Sequence[Message]
    next_offset: Offset | None = None
    """Behind the batch once it is appended: it counts when it is committed up to here."""
    disk_full: DiskFull | None = None
    """Why it was not; None as well where this replica does not lead."""


@slotted
class _Flushes:
    """What is wanted of the disk, and what it is doing."""

    is_wanted: bool = False
    flush_id: int = -1
    running: PendingFlush | None = None


class RaftDisk:
    """The quorum's files; see the module."""

    def __init__(
        self,
        fs: FileSystem,
        directory: LogDirectory,
        quorum_log: QuorumLog,
        arrival: SnapshotArrival,
        report: ReportEvent,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.retired: list[str] = []
        """Renamed files of old snapshots, to be unlinked gradually."""
        self.again_at_ms: int | None = None
        """When RecordsAppended is due without any, so that the leader is asked again."""
        self.flushes_inline = False
        """Whether a flush is done at once: while a node starts or stops nobody else waits."""
        self._quorum_log = quorum_log
        self._log = quorum_log.log
        self._arrival = arrival
        self._report = report
        self._next_line_ms = 0
        self._flushes = _Flushes()
        self._lost_transfer: OffsetAndEpoch | None = None
        """A snapshot of which the full disk did not take a chunk."""

    def perform(self, effect: DiskEffect, now_ms: int, wall_ms: int) -> Event | None:
        """Do one thing; return what the replica is owed for it, if that is known already."""
        match effect:
            case AppendRecords() | AppendControlRecords():
                self._append(effect, now_ms, wall_ms)
                return None
            case AppendFetched():
                return self._append_fetched(effect, now_ms, wall_ms)
            case FlushLog():
                return self._flush()
            case PersistElectionState(election, data_version):
                fs, path = self.fs, self._log.directory
                self._durably(lambda: write_quorum_state(fs, path, election, data_version))
                return None
            case TruncateLog(end_offset):
                self._durably(lambda: self._quorum_log.truncate_to(end_offset))
                return LogFlushed()
            case AppendSnapshotChunk():
                return self._append_chunk(effect, now_ms)
            case InstallSnapshot(snapshot_id):
                return self._install(snapshot_id, now_ms)

    def _durably(self, action: Callable[[], None]) -> None:
        """Do what cannot be refused, on a full disk with the room that is kept for it."""
        try:
            action()
        except DiskFull as error:
            self.directory.note_error(None, error)
            action()

    # -- the log ---------------------------------------------------------------------------------

    def _append(
        self, effect: AppendRecords | AppendControlRecords, now_ms: int, wall_ms: int
    ) -> None:
        """Append for a leader; a disk that is full even without the ballast takes no record."""
        assert effect.base_offset == self._log.log_end_offset, (effect, self._log.log_end_offset)
        try:
            self._durably(lambda: self._append_once(effect, now_ms, wall_ms))
        except DiskFull as error:
            if isinstance(effect, AppendControlRecords):
                raise  # the replica already obeys them
            assert isinstance(effect.ticket, PendingAppend), effect
            effect.ticket.disk_full = error

    def _append_once(
        self, effect: AppendRecords | AppendControlRecords, now_ms: int, wall_ms: int
    ) -> None:
        log, epoch = self._quorum_log, effect.leader_epoch
        if isinstance(effect, AppendControlRecords):
            log.append_control(effect.messages, epoch, now_ms, wall_ms)
            return
        write = effect.ticket
        assert isinstance(write, PendingAppend), write
        log.append_values(effect.values, write.records, epoch, now_ms, wall_ms)
        write.next_offset = self._log.log_end_offset

    def _append_fetched(self, effect: AppendFetched, now_ms: int, wall_ms: int) -> Event | None:
        """Append what a leader sent as far as it is good."""
        assert effect.base_offset == self._log.log_end_offset, (effect, self._log.log_end_offset)
        try:
            controls = self._quorum_log.append_fetched(
                effect.leader_epoch, effect.records, now_ms, wall_ms
            )
        except DiskFull as error:
            self.directory.note_error(None, error)
            self._try_again_later("metadata_append_refused", error, now_ms)
            return None
        if controls is None:
            self._try_again_later(
                "metadata_batch_refused", "no good batch at the log's end", now_ms
            )
            return None
        return RecordsAppended(tuple(controls))

    def _try_again_later(self, line: str, reason: object, now_ms: int) -> None:
        """Ask the leader again after a pause: it would send the same at once."""
        if self.again_at_ms is None:
            self.again_at_ms = now_ms + _AGAIN_AFTER_MS
        self._complain(line, reason, now_ms)

    def _complain(self, line: str, reason: object, now_ms: int) -> None:
        """Write a line, unless another one stands there since a second."""
        if now_ms >= self._next_line_ms:
            self._next_line_ms = now_ms + _LINE_EVERY_MS
            self._report(line, offset=self._log.log_end_offset, reason=Line(reason))

    # -- flushes ---------------------------------------------------------------------------------

    def _flush(self) -> Event | None:
        if self.again_at_ms is not None and not self._log.unflushed_records:
            return None  # nothing was appended, and saying so would have it fetched again at once
        if self.flushes_inline:
            self._log.flush()
            return LogFlushed()
        self._flushes.is_wanted = True
        return None

    @property
    def wants_flush(self) -> bool:
        """Whether something was appended that no flush covers yet."""
        return self._flushes.is_wanted and self._flushes.running is None

    def begin_flush(self, flush_id: int) -> FlushLogs | None:
        """Return a flush of everything appended; None where the full disk keeps it back."""
        flushes = self._flushes
        assert self.wants_flush, flush_id
        try:
            flushes.running = self._log.begin_flush()
        except DiskFull as error:  # of an index: tried again when something else happens
            self.directory.note_error(None, error)
            return None
        flushes.is_wanted, flushes.flush_id = False, flush_id
        return FlushLogs(flush_id, [flushes.running])

    def completed(self, flush_id: int) -> bool:
        """Take note that a flush was carried out; tell whether it was one of these.

        One that was begun before a truncation makes nothing durable that was appended after it.
        """
        flushes = self._flushes
        if flushes.running is None or flush_id != flushes.flush_id:
            return False
        pending, flushes.running = flushes.running, None
        self._log.complete_flush(pending)
        return True

    def flush_now(self) -> None:
        """Do at once what is wanted or ordered: a stop does not wait for another thread."""
        self._flushes = _Flushes()
        self._log.flush()

    # -- snapshots that are fetched --------------------------------------------------------------

    def _append_chunk(self, effect: AppendSnapshotChunk, now_ms: int) -> Event | None:
        """Write a chunk; a full disk makes the replica begin again with its leader."""
        if effect.position == 0:
            self._lost_transfer = None
        elif self._lost_transfer == effect.snapshot_id:
            return None
        try:
            self._arrival.append_chunk(effect.snapshot_id, effect.position, effect.data)
        except DiskFull as error:
            self.directory.note_error(None, error)
            self._lost_transfer = effect.snapshot_id
            return self._refused(effect.snapshot_id, error, now_ms)
        return None

    def _install(self, snapshot_id: OffsetAndEpoch, now_ms: int) -> Event | None:
        """Make a fetched snapshot the log; one that is damaged is fetched again."""
        if self._lost_transfer == snapshot_id:
            return None  # the replica is told of its chunk
        try:
            self.retired += self._quorum_log.install_snapshot(snapshot_id)
        except CorruptMetadataSnapshot as error:
            return self._refused(snapshot_id, error, now_ms)
        controls = self._quorum_log.snapshots.control_records(snapshot_id)
        return SnapshotInstalled(snapshot_id, controls)

    def _refused(self, snapshot_id: OffsetAndEpoch, error: StorageError, now_ms: int) -> Event:
        self._complain("metadata_snapshot_refused", error, now_ms)
        return SnapshotRefused(snapshot_id)
