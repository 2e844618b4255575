"""The state that the records of a partition of `__consumer_offsets` make, without its coordinator.

`ReplayedGroups` is for who reads a log and coordinates nothing.
"""

import sys
from typing import Protocol

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.group_types import OtherGroup
from kraft_wire.broker.groups.offsets.table import OffsetTable
from kraft_wire.broker.groups.offsets.uncommitted import UncommittedOffsets

__all__ = ["ReplayedGroups", "ReplayedShard"]


class ReplayedShard(Protocol):
    """What records change: a `GroupShard`, or only its state."""

    groups: dict[str, ClassicGroup]
    other_groups: dict[str, OtherGroup]
    offsets: OffsetTable
    uncommitted: UncommittedOffsets

    @property
    def memory(self) -> MemoryUse:
        """Counts the state."""
        ...

    def remove_other_group(self, group_id: str) -> None:
        """Drop a group of another kind than classic, if it is there."""
        ...


class ReplayedGroups:
    """The groups and offsets of one partition; whatever is in the log is committed."""

    def __init__(self) -> None:
        self.memory = MemoryUse(lambda: sys.maxsize)
        self.groups: dict[str, ClassicGroup] = {}
        self.other_groups: dict[str, OtherGroup] = {}
        self.offsets = OffsetTable(self.memory)
        self.uncommitted = UncommittedOffsets(self.offsets, self.memory, lambda: sys.maxsize)

    def remove_other_group(self, group_id: str) -> None:
        """Drop a group of another kind than classic, if it is there."""
        other = self.other_groups.pop(group_id, None)
        if other is not None:
            other.release()
