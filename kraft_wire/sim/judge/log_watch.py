"""The judge's own reading of a node's metadata directory: raw segments, snapshots, quorum-state.

It shares no code with `storage.log`: it reads the bytes on the simulated disk, continues where it
stopped, and after each change returns the appended, truncated or replaced parts. It keeps two ends:
that of the written bytes, and that of the bytes that would survive power loss (everything below it
is on the platter, including names).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from kraft_wire.model import ZERO_UUID, uuid_to_text
from kraft_wire.sim.disk.file_nodes import DirectoryNode, Extend, FileNode, Sector
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.setup import METADATA_DIRECTORY
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.voters_record import VotersRecord
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.control_records import (
    ControlRecordType,
    parse_control_key,
    parse_control_value,
)
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["Election", "LogChanges", "LogWatch", "SeenBatch", "SeenSnapshot", "newest_voters"]

_HEAD: Final = Struct(">qiibIhi")
_CHECKED_FROM: Final = 21
_OVERHEAD: Final = 12
_CONTROL: Final = 0x20
_CHECKPOINT: Final = ".checkpoint"
_NO_DIRECTORY: Final = uuid_to_text(ZERO_UUID)
"""The fields that version 0 of quorum-state leaves out."""


@dataclass(slots=True, eq=False)
class SeenBatch:
    """One batch as it is on a disk."""

    base_offset: int
    end_offset: int
    epoch: int
    crc: int
    is_control: bool
    data: bytes
    segment: FileNode
    position: int

    @property
    def identity(self) -> tuple[int, int, int]:
        """The fields in which two logs must agree."""
        return (self.base_offset, self.epoch, self.crc)

    def controls(self) -> Iterator[tuple[int, ControlRecordType, Message]]:
        """Yield offset, kind and value of the quorum's control records in it."""
        if not self.is_control:
            return
        batch = RecordBatch(memoryview(self.data))
        for at, record in enumerate(batch.records()):
            kind = parse_control_key(record.key)
            if kind is not None and kind >= ControlRecordType.LEADER_CHANGE:
                yield self.base_offset + at, kind, parse_control_value(kind, record.value)

    def values(self) -> list[bytes]:
        """Return the values of its data records, in order; nothing for a control batch."""
        if self.is_control:
            return []
        batch = RecordBatch(memoryview(self.data))
        return [bytes(record.value or b"") for record in batch.records()]


@dataclass(slots=True, eq=False)
class SeenSnapshot:
    """A complete snapshot on a disk."""

    offset: int
    epoch: int
    data: bytes

    def batches(self) -> list[SeenBatch]:
        """Return its batches; the positions are those in its file."""
        found, _ = read_batches(self.data, 0, FileNode(b""))
        return found


@dataclass(frozen=True, slots=True)
class Election:
    """`quorum-state` as the judge reads it."""

    epoch: int
    leader_id: int
    voted_id: int
    voted_directory: str


@dataclass(slots=True)
class LogChanges:
    """The differences between the disk and its previous state."""

    truncated_to: int | None = None
    is_reset: bool = False
    """Whether the log begins again, behind everything that it had."""
    appended: list[SeenBatch] = field(default_factory=list)
    snapshots: list[SeenSnapshot] = field(default_factory=list)
    election: Election | None = None
    """The new content of quorum-state, None if it is unchanged."""


