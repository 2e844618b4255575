"""The effects of the raft core that change a disk: log, snapshots, quorum-state, and their flushes.

PersistElectionState, TruncateLog and InstallSnapshot are durable when `perform` returns. FlushLog
only requests a flush: `begin_flush` orders one for everything appended so far, and appends during
that flush share the next one.

Disk errors: a full disk first releases the ballast. Then records are refused, a leader's batches
are fetched again later, and only errors of writes that cannot be refused are raised. Any other
error of the metadata's disk is raised, and stops the process.
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
from kraft_wire.storage.pending_flush import PendingFlush
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
"""Pause after a refused batch of a leader, which would send the same batch again at once."""
_LINE_EVERY_MS: Final = 1_000
"""Limits the log lines of repeated failures."""


@slotted(eq=False)
class PendingAppend:
    """Records to append in one batch; it has the result when `RaftIo.write` returns."""

    values: tuple[bytes, ...]
    records: Sequence[Message]
    next_offset: Offset | None = None
    """End of the appended batch: it is committed once the high watermark is here."""
    disk_full: DiskFull | None = None
    """Error of the append; also None if this replica does not lead."""


@slotted
class _Flushes:
    """The requested flush, and the one in progress."""

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
        """When RecordsAppended is due without records, so that the replica fetches again."""
        self.flushes_inline = False
        """Whether flushes run at once: a node that starts or stops delays no request."""
        self._quorum_log = quorum_log
        self._log = quorum_log.log
        self._arrival = arrival
        self._report = report
        self._next_line_ms = 0
        self._flushes = _Flushes()
        self._lost_transfer: OffsetAndEpoch | None = None
        """A snapshot with a chunk that a full disk refused."""

    def perform(self, effect: DiskEffect, now_ms: int, wall_ms: int) -> Event | None:
        """Perform one effect; return the event that is due for it, if it is known already."""
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
        """Perform an effect that cannot be refused, on a full disk with the reserved space."""
        try:
            action()
        except DiskFull as error:
            self.directory.note_error(None, error)
            action()

    # -- the log ---------------------------------------------------------------------------------

    def _append(
        self, effect: AppendRecords | AppendControlRecords, now_ms: int, wall_ms: int
    ) -> None:
        """Append for a leader; a disk that is full even without the ballast refuses records."""
        assert effect.base_offset == self._log.log_end_offset, (effect, self._log.log_end_offset)
        try:
            self._durably(lambda: self._append_once(effect, now_ms, wall_ms))
        except DiskFull as error:
            if isinstance(effect, AppendControlRecords):
                raise  # the replica already applies them
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
        """Append the leader's batches before the first invalid one."""
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
        """Fetch again after a pause: without it the leader would send the same batch at once."""
        if self.again_at_ms is None:
            self.again_at_ms = now_ms + _AGAIN_AFTER_MS
        self._complain(line, reason, now_ms)

    def _complain(self, line: str, reason: object, now_ms: int) -> None:
        """Report a line, at most one a second."""
        if now_ms >= self._next_line_ms:
            self._next_line_ms = now_ms + _LINE_EVERY_MS
            self._report(line, offset=self._log.log_end_offset, reason=Line(reason))

    # -- flushes ---------------------------------------------------------------------------------

    def _flush(self) -> Event | None:
        if self.again_at_ms is not None and not self._log.unflushed_records:
            return None  # nothing was appended; a report would cause another fetch at once
        if self.flushes_inline:
            self._log.flush()
            return LogFlushed()
        self._flushes.is_wanted = True
        return None

    @property
    def wants_flush(self) -> bool:
        """Whether there are appends that no flush covers yet."""
        return self._flushes.is_wanted and self._flushes.running is None

    def begin_flush(self, flush_id: int) -> FlushLogs | None:
        """Return a flush of everything appended; None if a full disk prevents it."""
        flushes = self._flushes
        assert self.wants_flush, flush_id
        try:
            flushes.running = self._log.begin_flush()
        except DiskFull as error:  # of an index: tried again at the next event
            self.directory.note_error(None, error)
            return None
        flushes.is_wanted, flushes.flush_id = False, flush_id
        return FlushLogs(flush_id, [flushes.running])

    def completed(self, flush_id: int) -> bool:
        """Note a completed flush; return whether it was one of these.

        A flush that began before a truncation does not cover appends after it.
        """
        flushes = self._flushes
        if flushes.running is None or flush_id != flushes.flush_id:
            return False
        pending, flushes.running = flushes.running, None
        self._log.complete_flush(pending)
        return True

    def flush_now(self) -> None:
        """Flush at once what is requested or ordered: a stop does not wait for another thread."""
        self._flushes = _Flushes()
        self._log.flush()

    # -- snapshots that are fetched --------------------------------------------------------------

    def _append_chunk(self, effect: AppendSnapshotChunk, now_ms: int) -> Event | None:
        """Write a chunk; on a full disk the replica fetches the snapshot again later."""
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
        """Make a fetched snapshot the log; a damaged one is fetched again."""
        if self._lost_transfer == snapshot_id:
            return None  # the replica gets the result of its chunk
        try:
            self.retired += self._quorum_log.install_snapshot(snapshot_id)
        except CorruptMetadataSnapshot as error:
            return self._refused(snapshot_id, error, now_ms)
        controls = self._quorum_log.snapshots.control_records(snapshot_id)
        return SnapshotInstalled(snapshot_id, controls)

    def _refused(self, snapshot_id: OffsetAndEpoch, error: StorageError, now_ms: int) -> Event:
        self._complain("metadata_snapshot_refused", error, now_ms)
        return SnapshotRefused(snapshot_id)
