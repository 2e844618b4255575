"""Safe handling of a full disk.

While less than a reserve is free, appends of records are refused *before* anything is written. A
ballast file holds unused blocks. If a write finds the disk full anyway, the ballast is released, so
that the metadata log and the checkpoints can still be written. When space is free again, the
ballast is allocated again and appends continue, without a restart.
"""

from kraft_wire.model import DiskFull
from kraft_wire.storage.files import FileSystem

__all__ = ["DiskSpace"]

_BALLAST = ".kraft-wire-ballast"


class DiskSpace:
    """The space of one log directory; appends check `is_full`."""

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
        """Free bytes that a full disk needs before appends continue."""
        return self._reserve_bytes + self._ballast_bytes

    def free_bytes(self) -> int:
        """Return the free bytes of the disk, without the ballast."""
        return self._fs.free_bytes(self._directory)

    def refresh(self) -> None:
        """Check the free space, and update `is_full`; the host calls this by timer."""
        free = self._fs.free_bytes(self._directory)
        assert free >= 0, free
        if free < self._reserve_bytes:
            self.is_full = True
        elif self.is_full and free >= self.needed_bytes:
            self.is_full = False
        if not self.is_full:
            self._take_ballast()

    def note_full(self) -> None:
        """Handle a write to a full disk: refuse appends from now on and release the ballast."""
        self.is_full = True
        if self._ballast_bytes:
            self._fs.unlink(self._path)
        assert self.is_full

    def _take_ballast(self) -> None:
        """Reserve the blocks, or set `is_full` if they are not available."""
        assert not self.is_full, self._path
        if not self._ballast_bytes or self._fs.exists(self._path):
            return
        assert self._ballast_bytes > 0, self._ballast_bytes
        try:
            file = self._fs.open(self._path, create=True)
            try:
                file.reserve(self._ballast_bytes)
            finally:
                file.close()
        except DiskFull:
            self.note_full()
        assert self.is_full or self._fs.exists(self._path), self._path