class LogWatch:
    """Reads the directory of one log repeatedly, by default the metadata log's."""

    def __init__(self, directory: str = METADATA_DIRECTORY) -> None:
        self.directory = directory
        self.batches: list[SeenBatch] = []
        self.ends: list[int] = []
        self.start_offset = 0
        """Where the first segment begins."""
        self.durable_end = 0
        self.election: Election | None = None
        self.snapshots: dict[tuple[int, int], SeenSnapshot] = {}
        self._changes_seen = -1
        self._segments: list[tuple[str, FileNode, int]] = []
        self._election_node: FileNode | None = None
        self._names: tuple[str, ...] = ()
        """Everything in the directory, at the last look."""

    @property
    def end_offset(self) -> int:
        """Where the log ends, synced or not."""
        return self.ends[-1] if self.ends else self.start_offset

    @property
    def unread_bytes(self) -> int:
        """Bytes of segments that are not a whole batch with a valid checksum."""
        return sum(len(node.content) - parsed for _, node, parsed in self._segments)

    @property
    def last_epoch(self) -> int:
        """Epoch of the last batch, 0 without one."""
        return self.batches[-1].epoch if self.batches else 0

    def batch_before(self, end_offset: int) -> SeenBatch | None:
        """Return the batch that holds the record before an offset, None outside of the log."""
        at = bisect_right(self.ends, end_offset - 1)
        if at == len(self.batches) or self.batches[at].base_offset >= end_offset:
            return None
        return self.batches[at]

    def is_unchanged(self, fs: SimFileSystem) -> bool:
        """Return whether the disk is unchanged since the last look."""
        return fs.changes_count == self._changes_seen

    def look(self, fs: SimFileSystem) -> LogChanges:
        """Read the disk; return the changes."""
        self._changes_seen = fs.changes_count
        changes = LogChanges()
        directory = fs.look(self.directory)
        if isinstance(directory, DirectoryNode):
            names = tuple(directory.children)
            has_other_names = names != self._names
            self._look_at_log(directory, changes, has_other_names)
            if has_other_names:
                self._names = names
                self._look_at_snapshots(directory, changes)
            self._look_at_election(directory, changes)
            self.durable_end = self._durable_end(directory)
        return changes

    # -- log -------------------------------------------------------------------------------------

    def _look_at_log(
        self, directory: DirectoryNode, changes: LogChanges, has_other_names: bool
    ) -> None:
        known, children = self._segments, directory.children
        if not has_other_names and all(children.get(name) is node for name, node, _ in known):
            self._read_what_changed(changes)
            return
        names, nodes = self._segments_in(directory)
        if [(name, node) for name, node, _ in known] == list(zip(names, nodes, strict=True)):
            self._read_what_changed(changes)
            return
        kept = self._common_run(names, nodes)
        if not kept:
            changes.is_reset = bool(known)
            self._forget_all(int(names[0][:20]) if names else _newest_snapshot_end(directory))
        else:
            self._drop_segments_outside(kept, names[0], changes)
        for name, node in zip(names, nodes, strict=True):
            self._read_segment(name, node, changes)

    def _segments_in(self, directory: DirectoryNode) -> tuple[list[str], list[FileNode]]:
        """Return names and files of the segments, in order."""
        found = {
            name: node
            for name, node in directory.children.items()
            if name.endswith(".log") and isinstance(node, FileNode)
        }
        names = sorted(found)
        return names, [found[name] for name in names]

    def _read_what_changed(self, changes: LogChanges) -> None:
        """Read the known segments, except unchanged ones before the last batch."""
        segments = self._segments
        if all([len(node.content) == parsed for _, node, parsed in segments]):
            return
        last = self.batches[-1].segment if self.batches else None
        for name, node, parsed in list(segments):
            if node is last or len(node.content) != parsed:
                self._read_segment(name, node, changes)

    def _common_run(self, names: list[str], nodes: Sequence[object]) -> list[str]:
        """Return the segments that were there and still are."""
        now = dict(zip(names, nodes, strict=True))
        return [name for name, node, _ in self._segments if now.get(name) is node]

    def _forget_all(self, start_offset: int) -> None:
        self.batches, self.ends, self._segments = [], [], []
        self.start_offset = start_offset

    def _drop_segments_outside(self, kept: list[str], first: str, changes: LogChanges) -> None:
        """Follow removed segments: from the front it is cleaning, from the back truncation."""
        gone_behind = [s for s in self._segments if s[0] not in kept and s[0] > kept[-1]]
        if gone_behind:
            changes.truncated_to = int(gone_behind[0][0][:20])
            self._cut_at(changes.truncated_to)
        self._segments = [one for one in self._segments if one[0] in kept]
        self.start_offset = int(first[:20])
        at = bisect_right(self.ends, self.start_offset)
        if at:
            del self.batches[:at], self.ends[:at]

    def _cut_at(self, offset: int) -> None:
        while self.ends and self.ends[-1] > offset:
            self.ends.pop()
            self.batches.pop()

    def _read_segment(self, name: str, node: FileNode, changes: LogChanges) -> None:
        at = next((i for i, one in enumerate(self._segments) if one[0] == name), None)
        parsed = 0 if at is None else self._segments[at][2]
        parsed = self._still_right(node, parsed, changes)
        found: list[SeenBatch] = []
        if len(node.content) > parsed:
            found, parsed = read_batches(bytes(node.content[parsed:]), parsed, node)
        self.batches += found
        self.ends += [batch.end_offset for batch in found]
        changes.appended += found
        entry = (name, node, parsed)
        if at is None:
            self._segments.append(entry)
        else:
            self._segments[at] = entry

    def _still_right(self, node: FileNode, parsed: int, changes: LogChanges) -> int:
        """Return how far the file equals its last reading; the rest was truncated."""
        if not self.batches or self.batches[-1].segment is not node:
            return parsed if parsed <= len(node.content) else 0
        while self.batches and self.batches[-1].segment is node:
            last = self.batches[-1]
            until = last.position + len(last.data)
            crc_at = last.position + 17
            crc = int.from_bytes(node.content[crc_at : crc_at + 4], "big")
            if until <= len(node.content) and crc == last.crc:
                return min(parsed, until)
            changes.truncated_to = last.base_offset
            self.batches.pop()
            self.ends.pop()
            parsed = last.position
        return 0

    def _durable_end(self, directory: DirectoryNode) -> int:
        """Return the end of the records that would survive power loss."""
        durable = directory.durable
        for name, node, _ in self._segments:
            size, is_linked = len(node.content), durable.get(name) is node
            if is_linked and len(node.durable) >= size and not (node.pending or node.lost):
                continue  # most of them: nothing is under way
            limit = _synced_bytes(node) if is_linked else 0
            if limit >= size:
                continue
            for at in range(bisect_right(self.ends, int(name[:20])), len(self.batches)):
                batch = self.batches[at]
                if batch.segment is not node:
                    break
                if batch.position + len(batch.data) > limit:
                    return batch.base_offset
        return self.end_offset

    # -- other files -----------------------------------------------------------------------------

    def _look_at_snapshots(self, directory: DirectoryNode, changes: LogChanges) -> None:
        present: dict[tuple[int, int], bool] = {}
        for key, node in _snapshots_in(directory):
            present[key] = True
            if key not in self.snapshots:
                found = SeenSnapshot(*key, bytes(node.content))
                self.snapshots[key] = found
                changes.snapshots.append(found)
        for key in list(self.snapshots):
            if key not in present:
                del self.snapshots[key]

    def _look_at_election(self, directory: DirectoryNode, changes: LogChanges) -> None:
        node = directory.durable.get("quorum-state")
        if node is self._election_node or not isinstance(node, FileNode) or not node.durable:
            return  # the last: a disk that ignores syncs
        self._election_node = node
        fields = json.loads(bytes(node.durable))
        self.election = changes.election = Election(
            fields["leaderEpoch"],
            fields["leaderId"],
            fields["votedId"],
            fields.get("votedDirectoryId", _NO_DIRECTORY),
        )


