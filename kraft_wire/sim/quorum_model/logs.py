"""Logs of the model with every record in them, and the history."""

from __future__ import annotations

from typing import NamedTuple

from kraft_wire.sim.quorum_model.states import (
    ZERO,
    Append,
    Change,
    Cut,
    Install,
    Key,
    Log,
    Point,
    Take,
    Voters,
)

__all__ = ["Disk", "Entry", "History", "changed"]


class Entry(NamedTuple):
    """A record: equal entries are equal records."""

    epoch: int
    offset: int
    life: int
    """The number of crashes before its append, to distinguish records of one place."""
    voters: Voters | None = None


class Disk(NamedTuple):
    """A log that starts at a snapshot, or at the voter set of the formatted disk."""

    entries: tuple[Entry, ...] = ()
    flushed: int = 0
    base: Point = ZERO
    base_voters: Voters = frozenset()

    @property
    def start(self) -> int:
        """First offset that the log holds."""
        return self.base.offset

    @property
    def last(self) -> Point:
        """The log's end, with the epoch of its last record or of its snapshot."""
        epoch = self.entries[-1].epoch if self.entries else self.base.epoch
        return Point(epoch, self.base.offset + len(self.entries))

    @property
    def oldest_snapshot(self) -> Point | None:
        """The snapshot that the log starts at."""
        return self.base if self.base != ZERO else None

    @property
    def newest_snapshot(self) -> Point | None:
        """The same: one is kept."""
        return self.oldest_snapshot

    def has(self, snapshot: Point) -> bool:
        """Return whether a snapshot is on the disk."""
        return snapshot == self.oldest_snapshot

    @property
    def voters(self) -> Voters:
        """The last voter set."""
        for entry in reversed(self.entries):
            if entry.voters is not None:
                return entry.voters
        return self.base_voters

    @property
    def voters_offset(self) -> int:
        """The offset of its record, that before the log where it is older."""
        for at in range(len(self.entries) - 1, -1, -1):
            if self.entries[at].voters is not None:
                return self.start + at
        return self.start - 1

    def end_of(self, epoch: int) -> Point:
        """Return the largest known epoch that is at most `epoch`, and where it ends."""
        if not self.entries:
            return Point(epoch, self.start)
        if epoch < self.entries[0].epoch:
            return Point(epoch, self.start)
        known = max(each.epoch for each in self.entries if each.epoch <= epoch)
        at = max(at for at, each in enumerate(self.entries) if each.epoch == known)
        return Point(known, self.start + at + 1)

    def records_from(self, offset: int) -> tuple[Entry, ...]:
        """Return the entries from an offset on."""
        return self.entries[max(0, offset - self.start) :]

    def after_power_loss(self) -> Disk:
        """Return the log after a crash: only flushed entries."""
        return self._replace(entries=self.entries[: self.flushed - self.start])

    def from_snapshot(self, end: int) -> Disk:
        """Return the log after its own snapshot that ends at an offset."""
        taken = self.entries[: end - self.start]
        voters = self._replace(entries=taken).voters
        base = Point(taken[-1].epoch, end)
        return Disk(self.entries[end - self.start :], self.flushed, base, voters)


def changed(log: Log, change: Change, epoch: int, life: int) -> Disk:
    """Return a log after a change of a replica in an epoch."""
    assert isinstance(log, Disk)
    match change:
        case Append(voters):
            return log._replace(entries=(*log.entries, Entry(epoch, log.last.offset, life, voters)))
        case Take(records):
            entries = tuple(each for each in records or () if isinstance(each, Entry))
            return log._replace(entries=log.entries + entries)
        case Cut(offset):
            kept = log.entries[: max(0, offset - log.start)]
            return log._replace(entries=kept, flushed=min(log.flushed, offset))
        case Install(snapshot, voters):
            return Disk((), snapshot.offset, snapshot, voters)


class History(NamedTuple):
    """The history that the invariants need, and the used part of the scope."""

    committed: tuple[Entry, ...] = ()
    """The records that leaders have committed, from offset 0 on."""
    committed_in: int = 0
    """The newest epoch whose leader committed one."""
    leaders: frozenset[tuple[int, Key, int]] = frozenset()
    """The leaders: epoch, key and incarnation."""
    appends: int = 0
    crashes: int = 0
    wipes: int = 0
    changes: int = 0
    snapshots: int = 0
