"""Running out of disk space without breaking.

Appends of records are refused *before* anything is written while less than a reserve is free. A
ballast file holds blocks that nothing uses; when a write meets a full disk all the same, the
ballast is given up, so that the metadata log and the checkpoints can still be written. When space
returns, the ballast is taken again and appends continue, without a restart.
"""

from kraft_wire.model import DiskFull
from kraft_wire.storage.files import FileSystem

__all__ = ["DiskSpace"]

_BALLAST = ".kraft-wire-ballast"


class DiskSpace:
    """The space of one log directory; `is_full` is what an append looks at."""

    __slots__ = ("_ballast_bytes", "_directory", "_fs", "_reserve_bytes", "is_full")

    def __init__(
        self, fs: FileSystem, directory: str, *, ballast_bytes: int = 0, reserve_bytes: int = 0
    ) -> None:
        assert ballast_bytes >= 0, ballast_bytes
        assert reserve_bytes >= 0, reserve_bytes
        self._fs = fs
        self._directory = directory
        self._ballast_bytes = ballast_bytes
        self._reserve_bytes = reserve_bytes
        self.is_full = False

    @property
    def _path(self) -> str:
        return f"{self._directory}/{_BALLAST}"

    @property
    def needed_bytes(self) -> int:
        """Free bytes that a full disk needs before appends go on."""
        return self._reserve_bytes + self._ballast_bytes

    def free_bytes(self) -> int:
        """Return what the disk has free, besides the ballast."""
        return self._fs.free_bytes(self._directory)

    def refresh(self) -> None:
        """Look at the free space, and become full or healed by it; the host calls this by timer."""
        free = self._fs.free_bytes(self._directory)
        assert free >= 0, free
        if free < self._reserve_bytes:
            self.is_full = True
        elif self.is_full and free >= self.needed_bytes:
            self.is_full = False
        if not self.is_full:
            self._take_ballast()

    def note_full(self) -> None:
        """A write met a full disk: refuse appends from now on and give the ballast up."""
        self.is_full = True
        if self._ballast_bytes:
            self._fs.unlink(self._path)
        assert self.is_full

    def _take_ballast(self) -> None:
        """Reserve the blocks, or become full when they are not to be had."""
        assert not self.is_full, self._path
        if not self._ballast_bytes or self._fs.exists(self._path):
            return
        try:
            file = self._fs.open(self._path, create=True)
            try:
                file.reserve(self._ballast_bytes)
            finally:
                file.close()
        except DiskFull:
            self.note_full()
        assert self.is_full or self._fs.exists(self._path), self._path