def newest_voters(log: LogWatch) -> tuple[VotersRecord, int] | None:
    """Return the last voter set on a disk, and the offset of its batch.

    It is in the log, or else in the newest snapshot, and there before the snapshot's end.
    """
    for batch in reversed(log.batches):
        found = _voters_in(batch)
        if found is not None:
            return found, batch.base_offset
    if not log.snapshots:
        return None
    newest = max(log.snapshots, key=lambda key: (key[1], key[0]))
    for batch in log.snapshots[newest].batches():
        found = _voters_in(batch)
        if found is not None:
            return found, newest[0] - 1
    return None


def _voters_in(batch: SeenBatch) -> VotersRecord | None:
    found = None
    for _, _, message in batch.controls():
        if isinstance(message, VotersRecord):
            found = message
    return found


def _snapshots_in(directory: DirectoryNode) -> Iterator[tuple[tuple[int, int], FileNode]]:
    """Yield (offset, epoch) and file of every complete snapshot."""
    for name, node in directory.children.items():
        if name.endswith(_CHECKPOINT) and isinstance(node, FileNode):
            offset, dash, epoch = name.removesuffix(_CHECKPOINT).partition("-")
            if dash and offset.isdecimal() and epoch.isdecimal():
                yield (int(offset), int(epoch)), node


def _newest_snapshot_end(directory: DirectoryNode) -> int:
    """Return where a log without segments begins: a node that dies while it begins its log again
    behind a snapshot leaves none, and starts with that snapshot.
    """
    return max((offset for (offset, _), _ in _snapshots_in(directory)), default=0)


def _synced_bytes(node: FileNode) -> int:
    """Return how many bytes from the front are certainly on the platter."""
    limit = len(node.durable)
    if not node.pending and not node.lost:
        return limit
    for _, atom in (*node.lost, *node.pending):
        if isinstance(atom, Sector):
            limit = min(limit, atom.position)
        elif not isinstance(atom, Extend):
            limit = min(limit, atom.size_bytes)
    return limit


def read_batches(data: bytes, position: int, node: FileNode) -> tuple[list[SeenBatch], int]:
    """Read whole batches with a valid checksum from a file's bytes behind `position`.

    Return them and where they end.
    """
    found: list[SeenBatch] = []
    at, end = 0, len(data)
    while end - at >= 61:
        base, length, epoch, magic, crc, attributes, delta = _HEAD.unpack_from(data, at)
        until = at + _OVERHEAD + length
        if magic != 2 or length < 49 or until > end:
            break
        content = data[at:until]
        if crc32c(content[_CHECKED_FROM:]) != crc:
            break
        is_control = bool(attributes & _CONTROL)
        batch = SeenBatch(base, base + delta + 1, epoch, crc, is_control, content, node, position)
        found.append(batch)
        position += until - at
        at = until
    return found, position
