"""Invariants of snapshots and images of the metadata.

One small class each; docs/SIMULATION.md explains the ids.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from kraft_wire.metadata.image_records import snapshot_values
from kraft_wire.raft.roles import Leader
from kraft_wire.sim.judge.judge import Judge, NodeWatch, Signals
from kraft_wire.sim.judge.ledger import Register, changes_of
from kraft_wire.sim.judge.log_watch import (
    SeenSnapshot,
)

__all__ = [
    "LeaderNeverLoadsSnapshot",
    "SnapshotAtLogStart",
    "SnapshotIsReplay",
    "StateMachineEquality",
]

_IMAGE_EVERY: Final = 16


class SnapshotIsReplay(Signals):
    """A snapshot is named after a committed record, and equals a replay up to it."""

    id, name = "S13", "SnapshotIsReplay"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._read: dict[bytes, dict[Register, str | None]] = {}

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        if snapshot.offset == 0:
            return
        before = self.ledger.batch_before(snapshot.offset)
        self._check(before is not None, watch, snapshot.offset, "is not committed")
        assert before is not None
        at_end = before.end_offset == snapshot.offset and before.epoch == snapshot.epoch
        self._check(at_end, watch, snapshot.offset, snapshot.epoch, before.identity)
        found = self._registers_in(snapshot)
        expected = self.ledger.registers_at(snapshot.offset)
        if found != expected:
            self._check(False, watch, snapshot.offset, _difference(found, expected))

    def _registers_in(self, snapshot: SeenSnapshot) -> dict[Register, str | None]:
        """Return the content of a snapshot; equal bytes on several disks are read once."""
        found = self._read.get(snapshot.data)
        if found is None:
            found = {}
            for batch in snapshot.batches():
                for entry in changes_of(batch):
                    found[entry.register] = entry.value
            self._read[snapshot.data] = found
        return found


class SnapshotAtLogStart(Signals):
    """A log that does not begin at 0 begins within a complete snapshot."""

    id, name = "S14", "SnapshotAtLogStart"

    def disk(self, watch: NodeWatch) -> None:
        start = watch.log.start_offset
        if start > 0:
            newest = max((offset for offset, _ in watch.log.snapshots), default=0)
            self._check(newest >= start, watch, "starts at", start, "newest snapshot", newest)


class LeaderNeverLoadsSnapshot(Signals):
    """A leader never replaces its log by a snapshot."""

    id, name = "S15", "LeaderNeverLoadsSnapshot"

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        node = watch.machine.node
        leads = node is not None and isinstance(watch.quorum.role, Leader)
        self._check(not (leads and is_reset), watch, offset)


class StateMachineEquality(Signals):
    """Two images at the same offset are equal."""

    id, name = "S16", "StateMachineEquality"

    def applied(self, watch: NodeWatch) -> None:
        offset = watch.applied_offset
        if offset % _IMAGE_EVERY and offset not in self.ledger.images:
            return
        digest = _digest(watch)
        known = self.ledger.images.setdefault(offset, digest)
        self._check(known == digest, watch, offset, known, digest)


def _difference(found: dict[Register, str | None], expected: dict[Register, str]) -> str:
    keys = [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
    return ", ".join(f"{key}: {found.get(key)} instead of {expected.get(key)}" for key in keys)


def _digest(watch: NodeWatch) -> str:
    """Return a digest of everything in a node's image."""
    digest = blake2b(digest_size=8)
    for value in snapshot_values(watch.node.raft.committed.image):
        digest.update(value)
    return digest.hexdigest()
