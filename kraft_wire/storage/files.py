"""The only door to the operating system's files: every other module asks through `FileSystem`.

Production is `OsFileSystem`; the simulator's twin is `sim/files.py`. Two rules live here because
nobody else can keep them: a failed fsync is never retried (the kernel marks the pages clean, so the
second call would report success over lost data), and a file is replaced only by write, fsync,
rename, fsync of the directory. Errors leave as three kinds: `DiskFull`, which heals; any other
`StorageError`, which takes the log directory offline; `FsyncFailed`, which must stop the process
and for that reason is not a `StorageError`.

Left out: asynchronous I/O. A host that wants to flush elsewhere calls `File.fsync` in a thread.
"""

import errno
import fcntl
import os
from typing import Protocol, TypeAlias

from kraft_wire.model import DiskFull, FsyncFailed, StorageError

__all__ = [
    "Buffer",
    "DirectoryLock",
    "DiskFull",
    "File",
    "FileSystem",
    "FsyncFailed",
    "LockHeld",
    "MissingFile",
    "OsFileSystem",
    "StorageError",
    "remove_tree",
    "replace_file",
]

Buffer: TypeAlias = bytes | bytearray | memoryview

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_TEMPORARY_SUFFIX = ".tmp"


class MissingFile(StorageError):
    """The file or directory does not exist."""


class LockHeld(StorageError):
    """Another process (or another node in this one) holds the lock."""


class File(Protocol):
    """An open file with positioned reads and writes; closed when the last holder drops it."""

    path: str

    def size_bytes(self) -> int:
        """Return the length of the file."""
        ...

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Read up to `size_bytes` at `position`; shorter only at the end of the file."""
        ...

    def pwrite(self, data: Buffer, position: int) -> None:
        """Write all of `data` at `position`, or raise; a raise may leave a part written."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend (with zeros) to `size_bytes`."""
        ...

    def reserve(self, size_bytes: int) -> None:
        """Take disk blocks so that the first `size_bytes` cannot run out of space."""
        ...

    def fsync(self) -> None:
        """Make content and length durable; raises FsyncFailed, also when asked again."""
        ...

    def fileno(self) -> int:
        """Return the descriptor for sendfile, or -1 where there is none."""
        ...

    def close(self) -> None:
        """Close now; harmless when repeated."""
        ...


class DirectoryLock(Protocol):
    """A held lock; the process's end releases it too."""

    def release(self) -> None:
        """Give the lock up; harmless when repeated."""
        ...


class FileSystem(Protocol):
    """What storage may ask of the disk. Paths use `/`; errors are those of this module."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; MissingFile unless `create`."""
        ...

    def open_for_reading(self, path: str) -> File:
        """Open read-only, which snapshots need: their mode forbids writing."""
        ...

    def read(self, path: str) -> bytes:
        """Return a whole (small) file; MissingFile when there is none."""
        ...

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory of that name is there."""
        ...

    def is_directory(self, path: str) -> bool:
        """Tell whether the path is a directory."""
        ...

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """Create the directory and its parents; fine when it is there already."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename atomically, replacing `new`; durable after `sync_directory`."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file; fine when it is gone already."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in the directory durable."""
        ...

    def make_read_only(self, path: str) -> None:
        """Forbid writing, as Kafka does to frozen snapshots."""
        ...

    def lock(self, path: str) -> DirectoryLock:
        """Take the lock file at `path` or raise LockHeld."""
        ...

    def free_bytes(self, path: str) -> int:
        """Return the space that an unprivileged process may still use there."""
        ...

    def total_bytes(self, path: str) -> int:
        """Return the size of the volume that `path` is on."""
        ...


def replace_file(fs: FileSystem, path: str, content: bytes, *, durable: bool = True) -> None:
    """Put `content` at `path` so that a crash leaves the old file whole or the new one whole.

    Raises DiskFull or StorageError with the old file untouched; FsyncFailed as always. Without
    `durable` the directory is not synced: the old file may come back after power loss.
    """
    assert path.rpartition("/")[2], path
    assert not path.endswith(_TEMPORARY_SUFFIX), path
    directory, slash, _ = path.rpartition("/")
    assert slash, path
    temporary = path + _TEMPORARY_SUFFIX
    file = fs.open(temporary, create=True)
    try:
        file.truncate(0)
        file.pwrite(content, 0)
        file.fsync()
    finally:
        file.close()
    fs.rename(temporary, path)
    if durable:
        fs.sync_directory(directory)


def remove_tree(fs: FileSystem, path: str) -> None:
    """Remove a directory with all that is in it; fine when it is gone already."""
    assert path.strip("/"), path
    if not fs.exists(path):
        return
    for name in fs.names(path):
        child = f"{path}/{name}"
        if fs.is_directory(child):
            remove_tree(fs, child)
        else:
            fs.unlink(child)
    fs.remove_directory(path)


