"""Changes of offsets that the ISR does not have yet: readers still get the previous offsets.

Kafka reads the last committed state and writes on top of all records in the log. So the table of
offsets has the newest offsets, and this module keeps the previous ones of each change, until the
high watermark of the group's partition has passed the change.
"""

from collections import deque
from collections.abc import Callable

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.object_sizes import OFFSET_BYTES
from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey, OffsetTable

__all__ = ["UncommittedOffsets"]


class UncommittedOffsets:
    """A table's changes in the order of the log, each with the offset that it replaced."""

    __slots__ = ("_before", "_changes", "_ended", "_high_watermark", "_memory", "_table")

    def __init__(
        self, table: OffsetTable, memory: MemoryUse, high_watermark: Callable[[], int]
    ) -> None:
        """Take the table to change, and how far its log is committed now."""
        self._table = table
        self._high_watermark = high_watermark
        self._memory = memory
        self._changes: deque[tuple[int, OffsetKey]] = deque()
        """High watermark from which on a change counts, and the changed key."""
        self._before: dict[OffsetKey, deque[CommittedOffset | None]] = {}
        """The previous offsets of each key, the oldest first; None for no offset."""
        self._ended: deque[tuple[int, list[OffsetKey]]] = deque()
        """High watermark from which on a marker counts, and the offsets that it decided."""

    @property
    def safe_at(self) -> int | None:
        """High watermark at which all changes are committed, None if they are now."""
        self._settle()
        return self._changes[-1][0] if self._changes else None

    def change(
        self, key: OffsetKey, committed: CommittedOffset | None, safe_at: int | None
    ) -> None:
        """Put an offset, or remove it with None; with `safe_at` None it is committed."""
        self._settle()
        if safe_at is not None:
            assert not self._changes or self._changes[-1][0] <= safe_at, (key, safe_at)
            before = self._table.get(key)
            self._changes.append((safe_at, key))
            self._before.setdefault(key, deque()).append(before)
            self._memory.add(_size_bytes(before))
        if committed is None:
            self._table.remove(key)
        else:
            self._table.put(key, committed)

    def end_transaction(self, producer_id: int, *, commits: bool, safe_at: int | None) -> None:
        """Store or drop the offsets of a transaction whose marker is in the log.

        An older commit never replaces a newer one that was made outside the transaction. Until the
        marker is committed the offsets stay unstable.
        """
        decided = self._table.take_open(producer_id)
        for key, committed in decided.items():
            if commits and not self._table.is_older(key, committed):
                self.change(key, committed, safe_at)
        if decided and safe_at is not None:
            self._ended.append((safe_at, list(decided)))
            is_committed = self._high_watermark() >= safe_at
            assert is_committed or all(map(self.is_unstable, decided)), (producer_id, safe_at)

    def is_unstable(self, key: OffsetKey) -> bool:
        """Whether a transaction changes an offset whose end is not committed (KIP-447)."""
        if self._table.is_unstable(key):
            return True
        high_watermark = self._high_watermark() if self._ended else 0
        while self._ended and self._ended[0][0] <= high_watermark:
            self._ended.popleft()
        return any(key in keys for _, keys in self._ended)

    def is_changing(self, key: OffsetKey) -> bool:
        """Whether a change of a key is not committed yet."""
        self._settle()
        return key in self._before

    def get(self, key: OffsetKey) -> CommittedOffset | None:
        """Return the visible offset of a key."""
        self._settle()
        before = self._before.get(key)
        return self._table.get(key) if before is None else before[0]

    def of_group(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """Return the visible offsets of a group; not to be changed by the caller."""
        self._settle()
        newest = self._table.of_group(group_id)
        changed = [key for key in self._before if key.group_id == group_id]
        if not changed:
            return newest
        shown = {topic: dict(partitions) for topic, partitions in newest.items()}
        for key in changed:
            partitions = shown.setdefault(key.topic, {})
            before = self._before[key][0]
            if before is None:
                partitions.pop(key.partition, None)
            else:
                partitions[key.partition] = before
        return {topic: partitions for topic, partitions in shown.items() if partitions}

    def release(self) -> None:
        """Release the counted memory of the previous offsets, which are removed."""
        for before in self._before.values():
            self._memory.add(-sum(_size_bytes(each) for each in before))

    def _settle(self) -> None:
        """Drop the previous offsets of changes that are committed now."""
        if not self._changes:
            return
        high_watermark = self._high_watermark()
        while self._changes and self._changes[0][0] <= high_watermark:
            _, key = self._changes.popleft()
            self._memory.add(-_size_bytes(self._before[key].popleft()))
            if not self._before[key]:
                del self._before[key]


def _size_bytes(before: CommittedOffset | None) -> int:
    return OFFSET_BYTES if before is None else before.size_bytes
