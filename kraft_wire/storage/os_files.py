"""The operating system's files: implements the protocols of `files` for production.

The only module below the hosts that calls the operating system. Each call converts its errors to
those of `files`; their kind decides what the node does next.
"""

import errno
import fcntl
import os

from kraft_wire.storage.files import (
    Buffer,
    DirectoryLock,
    DiskFull,
    File,
    FsyncFailed,
    LockHeld,
    MissingFile,
    StorageError,
)

__all__ = ["OsFileSystem"]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NANOSECONDS_PER_MS = 1_000_000


def _mapped(error: OSError, operation: str, path: str, *, gives_back: bool = False) -> StorageError:
    """Return an operating system error as one of `files`, by its kind."""
    assert operation, path
    reason = error.strerror or str(error)
    if error.errno in _FULL and not gives_back:
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

    def modified_ms(self) -> int:
        assert self._descriptor >= 0, self.path
        try:
            return os.fstat(self._descriptor).st_mtime_ns // _NANOSECONDS_PER_MS
        except OSError as error:
            raise _mapped(error, "stat", self.path) from error

    def set_modified_ms(self, modified_ms: int) -> None:
        assert modified_ms >= 0, modified_ms
        stamp = modified_ms * _NANOSECONDS_PER_MS
        try:
            os.utime(self._descriptor, ns=(stamp, stamp))
        except OSError as error:
            raise _mapped(error, "utime", self.path) from error

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
            gives_back = size_bytes < self.size_bytes()
            raise _mapped(error, "truncate", self.path, gives_back=gives_back) from error

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
            # Non-obvious 17: the success of a second fsync proves nothing.
            self._poisoned = error.strerror or str(error)
            raise FsyncFailed(self.path, self._poisoned) from error

    def forget_clean_pages(self) -> None:
        assert self._descriptor >= 0, self.path
        try:
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise _mapped(error, "fadvise", self.path) from error

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
            # Non-obvious 30: operations that free space never raise DiskFull.
            raise _mapped(error, "unlink", path, gives_back=True) from error

    def remove_directory(self, path: str) -> None:
        assert path.strip("/"), path
        try:
            os.rmdir(path)
        except OSError as error:
            raise _mapped(error, "rmdir", path, gives_back=True) from error

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
