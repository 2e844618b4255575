"""Judge what brokers wrote about share partitions into `__share_group_state`, record by record.

A share consumer may be given records that it fetched long ago, whose lock has ended since: what it
prints does not tell when a broker acquired them. The log does. In the order of the log

- a start offset never falls (S04),
- a record that was acknowledged is not acquired again, which would raise its count (S02),
- no record is archived: the harness rejects none, and sets a high limit (S03),
- a count rises by one for each acquisition (S06); it jumps where a write failed in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kraft_wire.wire.generated.share_snapshot_key import ShareSnapshotKey
from kraft_wire.wire.generated.share_snapshot_value import ShareSnapshotValue
from kraft_wire.wire.generated.share_update_value import ShareUpdateValue
from kraft_wire.wire.records.record_batch import parse_batches

__all__ = ["Batch", "States", "Write", "judged", "writes_of"]

TYPE_BYTES: Final = 2
SNAPSHOT: Final = 0
ACKNOWLEDGED, ARCHIVED = 2, 4

Key = tuple[str, bytes, int]
"""Group, topic id, partition."""
Batch = tuple[int, int, int, int]
"""First and last offset, state, delivery count."""


@dataclass(frozen=True)
class Write:
    """One record of the log: what is new in an update, or all there is in a snapshot."""

    key: Key
    start_offset: int
    batches: tuple[Batch, ...]


@dataclass
class SharePartition:
    """What the log has said so far."""

    start_offset: int = -1
    counts: dict[int, int] = field(default_factory=dict)
    """The highest delivery count of each offset."""
    acknowledged: dict[int, int] = field(default_factory=dict)
    """The delivery count with which an offset was acknowledged."""


@dataclass
class States:
    """The verdict over all share partitions."""

    wrong: list[str] = field(default_factory=list)
    jumps: int = 0
    """Offsets whose count rose by more than one between two writes."""
    partitions: dict[Key, SharePartition] = field(default_factory=dict)

    def take(self, write: Write) -> None:
        """Judge the next write."""
        found = self.partitions.setdefault(write.key, SharePartition())
        name = f"{write.key[0]}-{write.key[2]}"
        if 0 <= write.start_offset < found.start_offset:
            self.wrong.append(f"{name}: starts at {write.start_offset}, was {found.start_offset}")
        found.start_offset = max(found.start_offset, write.start_offset)
        for first, last, state, count in write.batches:
            for offset in range(first, last + 1):
                self._take_offset(f"{name} offset {offset}", found, offset, (state, count))

    def _take_offset(
        self, name: str, found: SharePartition, offset: int, now: tuple[int, int]
    ) -> None:
        state, count = now
        before = found.counts.get(offset, 0)
        accepted_at = found.acknowledged.get(offset)
        if state == ARCHIVED:
            self.wrong.append(f"{name}: archived with count {count}")
        if accepted_at is not None and count > accepted_at:
            self.wrong.append(f"{name}: delivery {count}, was accepted with {accepted_at}")
        if state == ACKNOWLEDGED:
            found.acknowledged.setdefault(offset, count)
        self.jumps += count > before + 1
        found.counts[offset] = max(before, count)


def judged(writes: Iterable[Write]) -> States:
    """Judge writes in the order of their log."""
    states = States()
    for each in writes:
        states.take(each)
    return states


def writes_of(data_directories: Iterable[Path]) -> Iterator[Write]:
    """Yield the writes of each partition of the state topic, from its longest replica."""
    longest: dict[str, Path] = {}
    for data in data_directories:
        for each in data.rglob("__share_group_state-*"):
            if _size(each) > _size(longest.get(each.name)):
                longest[each.name] = each
    for directory in longest.values():
        for segment in sorted(directory.glob("*.log")):
            yield from _writes_in(segment.read_bytes())


def _size(directory: Path | None) -> int:
    return 0 if directory is None else sum(e.stat().st_size for e in directory.glob("*.log"))


def _writes_in(data: bytes) -> Iterator[Write]:
    for batch in parse_batches(data):
        for record in () if batch.is_control else batch.records():
            if record.key is not None and record.value is not None:
                yield _write(bytes(record.key), bytes(record.value))


def _write(key: bytes, value: bytes) -> Write:
    place, _ = ShareSnapshotKey.decode(key, 0, TYPE_BYTES)  # that of an update has the same fields
    kind = int.from_bytes(key[:TYPE_BYTES], "big")
    version = int.from_bytes(value[:TYPE_BYTES], "big")
    state: ShareSnapshotValue | ShareUpdateValue
    if kind == SNAPSHOT:
        state, _ = ShareSnapshotValue.decode(value, version, TYPE_BYTES)
    else:
        state, _ = ShareUpdateValue.decode(value, version, TYPE_BYTES)
    batches = (
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in state.state_batches
    )
    topic_id = bytes(place.topic_id)
    return Write((place.group_id, topic_id, place.partition), state.start_offset, tuple(batches))
