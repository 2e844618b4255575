"""A disk in memory that loses unsynced data: the simulator's twin of `storage.os_files`.

Syncing a directory makes its names durable. `disk` has the level below names, with faults and
crashes. Left out: permissions other than read-only files, and links.
"""

from collections.abc import Collection
from functools import lru_cache

from kraft_wire.model import FsyncFailed, StorageError
from kraft_wire.sim.disk.crash_images import Atom, Image, tree_of
from kraft_wire.sim.disk.disk import SECTOR_BYTES, SimDisk
from kraft_wire.sim.disk.file_nodes import DirectoryNode, FileNode, Link, Node, Unlink
from kraft_wire.sim.disk.open_files import DiskFault, SimFile, SimLock
from kraft_wire.storage.files import DirectoryLock, File, LockHeld, MissingFile

__all__ = ["SECTOR_BYTES", "Atom", "DiskFault", "SimFileSystem"]


@lru_cache(maxsize=1_024)
def _names_along(path: str) -> tuple[str, ...]:
    """Return the names that lead to a path from the root."""
    return tuple(name for name in path.split("/") if name)


class SimFileSystem(SimDisk):
    """The simulated disk with names, as `storage.files.FileSystem` asks for them."""

    def __init__(self, *, capacity_bytes: int | None = None) -> None:
        super().__init__(capacity_bytes=capacity_bytes)
        self._locks: set[str] = set()

    def _find(self, path: str) -> Node | None:
        node: Node | None = self._root
        for name in _names_along(path):
            if not isinstance(node, DirectoryNode):
                return None
            node = node.children.get(name)
        return node

    def _parent(self, operation: str, path: str) -> tuple[DirectoryNode, str]:
        parent_path, _, name = path.strip("/").rpartition("/")
        parent = self._find(parent_path)
        if not isinstance(parent, DirectoryNode):
            raise MissingFile(operation, path, "the directory does not exist")
        return parent, name

    def _change_names(self, directory: DirectoryNode, atom: Link | Unlink) -> None:
        atom.apply(directory.children)
        directory.pending.append((self.next_atom, atom))
        self.next_atom += 1
        self._dirty[id(directory)] = directory

    def _file(self, operation: str, path: str) -> FileNode:
        node = self._find(path)
        if node is None:
            raise MissingFile(operation, path, "no such file")
        if not isinstance(node, FileNode):
            raise StorageError(operation, path, "is a directory")
        return node

    def open(self, path: str, *, create: bool = False) -> File:
        if create and self._find(path) is None:
            self.enter("open", path)
            parent, name = self._parent("open", path)
            self._change_names(parent, Link(name, FileNode(modified_ms=self.wall_ms)))
        else:
            self.enter("read", path)
        node = self._file("open", path)
        if node.is_read_only:
            raise StorageError("open", path, "permission denied")
        return SimFile(self, path, node)

    def open_for_reading(self, path: str) -> File:
        self.enter("read", path)
        return SimFile(self, path, self._file("open", path))

    def read(self, path: str) -> bytes:
        self.enter("read", path)
        return bytes(self._file("read", path).content)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), DirectoryNode)

    def names(self, path: str) -> list[str]:
        self.enter("read", path)
        node = self._find(path)
        if not isinstance(node, DirectoryNode):
            raise MissingFile("list", path, "no such directory")
        return sorted(node.children)

    def make_directory(self, path: str) -> None:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            partial = "/".join(parts[:depth])
            node = self._find(partial)
            if isinstance(node, FileNode):
                raise StorageError("mkdir", partial, "is a file")
            if node is None:
                self.enter("mkdir", partial)
                parent, name = self._parent("mkdir", partial)
                self._change_names(parent, Link(name, DirectoryNode()))

    def rename(self, old: str, new: str) -> None:
        self.enter("rename", old)
        source, old_name = self._parent("rename", old)
        target, new_name = self._parent("rename", new)
        node = source.children.get(old_name)
        if node is None:
            raise MissingFile("rename", old, "no such file")
        assert source is target, "renaming across directories is not simulated"
        self._change_names(source, Link(new_name, node, old_name))

    def unlink(self, path: str) -> None:
        node = self._find(path)
        if node is None:
            return
        self.enter("unlink", path)
        parent, name = self._parent("unlink", path)
        if not isinstance(node, FileNode):
            raise StorageError("unlink", path, "is a directory")
        self._change_names(parent, Unlink(name))

    def remove_directory(self, path: str) -> None:
        self.enter("rmdir", path)
        parent, name = self._parent("rmdir", path)
        node = parent.children.get(name)
        if not isinstance(node, DirectoryNode) or node.children:
            raise StorageError("rmdir", path, "is not an empty directory")
        self._change_names(parent, Unlink(name))

    def sync_directory(self, path: str) -> None:
        try:
            self.enter("fsync", path)
        except StorageError as error:
            raise FsyncFailed(path, error.reason) from error
        node = self._find(path)
        if not isinstance(node, DirectoryNode):
            raise MissingFile("open", path, "no such directory")
        if self.ignores_directory_sync:
            return
        self.syncs_count += 1
        for _, atom in node.pending:
            atom.apply(node.durable)
        node.pending.clear()
        self._dirty.pop(id(node), None)

    def make_read_only(self, path: str) -> None:
        self.enter("chmod", path)
        self._file("chmod", path).is_read_only = True

    def lock(self, path: str) -> DirectoryLock:
        if path in self._locks:
            raise LockHeld("lock", path, "held")
        self._locks.add(path)
        return SimLock(self._locks, path)

    def release_locks(self) -> None:
        """Give up every lock, as the end of a process does."""
        self._locks.clear()

    def look(self, path: str) -> Node | None:
        """Return the node at a path, for judges; this counts as no call of the node."""
        return self._find(path)

    def free_bytes(self, path: str) -> int:
        self.enter("read", path)
        if self.capacity_bytes is None:
            return 1 << 40
        return max(0, self.capacity_bytes - self.used_bytes())

    def total_bytes(self, path: str) -> int:
        self.enter("read", path)
        return 1 << 40 if self.capacity_bytes is None else self.capacity_bytes

    @classmethod
    def from_image(cls, image: Image) -> "SimFileSystem":
        """Return a disk that holds an image, all of it durable."""
        fs = cls()
        fs._root = tree_of(image, fs.wall_ms)
        return fs

    def crashed(self, survivors: Collection[int]) -> "SimFileSystem":
        """Return the disk that a node finds after a power loss that left these atoms."""
        return SimFileSystem.from_image(self.image(survivors))
