"""The nodes of the simulated disk: files and directories with changes that are not durable yet.

Each change is one atom: a sector, a length, a name. `content_after` returns what a file holds when
only some of its atoms reached the disk.
"""

from collections.abc import Collection
from dataclasses import dataclass

__all__ = [
    "DataChange",
    "DirectoryNode",
    "Extend",
    "FileNode",
    "Link",
    "Node",
    "Resize",
    "Sector",
    "Unlink",
    "content_after",
    "uncertain",
]


@dataclass(slots=True)
class Sector:
    """Bytes that reach at most one sector."""

    position: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        """Write the bytes, with zeros before them when the file was shorter."""
        if len(content) < self.position:
            content.extend(bytes(self.position - len(content)))
        content[self.position : self.position + len(self.data)] = self.data


@dataclass(slots=True)
class Extend:
    """The length grew; without the data the new part reads as zeros."""

    size_bytes: int

    def apply(self, content: bytearray) -> None:
        """Fill up with zeros."""
        if len(content) < self.size_bytes:
            content.extend(bytes(self.size_bytes - len(content)))


@dataclass(slots=True)
class Resize:
    """The file was cut or extended to a length."""

    size_bytes: int

    def apply(self, content: bytearray) -> None:
        """Cut or fill up."""
        del content[self.size_bytes :]
        content.extend(bytes(self.size_bytes - len(content)))


@dataclass(slots=True)
class Link:
    """A name was given to a node; with `old_name`, that name was removed."""

    name: str
    node: "Node"
    old_name: str | None = None

    def apply(self, children: "dict[str, Node]") -> None:
        """Put the name in its place."""
        if self.old_name is not None:
            children.pop(self.old_name, None)
        children[self.name] = self.node


@dataclass(slots=True)
class Unlink:
    """A name was removed."""

    name: str

    def apply(self, children: "dict[str, Node]") -> None:
        """Take the name away."""
        children.pop(self.name, None)


DataChange = Sector | Extend | Resize


class FileNode:
    """A file: its visible content, its durable content, and the changes between."""

    __slots__ = (
        "content",
        "durable",
        "frozen",
        "is_read_only",
        "lost",
        "modified_ms",
        "pending",
    )

    def __init__(self, content: bytes = b"", modified_ms: int = 0) -> None:
        self.content = bytearray(content)
        self.durable = bytearray(content)
        self.frozen: bytes | None = None  # `durable` as bytes, for images
        self.pending: list[tuple[int, DataChange]] = []
        self.lost: list[tuple[int, DataChange]] = []  # a failed fsync marked them clean
        self.is_read_only = False
        self.modified_ms = modified_ms


class DirectoryNode:
    """A directory: its visible names, its durable names, and the changes between."""

    __slots__ = ("children", "durable", "pending")

    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        self.pending: list[tuple[int, Link | Unlink]] = []


Node = FileNode | DirectoryNode


def uncertain(node: Node) -> list[tuple[int, DataChange | Link | Unlink]]:
    """Return a node's changes that may or may not be on the disk."""
    if isinstance(node, DirectoryNode):
        return [*node.pending]
    return [*node.lost, *node.pending]


def content_after(node: FileNode, survivors: Collection[int], garbage: Collection[int]) -> bytes:
    """Return a file's content when only some of its unsynced changes reached the disk."""
    if not node.pending and not node.lost:
        if node.frozen is None:
            node.frozen = bytes(node.durable)
        return node.frozen
    content = bytearray(node.durable)
    for number, atom in [*node.lost, *node.pending]:
        if number not in survivors:
            continue
        if number in garbage and isinstance(atom, Sector):
            nonsense = bytes(byte ^ 0xA5 for byte in atom.data)
            Sector(atom.position, nonsense).apply(content)
        else:
            atom.apply(content)
    return bytes(content)
