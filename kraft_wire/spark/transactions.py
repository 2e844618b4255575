"""What a stream with read_committed knows of each log's transactions, learnt batch by batch.

A scan goes on where it stopped. It is forgotten where the log no longer has the batch that was
scanned last (a truncation, another replica), and then begins anew: it is never more than a cache.
"""

from dataclasses import dataclass, field, replace

from kraft_wire.columnar import PartitionFiles, TransactionScan, batch_columns, read_windows
from kraft_wire.model import StorageError
from kraft_wire.spark.planning import LogPart
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.record_batch import HEADER_BYTES

__all__ = ["CommittedLogs"]


@dataclass(slots=True)
class _Scanned:
    """How far one log was scanned."""

    scan: TransactionScan = field(default_factory=TransactionScan)
    segment: str = ""
    position: int = 0
    """Behind the last whole batch of that segment that was scanned."""
    last_position: int = 0
    last_header: bytes = b""
    """Of that batch, none where the segment had no whole one yet."""


class CommittedLogs:
    """The transactions of logs, by directory."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._known: dict[str, _Scanned] = {}

    def end_offset(self, files: PartitionFiles) -> int:
        """Return the last stable offset of a log as it is now."""
        return self._scanned(files).scan.last_stable_offset

    def told(self, part: LogPart) -> LogPart:
        """Return a part of a scanned log that knows which of its transactions were aborted."""
        known = self._known[part.directory].scan.aborted
        end = part.offsets.end
        within = [
            each
            for each in known
            if each.last_offset >= part.offsets.start and (end is None or each.first_offset < end)
        ]
        return replace(part, aborted=tuple(within), history=())

    def _scanned(self, files: PartitionFiles) -> _Scanned:
        known = self._known.setdefault(files.directory, _Scanned())
        if not self._is_still_there(files, known):
            known = self._known[files.directory] = _Scanned()
        for segment in files.segments:
            if segment.file < known.segment:
                continue
            if segment.file > known.segment:
                known.segment, known.position, known.last_header = segment.file, 0, b""
            self._go_on(f"{files.directory}/{segment.file}", segment.size_bytes, known)
        return known

    def _go_on(self, path: str, size_bytes: int, known: _Scanned) -> None:
        """Scan the rest of a segment, up to its last whole batch."""
        try:
            file = self._fs.open_for_reading(path)
        except StorageError:
            return  # deleted meanwhile: the next listing does not have it
        for window in read_windows(file, size_bytes, known.position):
            columns = batch_columns(window)
            known.scan.add(columns)
            valid = columns.is_valid
            if valid.any():
                known.last_position = int(columns.position[valid][-1])
                known.last_header = file.pread(HEADER_BYTES, known.last_position)
                known.position = known.last_position + int(columns.size_bytes[valid][-1])
        file.close()

    def _is_still_there(self, files: PartitionFiles, known: _Scanned) -> bool:
        if not known.last_header:
            return True
        try:
            file = self._fs.open_for_reading(f"{files.directory}/{known.segment}")
        except StorageError:
            return False
        found = file.pread(HEADER_BYTES, known.last_position)
        file.close()
        return found == known.last_header
