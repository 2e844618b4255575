"""A disk in memory, for nodes that live as long as a test: the third side of `storage.files`.

Nothing is durable, so a sync does nothing. A test may fill the disk or break it. Left out: the
effects of crashes (`sim/disk`).
"""

from collections.abc import Callable

from kraft_wire.model import DiskFull, FsyncFailed, StorageError
from kraft_wire.storage.files import Buffer, DirectoryLock, File, LockHeld, MissingFile

__all__ = ["MemoryFileSystem"]

_PLENTY_BYTES = 1 << 40


class _Content:
    """The bytes of one file, which outlive its name."""

    __slots__ = ("data", "is_read_only", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.is_read_only = False
        self.modified_ms = modified_ms


class _Directories:
    """Directories by path, each with its files by name; either can be refused."""

    def __init__(self) -> None:
        self.is_full = False
        """Whether every call that needs more space is refused."""
        self.is_broken = False
        """Whether every call that changes something fails."""
        self._directories: dict[str, dict[str, _Content]] = {"": {}}

    def enter(self, operation: str, path: str, growth: int = 0) -> None:
        """Fail a change on a broken disk, or one that needs space on a full disk."""
        if self.is_broken:
            raise StorageError(operation, path, "input/output error")
        if self.is_full and growth > 0:
            raise DiskFull(operation, path, "no space left on device")

    def _named(self, operation: str, path: str) -> tuple[dict[str, _Content], str]:
        """Return the directory that holds a file, and the file's name there."""
        parent, _, name = path.strip("/").rpartition("/")
        if parent not in self._directories:
            raise MissingFile(operation, path, "the directory does not exist")
        return self._directories[parent], name

    def exists(self, path: str) -> bool:
        directory, _, name = path.strip("/").rpartition("/")
        return self.is_directory(path) or name in self._directories.get(directory, ())

    def is_directory(self, path: str) -> bool:
        return path.strip("/") in self._directories

    def names(self, path: str) -> list[str]:
        place = path.strip("/")
        if place not in self._directories:
            raise MissingFile("list", path, "no such directory")
        return sorted([*self._directories[place], *self._subdirectories(place)])

    def _subdirectories(self, place: str) -> list[str]:
        head = f"{place}/" if place else ""
        below = [each[len(head) :] for each in self._directories if each.startswith(head) and each]
        return [name for name in below if "/" not in name]

    def make_directory(self, path: str) -> None:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            place = "/".join(parts[:depth])
            if place not in self._directories:
                if self.exists(place):
                    raise StorageError("mkdir", place, "file exists")
                self.enter("mkdir", place)
                self._directories[place] = {}

    def rename(self, old: str, new: str) -> None:
        self.enter("rename", old)
        if self.is_directory(old):
            before, after = old.strip("/"), new.strip("/")
            moved = [
                each
                for each in self._directories
                if each == before or each.startswith(f"{before}/")
            ]
            for each in moved:
                self._directories[after + each[len(before) :]] = self._directories.pop(each)
            return
        if self.is_directory(new):
            raise StorageError("rename", new, "is a directory")
        target, new_name = self._named("rename", new)
        source, old_name = self._named("rename", old)
        if old_name not in source:
            raise MissingFile("rename", old, "no such file")
        target[new_name] = source.pop(old_name)

    def remove_directory(self, path: str) -> None:
        self.enter("rmdir", path)
        if not self.is_directory(path) or self.names(path):
            raise StorageError("rmdir", path, "is not an empty directory")
        del self._directories[path.strip("/")]

    def sync_directory(self, path: str) -> None:
        try:
            self.enter("fsync", path)
        except StorageError as error:
            raise FsyncFailed(path, error.reason) from error


class MemoryFileSystem(_Directories):
    """A disk in memory."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        super().__init__()
        self.wall_ms = wall_ms
        self._locks: set[str] = set()

    def _content(self, operation: str, path: str) -> _Content:
        directory, name = self._named(operation, path)
        if name not in directory:
            raise MissingFile(operation, path, "no such file")
        return directory[name]

    def open(self, path: str, *, create: bool = False) -> File:
        if self.is_directory(path):
            raise StorageError("open", path, "is a directory")
        directory, name = self._named("open", path)
        if create and name not in directory:
            self.enter("open", path)
            directory[name] = _Content(self.wall_ms())
        content = self._content("open", path)
        if content.is_read_only:
            raise StorageError("open", path, "permission denied")
        return _MemoryFile(self, path, content)

    def open_for_reading(self, path: str) -> File:
        return _MemoryFile(self, path, self._content("open", path))

    def read(self, path: str) -> bytes:
        return bytes(self._content("read", path).data)

    def unlink(self, path: str) -> None:
        if self.is_directory(path):
            raise StorageError("unlink", path, "is a directory")
        if self.exists(path):
            self.enter("unlink", path)
            directory, name = self._named("unlink", path)
            del directory[name]

    def make_read_only(self, path: str) -> None:
        self._content("chmod", path).is_read_only = True

    def lock(self, path: str) -> DirectoryLock:
        if path in self._locks:
            raise LockHeld("lock", path, "another node holds it")
        self._locks.add(path)
        return _MemoryLock(self._locks, path)

    def release_locks(self) -> None:
        """Give up every lock, as the end of a process does."""
        self._locks.clear()

    def free_bytes(self, path: str) -> int:
        return 0 if self.is_full else _PLENTY_BYTES

    def total_bytes(self, path: str) -> int:
        return _PLENTY_BYTES


class _MemoryFile:
    """An open file."""

    __slots__ = ("_content", "_fs", "path")

    def __init__(self, fs: MemoryFileSystem, path: str, content: _Content) -> None:
        self._fs = fs
        self._content = content
        self.path = path

    def size_bytes(self) -> int:
        return len(self._content.data)

    def pread(self, size_bytes: int, position: int) -> bytes:
        return bytes(memoryview(self._content.data)[position : position + size_bytes])

    def pwrite(self, data: Buffer, position: int) -> None:
        content = self._content.data
        self._fs.enter("write", self.path, position + len(data) - len(content))
        if not data:
            return
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data
        self._content.modified_ms = self._fs.wall_ms()

    def truncate(self, size_bytes: int) -> None:
        self._resize("truncate", size_bytes)
        del self._content.data[size_bytes:]

    def reserve(self, size_bytes: int) -> None:
        self._resize("reserve", size_bytes)

    def _resize(self, operation: str, size_bytes: int) -> None:
        """Fill up with zeros."""
        growth = size_bytes - len(self._content.data)
        self._fs.enter(operation, self.path, growth)
        if growth > 0:
            self._content.data.extend(bytes(growth))

    def fsync(self) -> None:
        try:
            self._fs.enter("fsync", self.path)
        except StorageError as error:
            raise FsyncFailed(self.path, error.reason) from error

    def forget_clean_pages(self) -> None:
        """Do nothing: reads always return the written bytes."""

    def fileno(self) -> int:
        return -1

    def modified_ms(self) -> int:
        return self._content.modified_ms

    def set_modified_ms(self, modified_ms: int) -> None:
        self._content.modified_ms = modified_ms

    def close(self) -> None:
        """Do nothing: the content lasts as long as its name or a holder."""


class _MemoryLock:
    """A held lock."""

    __slots__ = ("_held", "_path")

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)
