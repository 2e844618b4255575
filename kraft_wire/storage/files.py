"""The only door to files: what storage may ask of a disk, and the two rules of asking.

Production is `os_files`, the simulator's twin `sim/disk/files.py`. A failed fsync is never retried
(the kernel marks the pages clean, so the second call would report success over lost data; the next
start reads what is on the disk, `File.forget_clean_pages`), and a file is replaced only by write,
fsync, rename, fsync of the directory. Errors leave as three kinds: `DiskFull`, which heals; any
other `StorageError`, which takes the log directory offline; `FsyncFailed`, which must stop the
process and for that reason is not a `StorageError`. What gives room back never ends in `DiskFull`,
whatever the system says: who continues beside a file that could not be removed or cut would have
the next start find it.

Left out: asynchronous I/O. A host that wants to flush elsewhere calls `File.fsync` in a thread.
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

    def forget_clean_pages(self) -> None:
        """Have the next reads come from the disk, except what still waits to be written there.

        After a failed fsync the system may show bytes that are not on the disk and call them clean.
        A hint: where the system keeps its pages, reads continue as before.
        """
        ...

    def fileno(self) -> int:
        """Return the descriptor for sendfile, or -1 where there is none."""
        ...

    def modified_ms(self) -> int:
        """Return when the file was last written, in milliseconds since 1970."""
        ...

    def set_modified_ms(self, modified_ms: int) -> None:
        """Have the file look as if it was last written then."""
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
