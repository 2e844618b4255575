"""Open files and held locks of the simulated disk, which counts their calls."""

from enum import Enum
from typing import Protocol

from kraft_wire.model import FsyncFailed, StorageError
from kraft_wire.sim.disk.file_nodes import DataChange, FileNode, Resize
from kraft_wire.storage.files import Buffer

__all__ = ["DiskFault", "DiskPort", "SimFile", "SimLock"]


class DiskFault(Enum):
    """How the k-th call fails."""

    EIO = "input/output error"
    ENOSPC = "no space left on device"
    EDQUOT = "disk quota exceeded"
    EROFS = "read-only file system"
    SHORT_WRITE = "short write, then an input/output error"
    EINTR = "interrupted, and retried by the system's library"


class DiskPort(Protocol):
    """The disk's functions that open files use."""

    def enter(self, operation: str, path: str) -> DiskFault | None: ...
    def write(self, path: str, node: FileNode, data: bytes, position: int) -> None: ...
    def change_data(self, node: FileNode, atom: DataChange) -> None: ...
    def reserve(self, path: str, node: FileNode, size_bytes: int) -> None: ...
    def fsync(self, path: str, node: FileNode) -> None: ...
    def forget_clean_pages(self, path: str, node: FileNode) -> None: ...


class SimFile:
    """An open file of the simulated disk."""

    __slots__ = ("_fs", "_is_open", "_node", "_poisoned", "path")

    def __init__(self, fs: DiskPort, path: str, node: FileNode) -> None:
        self._fs = fs
        self._node = node
        self._is_open = True
        self._poisoned = False
        self.path = path

    def size_bytes(self) -> int:
        return len(self._node.content)

    def modified_ms(self) -> int:
        return self._node.modified_ms

    def set_modified_ms(self, modified_ms: int) -> None:
        self._node.modified_ms = modified_ms

    def pread(self, size_bytes: int, position: int) -> bytes:
        assert size_bytes >= 0, size_bytes
        assert position >= 0, position
        self._fs.enter("read", self.path)
        return bytes(self._node.content[position : position + size_bytes])

    def pwrite(self, data: Buffer, position: int) -> None:
        assert self._is_open, self.path
        assert not self._poisoned, self.path
        self._fs.write(self.path, self._node, bytes(data), position)

    def truncate(self, size_bytes: int) -> None:
        assert size_bytes >= 0, size_bytes
        before = len(self._node.content)
        self._fs.enter("cut" if size_bytes < before else "truncate", self.path)
        if size_bytes != before:
            self._fs.change_data(self._node, Resize(size_bytes))

    def reserve(self, size_bytes: int) -> None:
        self._fs.reserve(self.path, self._node, size_bytes)

    def fsync(self) -> None:
        if self._poisoned:
            raise FsyncFailed(self.path, "failed before")
        try:
            self._fs.fsync(self.path, self._node)
        except StorageError as error:
            self._poisoned = True
            raise FsyncFailed(self.path, error.reason) from error

    def forget_clean_pages(self) -> None:
        self._fs.forget_clean_pages(self.path, self._node)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self._is_open = False


class SimLock:
    """A held lock."""

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)
