"""The simulated disk below its names: faults, sectors that are not durable yet, and crashes.

Unsynced changes are a list of *atoms*: one per 512-byte sector, length change or directory entry.
After a crash any subset of them may be on the disk (`image`), in any order. fsync of a file pins
that file's content and length, nothing else. On request the k-th call fails, the disk fills up,
fsync lies, and a failed fsync marks its pages clean as Linux does, so that a second one would
"succeed" over lost data: reads show it until the pages are dropped or power is lost.
"""

from collections.abc import Callable, Collection

from kraft_wire.model import DiskFull, StorageError
from kraft_wire.sim.disk.crash_images import Atom, Image, image_after, image_now, pending_atoms
from kraft_wire.sim.disk.file_nodes import DataChange, DirectoryNode, Extend, FileNode, Node, Sector
from kraft_wire.sim.disk.open_files import DiskFault

__all__ = ["SECTOR_BYTES", "SimDisk"]

SECTOR_BYTES = 512
_NEVER_OLD_MS = 1 << 50
_GIVING_BACK = ("unlink", "rmdir", "cut")
"""Operations that do not fail with `DiskFull` on a full disk, as on a real one."""


class SimDisk:
    """A disk's content and losses. Every call passes `enter`, which has faults and observers."""

    def __init__(self, *, capacity_bytes: int | None = None) -> None:
        self._root = DirectoryNode()
        self._dirty: dict[int, Node] = {}
        self.next_atom = 0
        """The number of the next change; so many were made."""
        self.capacity_bytes = capacity_bytes
        self.calls_count = 0
        self.changes_count = 0
        self.syncs_count = 0
        self.before_change: Callable[[], None] | None = None
        self.fault: tuple[int, DiskFault] | None = None  # (number of the call, how it fails)
        self.failed_operation: str | None = None
        self.ignores_fsync: Callable[[str], bool] = lambda path: False
        self.ignores_directory_sync = False
        self.reached: Callable[[int], bool] = lambda number: False
        """Whether a change got onto the platter although the fsync that was to see to it failed."""
        self.sector_bytes = SECTOR_BYTES
        self.wall_ms = _NEVER_OLD_MS
        """Modification time of written files; the caller that advances time sets it."""

    # -- faults ----------------------------------------------------------------------------------

    def enter(self, operation: str, path: str) -> DiskFault | None:
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
        if fault is DiskFault.EINTR:
            return None
        self.failed_operation = operation
        if fault is DiskFault.SHORT_WRITE and operation == "write":
            return fault
        if fault in (DiskFault.ENOSPC, DiskFault.EDQUOT) and operation not in _GIVING_BACK:
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
        end, sector_bytes = position + len(data), self.sector_bytes
        if data and end > len(node.content):
            self.change_data(node, Extend(end))
        at = position
        while at < end:
            until = min(end, (at // sector_bytes + 1) * sector_bytes)
            self.change_data(node, Sector(at, data[at - position : until - position]))
            at = until

    def change_data(self, node: FileNode, atom: DataChange) -> None:
        """Make a change visible, and remember that it is not durable."""
        atom.apply(node.content)
        node.modified_ms = self.wall_ms
        node.pending.append((self.next_atom, atom))
        self.next_atom += 1
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

    def forget_clean_pages(self, path: str, node: FileNode) -> None:
        """Replace the pages that a failed fsync marked clean by the content of the platter."""
        self.enter("read", path)
        if not node.lost:
            return
        for number, atom in node.lost:
            if self.reached(number):
                atom.apply(node.durable)
        node.lost.clear()
        node.frozen = None
        node.content = bytearray(node.durable)
        for _, atom in node.pending:
            atom.apply(node.content)
        if not node.pending:
            del self._dirty[id(node)]

    # -- crashes ---------------------------------------------------------------------------------

    def pending_atoms(self) -> list[Atom]:
        """Return the changes that a crash now may lose or keep, in the order of the calls."""
        return pending_atoms(self._dirty.values())

    def image(self, survivors: Collection[int], garbage: Collection[int] = ()) -> Image:
        """Return path -> content after a crash that left these atoms; None for a directory.

        Sectors in `garbage` hold other bytes than the written ones.
        """
        return image_after(self._root, survivors, garbage)

    def everything(self) -> Image:
        """Return path -> content as it is seen now, as after a kill of the process."""
        return image_now(self._root)
