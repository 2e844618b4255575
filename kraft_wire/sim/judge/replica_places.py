"""Where the files of a replica are, on a broker with several log directories (KIP-113).

A replica's log is the directory `topic-partition` in one of the log directories. While it moves,
`topic-partition.ID-future` in another one is its copy, which is not the replica: only between the
two renames of a promotion, when no directory has the replica's name, the copy is all that there is.
Nothing is shared with `storage`.

Not here: what a move must keep (`move_judge`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.sim.disk.file_nodes import DirectoryNode
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.judge.data_log_watch import DataLogWatch, LogEdit
from kraft_wire.sim.judge.log_watch import LogChanges, LogWatch
from kraft_wire.sim.judge.partition_truth import PartitionTruth

__all__ = ["FUTURE", "changes_of_move", "is_there", "names_in", "path_of"]

FUTURE: Final = "-future"


def is_there(fs: SimFileSystem, path: str) -> bool:
    """Return whether a disk has a directory."""
    return isinstance(fs.look(path), DirectoryNode)


def names_in(fs: SimFileSystem, root: str) -> tuple[str, ...]:
    """Return the names of the directories in a log directory."""
    node = fs.look(root)
    if not isinstance(node, DirectoryNode):
        return ()
    return tuple(n for n, each in node.children.items() if isinstance(each, DirectoryNode))


def path_of(fs: SimFileSystem, truth: PartitionTruth, roots: Sequence[str], known: str) -> str:
    """Return the directory of a replica's log on a disk; `known` is where it was.

    Of two directories of the replica's name, as a directory that failed may leave them, the known
    one counts. Without any it is the copy, or else the known one.
    """
    named = [path for root in roots if is_there(fs, path := f"{root}/{truth.name}")]
    if named:
        return known if known in named else named[0]
    copies = [
        f"{root}/{name}"
        for root in roots
        for name in names_in(fs, root)
        if name.startswith(f"{truth.name}.") and name.endswith(FUTURE)
    ]
    return copies[0] if copies else known


def changes_of_move(before: LogWatch, after: LogWatch, changes: LogChanges) -> None:
    """Make the changes since the last look of those that the first look at another directory found.

    Only batches behind the former end were appended; a shorter log was truncated. Segments that
    retention removed in the same event become an edit.
    """
    end = before.end_offset
    changes.appended = [each for each in changes.appended if each.base_offset >= end]
    changes.truncated_to = after.end_offset if after.end_offset < end else None
    if isinstance(before, DataLogWatch) and isinstance(after, DataLogWatch):
        after.edits = before.edits
        if before.segments and after.segments and after.start_offset > before.start_offset:
            after.edits = [*after.edits, LogEdit(before.segments, after.segments, False)]
