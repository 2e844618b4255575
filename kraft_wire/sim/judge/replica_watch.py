"""The last seen state of one replica, for the judge of clusters: its node's memory, and its disk.

`data_judge` judges the state; this module reads and keeps it, and begins again with a new process
or log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from kraft_wire.broker.partition import Partition
from kraft_wire.sim.judge.data_log_watch import DataLogWatch
from kraft_wire.sim.judge.log_watch import LogChanges, LogWatch, SeenBatch
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.replica_places import changes_of_move, path_of
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.storage.log import Log
from kraft_wire.storage.segment import Segment

__all__ = ["ReplicaWatch"]

_NOTHING: Final = (0, 0, -1, False)


@dataclass(slots=True, eq=False)
class ReplicaWatch:
    """The last seen state of one replica."""

    machine: MachineState
    truth: PartitionTruth
    log: LogWatch
    state: tuple[int, int, int, bool] = _NOTHING
    """End, high watermark, leader epoch, whether it leads: as the node has it in memory."""
    led_epoch: int = -1
    committed_epoch: int = -1
    """Leader epoch of the last batch that the node called committed, -1 for none."""
    partition: Partition | None = None
    """The node's partition object; a new one after the partition was removed and added again."""
    is_loading: bool = True
    """Whether what is seen of the log was there when its process or its replica began."""
    truncated_to: int = -1
    """Where the log was truncated since the look before, -1 if it was not."""
    log_start: int = -1
    """The node's log start offset, -1 for a process that was not checked yet."""
    has_led: bool = False
    """Whether it led at the last look at its log start."""
    segments: list[Segment] = field(default_factory=list)
    """The node's segments, to see whether they are other ones."""
    unclean_since_ms: int | None = None
    """Since when compaction is overdue, by the node's clock."""
    compared: dict[str, object] = field(default_factory=dict)
    """Name -> state of the files beside sealed segments that were compared with the log."""
    roots: tuple[str, ...] = ()
    """The log directories of its broker."""
    moved_from: LogWatch | None = None
    """The log in the directory that it has left, until that was judged."""

    @property
    def high_watermark(self) -> int:
        """The end that the node last called committed."""
        return self.state[1]

    @property
    def hidden_below(self) -> int:
        """The node's log start offset now: segments below it may still be on the disk."""
        return -1 if self.partition is None else self.partition.log.log_start_offset

    def forget(self) -> None:
        """Begin again: another process has it, or another log."""
        self.log = type(self.log)(self.log.directory)
        self.state, self.led_epoch, self.committed_epoch = _NOTHING, -1, -1
        self.partition = None
        self.is_loading = True
        self.truncated_to = self.log_start = -1
        self.has_led, self.segments = False, []
        self.unclean_since_ms = None
        self.compared = {}
        self.moved_from = None

    def led_between(self, before: int, now: int) -> int:
        """Return the newest leader epoch of this broker between two that it had, -1 for none.

        The metadata of one event may have made it leader, and then another broker or none.
        """
        if before < 0:
            return -1
        mine = (e for e, leader in self.truth.leaders.items() if leader == self.machine.id)
        return max((epoch for epoch in mine if before < epoch < now), default=-1)

    def look(self) -> LogChanges:
        """Read the changes on the disk, in the directory that has the log now."""
        if len(self.roots) < 2 or (path := self._path()) == self.log.directory:
            return self.log.look(self.machine.fs)
        before, self.log = self.log, type(self.log)(path)
        changes = self.log.look(self.machine.fs)
        if not self.is_loading:
            self.moved_from, self.compared = before, {}
            changes_of_move(before, self.log, changes)
        return changes

    def _path(self) -> str:
        """Return where the log is: where its process has it, else by the names on the disk."""
        partition, fs = self.partition, self.machine.fs
        if partition is not None and not partition.offline and partition.log is not None:
            return cast(Log, partition.log).directory
        return path_of(fs, self.truth, self.roots, self.log.directory)

    def holds(self, batch: SeenBatch) -> bool:
        """Return whether a batch is in the log on the disk now."""
        if not self.log.is_unchanged(self.machine.fs):
            self.look()
        own = self.log.batch_before(batch.end_offset)
        return self.truth.is_same(own, batch)

    def batch_from(self, offset: int) -> SeenBatch | None:
        """Return the batch that begins at an offset, None without one.

        One event may commit records and compact them: then it is the batch as it was before.
        """
        found = self.log.batch_before(offset + 1)
        if found is not None and found.base_offset == offset:
            return found
        edits = self.log.edits if isinstance(self.log, DataLogWatch) else []
        former = (each for edit in edits for segment in edit.before for each in segment.batches)
        return next((each for each in former if each.base_offset == offset), None)

    def has_reached(self, batch: SeenBatch) -> bool:
        """Return whether a batch is in the log, or was rightly removed from it."""
        if self.holds(batch):
            return True
        is_passed = self.truth.rules is not None and self.log.end_offset >= batch.end_offset
        if is_passed and batch.end_offset <= self.log_start:
            return True  # of the leader's log it was deleted; what is left here does not count
        own = self.log.batch_before(batch.end_offset)
        return is_passed and (own is None or self.truth.is_same(own, batch))
