"""Reads a partition's log whose segments are rewritten and removed from the front, for the judge.

`log_watch` reads logs that only grow and are truncated. This module also reads compacted logs:
segments are replaced by others of the same name, and there are gaps between batches. Each such
change is kept as a `LogEdit`, to be judged later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kraft_wire.sim.disk.file_nodes import DirectoryNode, FileNode
from kraft_wire.sim.judge.log_watch import LogChanges, LogWatch, SeenBatch

__all__ = ["DataLogWatch", "LogEdit", "SeenSegment"]

_LOG: Final = ".log"
_SWAP: Final = ".swap"


@dataclass(frozen=True, slots=True)
class SeenSegment:
    """One segment as it was at a look."""

    base_offset: int
    end_offset: int
    """Where the next segment begins, or the log ends."""
    batches: tuple[SeenBatch, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of its batches."""
        return sum(len(batch.data) for batch in self.batches)


@dataclass(frozen=True, slots=True)
class LogEdit:
    """Segments that were replaced, or removed from the front, between two looks."""

    before: tuple[SeenSegment, ...]
    after: tuple[SeenSegment, ...]
    is_rewritten: bool
    """Whether a segment was replaced while the newest one stayed."""


class DataLogWatch(LogWatch):
    """The directory of one partition whose log is kept small."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.edits: list[LogEdit] = []
        """Not judged yet."""

    @property
    def end_offset(self) -> int:
        """The log's end: that of an empty active segment, if batches are gone."""
        own = self.ends[-1] if self.ends else self.start_offset
        return max(own, int(self._segments[-1][0][:20])) if self._segments else own

    @property
    def segments(self) -> tuple[SeenSegment, ...]:
        """Return the segments with their batches, oldest first."""
        if not self._segments:
            return ()  # the process died while the log began again elsewhere
        bases = [int(name[:20]) for name, _, _ in self._segments]
        ends = [*bases[1:], self.end_offset]
        held: dict[int, list[SeenBatch]] = {base: [] for base in bases}
        of_node = {id(node): int(name[:20]) for name, node, _ in self._segments}
        for batch in self.batches:
            held[of_node[id(batch.segment)]].append(batch)
        return tuple(
            SeenSegment(base, end, tuple(held[base])) for base, end in zip(bases, ends, strict=True)
        )

    def _segments_in(self, directory: DirectoryNode) -> tuple[list[str], list[FileNode]]:
        """Name segments; one under `.swap` counts in place of those that it is made of."""
        present = {}
        for name, node in directory.children.items():
            if name.endswith(_LOG) and isinstance(node, FileNode):
                present[name] = node
        for name, node in directory.children.items():
            if name.endswith(_LOG + _SWAP) and isinstance(node, FileNode):
                present[name.removesuffix(_SWAP)] = node
        names = sorted(present)
        return names, [present[name] for name in names]

    def _look_at_log(
        self, directory: DirectoryNode, changes: LogChanges, has_other_names: bool
    ) -> None:
        names, nodes = self._segments_in(directory)
        known = [(name, node) for name, node, _ in self._segments]
        if not known or known == list(zip(names, nodes, strict=True)):
            super()._look_at_log(directory, changes, has_other_names)
            return
        before, start = self.segments, self.start_offset
        is_rewritten = self._is_rewritten(names, nodes)
        if is_rewritten:
            self._read_again(names, nodes, changes)
        else:
            super()._look_at_log(directory, changes, has_other_names)
        if is_rewritten or self.start_offset != start:
            self.edits.append(LogEdit(before, self.segments, is_rewritten))

    def _is_rewritten(self, names: list[str], nodes: list[FileNode]) -> bool:
        """Return whether the newest known segment still exists, after changed segments.

        It may be one of those that were changed, if a newer one was begun in the same event.
        """
        now = dict(zip(names, nodes, strict=True))
        last_name, last_node, _ = self._segments[-1]
        if now.get(last_name) is not last_node:
            return names[-1:] > [last_name] and self._has_new_file(now, last_name)
        older = [(name, now[name]) for name in names if name < last_name]
        known = [(name, node) for name, node, _ in self._segments[:-1]]
        return bool(older) and older != known[-len(older) :]

    def _has_new_file(self, now: dict[str, FileNode], last_name: str) -> bool:
        """Return whether a segment from the first known one to `last_name` is another file."""
        files = {name: node for name, node, _ in self._segments}
        first_name = self._segments[0][0]
        if min(now) < first_name:
            return False  # the log was dropped, and begun at a lower offset
        return any(node is not files.get(name) for name, node in now.items() if name <= last_name)

    def _read_again(self, names: list[str], nodes: list[FileNode], changes: LogChanges) -> None:
        """Read every segment again; only batches after the old end count as appended."""
        end = self.end_offset
        self._forget_all(int(names[0][:20]))
        everything = LogChanges()
        for name, node in zip(names, nodes, strict=True):
            self._read_segment(name, node, everything)
        changes.appended += [each for each in everything.appended if each.base_offset >= end]
