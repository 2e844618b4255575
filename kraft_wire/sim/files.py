"""A disk in memory that forgets: the simulator's twin of `storage.files.OsFileSystem`.

What was not synced is a list of *atoms*: one per 512-byte sector, length change or directory
entry. After a crash any subset of them may be on the disk (`image`), in any order. fsync of a file
pins that file's content and length, nothing else; a name is pinned by syncing its directory. On
request the k-th call fails, the disk fills up, fsync lies, and a failed fsync marks its pages clean
as Linux does, so that a second one would "succeed" over lost data.

Left out: permissions other than read-only files, and links.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from kraft_wire.model import DiskFull, FsyncFailed, StorageError
from kraft_wire.sim.disk_nodes import (
    DataChange,
    DirectoryNode,
    Extend,
    FileNode,
    Link,
    Node,
    Resize,
    Sector,
    Unlink,
    content_after,
    uncertain,
)
from kraft_wire.storage.files import Buffer, DirectoryLock, File, LockHeld, MissingFile

__all__ = ["SECTOR_BYTES", "Atom", "Fault", "SimFileSystem"]

SECTOR_BYTES = 512


class Fault(Enum):
    """How the k-th call fails."""

    EIO = "input/output error"
    ENOSPC = "no space left on device"
    EDQUOT = "disk quota exceeded"
    EROFS = "read-only file system"
    SHORT_WRITE = "short write, then an input/output error"
    EINTR = "interrupted, and retried by the system's library"


@dataclass(frozen=True, slots=True)
class Atom:
    """Something that a crash may take or leave; `number` gives the order of the calls."""

    number: int
    is_data: bool  # a sector, which may also hold garbage


class _SimFile:
    """An open file of the simulated disk."""

    __slots__ = ("_fs", "_is_open", "_node", "_poisoned", "path")

    def __init__(self, fs: "SimFileSystem", path: str, node: FileNode) -> None:
        self._fs = fs
        self._node = node
        self._is_open = True
        self._poisoned = False
        self.path = path

    def size_bytes(self) -> int:
        return len(self._node.content)

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
        self._fs.enter("truncate", self.path)
        if size_bytes != len(self._node.content):
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

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self._is_open = False


class _SimLock:
    """A held lock."""

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class SimFileSystem:
    """The simulated disk. Every call passes `enter`, where faults and observers sit."""

    def __init__(self, *, capacity_bytes: int | None = None) -> None:
        self._root = DirectoryNode()
        self._dirty: dict[int, Node] = {}
        self._locks: set[str] = set()
        self._next_atom = 0
        self.capacity_bytes = capacity_bytes
        self.calls_count = 0
        self.changes_count = 0
        self.syncs_count = 0
        self.before_change: Callable[[], None] | None = None
        self.fault: tuple[int, Fault] | None = None  # (number of the call, how it fails)
        self.failed_operation: str | None = None
        self.ignores_fsync: Callable[[str], bool] = lambda path: False
        self.ignores_directory_sync = False
        self.sector_bytes = SECTOR_BYTES

    # -- faults ----------------------------------------------------------------------------------

    def enter(self, operation: str, path: str) -> Fault | None:
        """Count the call, tell observers of changes, and fail if it is this call's turn."""
        if operation != "read":
            if self.before_change is not None:
                self.before_change()
            self.changes_count += 1
        number = self.calls_count
        self.calls_count += 1
        if self.fault is None or self.fault[0] != number:
            return None
        fault = self.fault[1]
        if fault is Fault.EINTR:
            return None
        self.failed_operation = operation
        if fault is Fault.SHORT_WRITE and operation == "write":
            return fault
        if fault in (Fault.ENOSPC, Fault.EDQUOT):
            raise DiskFull(operation, path, fault.value)
        raise StorageError(operation, path, fault.value)

    def used_bytes(self) -> int:
        """Return the bytes that files take."""
        total, nodes = 0, [self._root]
        while nodes:
            for child in nodes.pop().children.values():
                if isinstance(child, DirectoryNode):
                    nodes.append(child)
                else:
                    total += len(child.content)
        return total

    # -- data ------------------------------------------------------------------------------------

    def write(self, path: str, node: FileNode, data: bytes, position: int) -> None:
        """Write sector by sector; a fault or a full disk leaves a part."""
        short = self.enter("write", path)
        reason: type[StorageError] | None = None
        if short is not None:
            data, reason = data[: len(data) // 2], StorageError
        elif self.capacity_bytes is not None:
            growth = max(0, position + len(data) - len(node.content))
            lacking = growth - (self.capacity_bytes - self.used_bytes())
            if lacking > 0:
                data, reason = data[: max(0, len(data) - lacking)], DiskFull
        self._write_sectors(node, data, position)
        if reason is not None:
            raise reason("write", path, "only a part was written")

    def _write_sectors(self, node: FileNode, data: bytes, position: int) -> None:
        end = position + len(data)
        if data and end > len(node.content):
            self.change_data(node, Extend(end))
        at = position
        while at < end:
            until = min(end, (at // self.sector_bytes + 1) * self.sector_bytes)
            self.change_data(node, Sector(at, data[at - position : until - position]))
            at = until

    def change_data(self, node: FileNode, atom: DataChange) -> None:
        """Make a change visible, and remember that it is not durable."""
        atom.apply(node.content)
        node.pending.append((self._next_atom, atom))
        self._next_atom += 1
        self._dirty[id(node)] = node

    def reserve(self, path: str, node: FileNode, size_bytes: int) -> None:
        """Extend with zeros, or raise DiskFull without any change."""
        self.enter("reserve", path)
        growth = size_bytes - len(node.content)
        if self.capacity_bytes is not None and growth > self.capacity_bytes - self.used_bytes():
            raise DiskFull("reserve", path, "no space left")
        if growth > 0:
            self.change_data(node, Extend(size_bytes))

    def fsync(self, path: str, node: FileNode) -> None:
        """Make the file's changes durable; when it fails, they never will be."""
        try:
            self.enter("fsync", path)
        except StorageError:
            # The kernel marks the pages clean: a later fsync has nothing left to write.
            node.lost += node.pending
            node.pending.clear()
            raise
        if self.ignores_fsync(path):
            return
        self.syncs_count += 1
        node.frozen = None
        for _, atom in node.pending:
            atom.apply(node.durable)
        node.pending.clear()
        if not node.lost:
            self._dirty.pop(id(node), None)

    # -- names -----------------------------------------------------------------------------------

    def _find(self, path: str) -> Node | None:
        node: Node | None = self._root
        for name in path.strip("/").split("/"):
            if not name:
                continue
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
        directory.pending.append((self._next_atom, atom))
        self._next_atom += 1
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
            self._change_names(parent, Link(name, FileNode()))
        else:
            self.enter("read", path)
        node = self._file("open", path)
        if node.is_read_only:
            raise StorageError("open", path, "permission denied")
        return _SimFile(self, path, node)

    def open_for_reading(self, path: str) -> File:
        self.enter("read", path)
        return _SimFile(self, path, self._file("open", path))

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
            raise StorageError("rmdir", path, "is no empty directory")
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
        return _SimLock(self._locks, path)

    def free_bytes(self, path: str) -> int:
        self.enter("read", path)
        if self.capacity_bytes is None:
            return 1 << 40
        return max(0, self.capacity_bytes - self.used_bytes())

    def total_bytes(self, path: str) -> int:
        self.enter("read", path)
        return 1 << 40 if self.capacity_bytes is None else self.capacity_bytes

    # -- crashes ---------------------------------------------------------------------------------

    def pending_atoms(self) -> list[Atom]:
        """Return what a crash now may take or leave, in the order of the calls."""
        atoms = [
            Atom(number, isinstance(atom, Sector))
            for node in self._dirty.values()
            for number, atom in uncertain(node)
        ]
        return sorted(atoms, key=lambda atom: atom.number)

    def image(
        self, survivors: Collection[int], garbage: Collection[int] = ()
    ) -> dict[str, bytes | None]:
        """Return path -> content after a crash that left these atoms; None for a directory.

        Sectors among `garbage` hold nonsense instead of what was written.
        """
        found: dict[str, bytes | None] = {}
        stack: list[tuple[str, DirectoryNode]] = [("", self._root)]
        while stack:
            prefix, directory = stack.pop()
            children = directory.durable
            if directory.pending:
                children = dict(children)
                for number, change in directory.pending:
                    if number in survivors:
                        change.apply(children)
            for name, node in children.items():
                path = f"{prefix}/{name}" if prefix else name
                if isinstance(node, DirectoryNode):
                    found[path] = None
                    stack.append((path, node))
                else:
                    found[path] = content_after(node, survivors, garbage)
        return found

    def everything(self) -> dict[str, bytes | None]:
        """Return path -> content as it is seen now, as after a kill of the process."""
        found: dict[str, bytes | None] = {}
        stack: list[tuple[str, DirectoryNode]] = [("", self._root)]
        while stack:
            prefix, directory = stack.pop()
            for name, node in directory.children.items():
                path = f"{prefix}/{name}" if prefix else name
                if isinstance(node, DirectoryNode):
                    found[path] = None
                    stack.append((path, node))
                else:
                    found[path] = bytes(node.content)
        return found

    @classmethod
    def from_image(cls, image: dict[str, bytes | None]) -> "SimFileSystem":
        """Return a disk that holds an image, all of it durable."""
        fs = cls()
        directories = {"": fs._root}
        for path in sorted(image, key=lambda path: (path.count("/"), path)):
            parent_path, _, name = path.rpartition("/")
            content = image[path]
            node: Node
            if content is None:
                node = directories[path] = DirectoryNode()
            else:
                node = FileNode(content)
            parent = directories[parent_path]
            parent.children[name] = parent.durable[name] = node
        return fs

    def crashed(self, survivors: Collection[int]) -> "SimFileSystem":
        """Return the disk that a node finds after a power loss that left these atoms."""
        return SimFileSystem.from_image(self.image(survivors))