def _mapped(error: OSError, operation: str, path: str) -> StorageError:
    """Turn an operating system error into ours; the kind decides what the node does next."""
    assert operation, path
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return DiskFull(operation, path, reason)
    if error.errno == errno.ENOENT:
        return MissingFile(operation, path, reason)
    return StorageError(operation, path, reason)


class _OsFile:
    """An open descriptor. `__del__` closes it, so that a reply may outlive a deleted segment."""

    __slots__ = ("_descriptor", "_poisoned", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        assert descriptor >= 0, descriptor
        self.path = path
        self._descriptor = descriptor
        self._poisoned: str | None = None

    def size_bytes(self) -> int:
        assert self._descriptor >= 0, self.path
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise _mapped(error, "stat", self.path) from error

    def pread(self, size_bytes: int, position: int) -> bytes:
        assert min(size_bytes, position) >= 0, (size_bytes, position)
        try:
            return os.pread(self._descriptor, size_bytes, position)
        except OSError as error:
            raise _mapped(error, "read", self.path) from error

    def pwrite(self, data: Buffer, position: int) -> None:
        assert self._poisoned is None, self._poisoned
        size = len(data)
        try:
            written = os.pwrite(self._descriptor, data, position)
            while written < size:
                rest = memoryview(data)[written:]
                written += os.pwrite(self._descriptor, rest, position + written)
        except OSError as error:
            raise _mapped(error, "write", self.path) from error

    def truncate(self, size_bytes: int) -> None:
        assert size_bytes >= 0, size_bytes
        try:
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as error:
            raise _mapped(error, "truncate", self.path) from error

    def reserve(self, size_bytes: int) -> None:
        assert size_bytes > 0, size_bytes
        try:
            os.posix_fallocate(self._descriptor, 0, size_bytes)
        except OSError as error:
            raise _mapped(error, "reserve", self.path) from error

    def fsync(self) -> None:
        assert self._descriptor >= 0, self.path
        if self._poisoned is not None:
            raise FsyncFailed(self.path, self._poisoned)
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._poisoned = error.strerror or str(error)
            raise FsyncFailed(self.path, self._poisoned) from error

    def fileno(self) -> int:
        assert self._descriptor >= 0, self.path
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class _OsLock:
    """Both kinds of lock: POSIX, which a JVM respects, and BSD, which this process respects."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str) -> None:
        assert path.strip("/"), path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise LockHeld("lock", path, "another process holds it") from error

    def release(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class OsFileSystem:
    """The real disk."""

    def open(self, path: str, *, create: bool = False) -> File:
        assert path, "a path is needed"
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return _OsFile(path, os.open(path, flags, 0o644))
        except OSError as error:
            raise _mapped(error, "open", path) from error

    def open_for_reading(self, path: str) -> File:
        assert path, "a path is needed"
        try:
            return _OsFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise _mapped(error, "open", path) from error

    def read(self, path: str) -> bytes:
        assert path, "a path is needed"
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise _mapped(error, "read", path) from error

    def exists(self, path: str) -> bool:
        assert path, "a path is needed"
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        assert path, "a path is needed"
        return os.path.isdir(path)

    def names(self, path: str) -> list[str]:
        assert path, "a path is needed"
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            raise _mapped(error, "list", path) from error

    def make_directory(self, path: str) -> None:
        assert path.strip("/"), path
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise _mapped(error, "mkdir", path) from error

    def rename(self, old: str, new: str) -> None:
        assert old != new, old
        try:
            os.replace(old, new)
        except OSError as error:
            raise _mapped(error, "rename", old) from error

    def unlink(self, path: str) -> None:
        assert path.strip("/"), path
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _mapped(error, "unlink", path) from error

    def remove_directory(self, path: str) -> None:
        assert path.strip("/"), path
        try:
            os.rmdir(path)
        except OSError as error:
            raise _mapped(error, "rmdir", path) from error

    def sync_directory(self, path: str) -> None:
        assert path, "a path is needed"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _mapped(error, "open", path) from error
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise FsyncFailed(path, error.strerror or str(error)) from error
        finally:
            os.close(descriptor)

    def make_read_only(self, path: str) -> None:
        assert path.strip("/"), path
        try:
            os.chmod(path, 0o400)
        except OSError as error:
            raise _mapped(error, "chmod", path) from error

    def lock(self, path: str) -> DirectoryLock:
        assert path.strip("/"), path
        try:
            return _OsLock(path)
        except OSError as error:
            raise _mapped(error, "lock", path) from error

    def free_bytes(self, path: str) -> int:
        assert path, "a path is needed"
        try:
            status = os.statvfs(path)
        except OSError as error:
            raise _mapped(error, "statvfs", path) from error
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        assert path, "a path is needed"
        try:
            status = os.statvfs(path)
        except OSError as error:
            raise _mapped(error, "statvfs", path) from error
        return status.f_blocks * status.f_frsize
