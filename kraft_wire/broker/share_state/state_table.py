"""All states of one partition of `__share_group_state`: the fold of its records.

Each record that is written goes through `apply`, and so does each that is read back, so memory is
what a load makes of the log. A state takes about 550 bytes, and 150 for each of its batches, of
which a share partition has at most as many as record locks.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TypeAlias

from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.broker.share_state.pruning import NeededOffsets
from kraft_wire.broker.share_state.state import ShareState, ShareUpdate
from kraft_wire.frozen import slotted
from kraft_wire.model import Uuid

__all__ = ["Change", "SharePartitionEntry", "StateTable", "Tombstone"]

_LOWEST = -(1 << 31)


class Tombstone(Enum):
    """The end of a state."""

    TOMBSTONE = "tombstone"


Change: TypeAlias = ShareState | ShareUpdate | Tombstone


@slotted(eq=False)
class SharePartitionEntry:
    """A state, and what later calls are compared with."""

    state: ShareState
    known_leader_epoch: int
    """The highest one; Initialize does not lower it."""
    known_state_epoch: int
    """The highest one."""
    updates_count: int
    """Updates since it was last set to 0, which only a snapshot that was due does."""


class StateTable:
    """The states by share partition."""

    __slots__ = ("_updates_per_snapshot", "entries", "needed")

    def __init__(self, updates_per_snapshot: Callable[[], int]) -> None:
        self.entries: dict[SharePartitionKey, SharePartitionEntry] = {}
        self.needed = NeededOffsets()
        self._updates_per_snapshot = updates_per_snapshot

    def apply(self, key: SharePartitionKey, change: Change, offset: int) -> None:
        """Take the record at an offset of the log."""
        if isinstance(change, ShareUpdate):
            self._update(key, change)
            return
        is_end = isinstance(change, Tombstone)
        if isinstance(change, ShareState):
            self._snapshot(key, change)
        else:
            self.entries.pop(key, None)
        self.needed.written(key, offset, is_end=is_end)

    def _snapshot(self, key: SharePartitionKey, state: ShareState) -> None:
        entry = self.entries.get(key)
        if entry is None:
            self.entries[key] = SharePartitionEntry(state, state.leader_epoch, state.state_epoch, 0)
            return
        entry.state = state
        entry.known_leader_epoch = max(entry.known_leader_epoch, state.leader_epoch)
        entry.known_state_epoch = max(entry.known_state_epoch, state.state_epoch)
        if entry.updates_count >= self._updates_per_snapshot():
            entry.updates_count = 0

    def _update(self, key: SharePartitionKey, update: ShareUpdate) -> None:
        entry = self.entries.get(key)
        if entry is None:
            state = _without_snapshot(update)
            self.entries[key] = SharePartitionEntry(state, update.leader_epoch, _LOWEST, 1)
            return
        entry.state = entry.state.updated(update)
        entry.known_leader_epoch = max(entry.known_leader_epoch, update.leader_epoch)
        entry.updates_count += 1

    def keys_of(self, topic_ids: Iterable[Uuid]) -> list[SharePartitionKey]:
        """Return the share partitions of some topics."""
        wanted = dict.fromkeys(topic_ids)
        return [key for key in self.entries if key.topic_id in wanted]

    def cold_snapshots(
        self, wall_ms: int, interval_ms: int
    ) -> list[tuple[SharePartitionKey, ShareState]]:
        """Return snapshots of the states whose newest one is older than an interval.

        The list is empty if no state was written since its snapshot, or the log would always grow.
        """
        entries = self.entries.items()
        if all(each.state.create_ms != each.state.write_ms for _, each in entries):
            return []
        return [
            (key, each.state.again(wall_ms))
            for key, each in entries
            if wall_ms - each.state.write_ms >= interval_ms
        ]


def _without_snapshot(update: ShareUpdate) -> ShareState:
    """Return the state that an update alone makes, as in Kafka; its snapshot is lost."""
    return ShareState(
        snapshot_epoch=update.snapshot_epoch,
        state_epoch=0,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        batches=update.batches,
        create_ms=0,
        write_ms=0,
    )
