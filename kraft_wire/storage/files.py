"""The file system as storage uses it, and two rules for its use.

`os_files` implements it for production, `sim/disk/files.py` for the simulator. First rule: a failed
fsync is never retried. The kernel marks the pages clean, so a second call would report success over
lost data; the next start reads the disk's own bytes (`File.forget_clean_pages`). Second rule: a
file is replaced only by write, fsync, rename, fsync of the directory.

Three kinds of errors: `DiskFull`, which ends when space is free; any other `StorageError`, which
takes the log directory offline; `FsyncFailed`, which must stop the process and so is not a
`StorageError`. Operations that free space never raise `DiskFull`, whatever the system reports: a
log that continued beside a file that could not be removed or cut would meet it at the next start.

Left out: asynchronous I/O. A host that flushes in another thread calls `File.fsync` there.
"""

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
    "StorageError",
    "remove_tree",
    "replace_file",
]

Buffer: TypeAlias = bytes | bytearray | memoryview

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
        """Write all of `data` at `position`, or raise; part of it may be written then."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut or extend (with zeros) to `size_bytes`."""
        ...

    def reserve(self, size_bytes: int) -> None:
        """Allocate disk blocks for the first `size_bytes`."""
        ...

    def fsync(self) -> None:
        """Make content and length durable; raises FsyncFailed, also at every later call."""
        ...

    def forget_clean_pages(self) -> None:
        """Make the next reads come from the disk, except for unwritten bytes.

        After a failed fsync the system may return bytes that are not on the disk, from clean pages.
        A hint: if the system keeps its pages, reads continue as before.
        """
        ...

    def fileno(self) -> int:
        """Return the descriptor for sendfile, or -1 without one."""
        ...

    def modified_ms(self) -> int:
        """Return the time of the last write, in milliseconds since 1970."""
        ...

    def set_modified_ms(self, modified_ms: int) -> None:
        """Set the time of the last write."""
        ...

    def close(self) -> None:
        """Close now; harmless when repeated."""
        ...


class DirectoryLock(Protocol):
    """A held lock; the process's end releases it too."""

    def release(self) -> None:
        """Release the lock; harmless when repeated."""
        ...


class FileSystem(Protocol):
    """The disk, as storage uses it. Paths use `/`; errors are those of this module."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; MissingFile unless `create`."""
        ...

    def open_for_reading(self, path: str) -> File:
        """Open read-only, which snapshots need: their mode forbids writing."""
        ...

    def read(self, path: str) -> bytes:
        """Return a whole (small) file; MissingFile if it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of that name exists."""
        ...

    def is_directory(self, path: str) -> bool:
        """Tell whether the path is a directory."""
        ...

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """Create the directory and its parents; succeed if it exists."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename atomically, replacing `new`; durable after `sync_directory`."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file; succeed if it does not exist."""
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
        """Return the free space for an unprivileged process."""
        ...

    def total_bytes(self, path: str) -> int:
        """Return the size of the volume that `path` is on."""
        ...


def replace_file(fs: FileSystem, path: str, content: bytes, *, durable: bool = True) -> None:
    """Replace the file atomically: a crash leaves either the whole old or the whole new file.

    Raises DiskFull or StorageError with the old file unchanged; also FsyncFailed. Without
    `durable` the directory is not synced: the old file may return after power loss.
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
    """Remove a directory with its content; succeed if it does not exist."""
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
