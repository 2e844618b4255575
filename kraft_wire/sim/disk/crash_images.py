"""Images of a simulated disk after a crash: its tree with some of the unsynced changes."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from kraft_wire.sim.disk.file_nodes import (
    DirectoryNode,
    FileNode,
    Node,
    Sector,
    content_after,
    uncertain,
)

__all__ = ["Atom", "Image", "image_after", "image_now", "pending_atoms", "tree_of"]

Image = dict[str, bytes | None]
"""Path to content; None for a directory."""


@dataclass(frozen=True, slots=True)
class Atom:
    """Something that a crash may take or leave; `number` gives the order of the calls."""

    number: int
    is_data: bool  # a sector, which may also hold garbage


def pending_atoms(dirty: Iterable[Node]) -> list[Atom]:
    """Return the changes that a crash now may lose or keep, in the order of the calls."""
    atoms = [
        Atom(number, isinstance(atom, Sector)) for node in dirty for number, atom in uncertain(node)
    ]
    return sorted(atoms, key=lambda atom: atom.number)


def image_after(root: DirectoryNode, survivors: Collection[int], garbage: Collection[int]) -> Image:
    """Return the image after a crash that kept `survivors`, with random bytes in `garbage`."""

    def children(directory: DirectoryNode) -> dict[str, Node]:
        if not directory.pending:
            return directory.durable
        left = dict(directory.durable)
        for number, change in directory.pending:
            if number in survivors:
                change.apply(left)
        return left

    return _walked(root, children, lambda file: content_after(file, survivors, garbage))


def image_now(root: DirectoryNode) -> Image:
    """Return the visible content now, as after a kill of the process."""
    return _walked(root, lambda directory: directory.children, lambda file: bytes(file.content))


def _walked(
    root: DirectoryNode,
    children: Callable[[DirectoryNode], dict[str, Node]],
    content: Callable[[FileNode], bytes],
) -> Image:
    found: Image = {}
    stack: list[tuple[str, DirectoryNode]] = [("", root)]
    while stack:
        prefix, directory = stack.pop()
        for name, node in children(directory).items():
            path = f"{prefix}/{name}" if prefix else name
            if isinstance(node, DirectoryNode):
                found[path] = None
                stack.append((path, node))
            else:
                found[path] = content(node)
    return found


def tree_of(image: Image, modified_ms: int) -> DirectoryNode:
    """Return the root of a disk that holds an image, all of it durable."""
    root = DirectoryNode()
    directories = {"": root}
    for path in sorted(image, key=lambda path: (path.count("/"), path)):
        parent_path, _, name = path.rpartition("/")
        content = image[path]
        node: Node
        if content is None:
            node = directories[path] = DirectoryNode()
        else:
            node = FileNode(content, modified_ms)
        parent = directories[parent_path]
        parent.children[name] = parent.durable[name] = node
    return root
