"""A flush of a log that another thread can run: it has files, but no part of the log."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kraft_wire.model import Offset
from kraft_wire.storage.files import File
from kraft_wire.storage.segment import Segment

__all__ = ["PendingFlush"]


class PendingFlush(NamedTuple):
    """One flush; `Log.begin_flush` makes it, `Log.complete_flush` takes it back."""

    end_offset: Offset
    cuts_count: int
    directory_changes: int
    files: Sequence[File]
    segments: Sequence[tuple[Segment, int]]  # with the size that is covered
    sync_directory: Callable[[], None] | None

    def run(self) -> None:
        """Make it durable; FsyncFailed stops the process."""
        assert self.end_offset >= 0, self.end_offset
        for file in self.files:
            file.fsync()
        if self.sync_directory is not None:
            self.sync_directory()
