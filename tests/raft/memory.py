"""A disk for one replica, in memory: a log of batches, snapshots and quorum-state.

What was not flushed is gone after `lose_power`. Batches are values of a shared shelf: on the wire a
batch is the eight bytes of its number there, so that a fetched chunk is real bytes without real
encoding. A number that is not on the shelf is a batch whose CRC does not hold.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from kraft_wire.model import ElectionState, LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.raft.events import ControlRecord
from kraft_wire.raft.following import take_control_record
from kraft_wire.raft.voters import VoterSet, VoterSetHistory
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.voters_record import VotersRecord
from kraft_wire.wire.message import Message

BATCH_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Records that one append made: values of the state machine, or control records."""

    number: int
    base_offset: int
    epoch: int
    values: tuple[bytes, ...] = ()
    controls: tuple[Message, ...] = ()

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.values) + len(self.controls)

    @property
    def bytes(self) -> bytes:
        return self.number.to_bytes(BATCH_BYTES, "big")


class Shelf:
    """Every batch and snapshot that was ever made, in all replicas."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.snapshots: dict[bytes, Snapshot] = {}

    def new_batch(
        self,
        base_offset: int,
        epoch: int,
        values: tuple[bytes, ...] = (),
        controls: tuple[Message, ...] = (),
    ) -> Batch:
        batch = Batch(len(self.batches), base_offset, epoch, values, controls)
        self.batches.append(batch)
        return batch

    def read(self, data: bytes) -> list[Batch | None]:
        """Batches of a chunk; None where the bytes are none."""
        found: list[Batch | None] = []
        for at in range(0, len(data), BATCH_BYTES):
            number = int.from_bytes(data[at : at + BATCH_BYTES], "big")
            is_known = len(data) - at >= BATCH_BYTES and number < len(self.batches)
            found.append(self.batches[number] if is_known else None)
        return found


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a state machine had at an offset, and the control records in force there."""

    snapshot_id: OffsetAndEpoch
    state: int
    controls: tuple[Message, ...]
    data: bytes


def applied(state: int, batch: Batch) -> int:
    """The state machine: a checksum over all values, in order."""
    for value in batch.values:
        state = zlib.crc32(value, state)
    return state


@dataclass
class MemoryLog:
    """Batches in a row; the port `LogView`."""

    batches: list[Batch] = field(default_factory=list)
    start: OffsetAndEpoch = OffsetAndEpoch(Offset(0), LeaderEpoch(0))  # noqa: RUF009  # frozen
    flushed: int = 0
    epoch_starts: list[tuple[int, int]] = field(default_factory=list)
    cuts: int = 0
    """How often something was cut off: a flush that began before says nothing of what follows."""

    @property
    def log_start_offset(self) -> Offset:
        return self.start.offset

    @property
    def log_end_offset(self) -> Offset:
        return Offset(self.batches[-1].end_offset) if self.batches else self.start.offset

    @property
    def flushed_end_offset(self) -> Offset:
        return Offset(self.flushed)

    @property
    def last_epoch(self) -> LeaderEpoch:
        return LeaderEpoch(self.batches[-1].epoch) if self.batches else self.start.epoch

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> OffsetAndEpoch:
        starts = self.epoch_starts
        if not starts:
            return OffsetAndEpoch(self.log_end_offset, epoch)
        if epoch < starts[0][0]:
            return OffsetAndEpoch(Offset(starts[0][1]), epoch)
        found = max(at for at, (known, _) in enumerate(starts) if known <= epoch)
        end = starts[found + 1][1] if found + 1 < len(starts) else self.log_end_offset
        return OffsetAndEpoch(Offset(end), LeaderEpoch(starts[found][0]))

    def is_batch_start(self, offset: Offset) -> bool:
        return offset == self.log_end_offset or any(b.base_offset == offset for b in self.batches)

    def append(self, batch: Batch) -> None:
        assert batch.base_offset == self.log_end_offset, (batch, self.log_end_offset)
        assert batch.epoch >= self.last_epoch, (batch, self.last_epoch)
        if not self.epoch_starts or batch.epoch > self.epoch_starts[-1][0]:
            self.epoch_starts.append((batch.epoch, batch.base_offset))
        self.batches.append(batch)

    def flush(self) -> None:
        self.flushed = self.log_end_offset

    def truncate(self, end_offset: int) -> None:
        while self.batches and self.batches[-1].end_offset > end_offset:
            self.batches.pop()
        self._forget_epochs()
        self.cuts += 1
        self.flushed = self.log_end_offset

    def lose_power(self) -> None:
        """Forget what was never flushed; a snapshot is on the disk before the log below it goes."""
        while self.batches and self.batches[-1].end_offset > self.flushed:
            self.batches.pop()
        self._forget_epochs()
        self.flushed = self.log_end_offset

    def _forget_epochs(self) -> None:
        end = self.log_end_offset
        self.epoch_starts = [(e, at) for e, at in self.epoch_starts if at < end]

    def reset_to(self, snapshot_id: OffsetAndEpoch) -> None:
        self.batches, self.epoch_starts = [], []
        self.cuts += 1
        self.start = snapshot_id
        self.flushed = snapshot_id.offset

    def forget_below(self, snapshot_id: OffsetAndEpoch) -> None:
        """Raise the start to a snapshot's end; the epoch in force there moves up to it."""
        self.batches = [b for b in self.batches if b.base_offset >= snapshot_id.offset]
        kept = [(e, at) for e, at in self.epoch_starts if at >= snapshot_id.offset]
        below = [e for e, at in self.epoch_starts if at < snapshot_id.offset]
        if below and self.batches and self.batches[0].epoch == below[-1]:
            kept = [(below[-1], snapshot_id.offset), *kept]
        self.epoch_starts = kept
        self.start = snapshot_id

    def batch_at(self, offset: int) -> Batch | None:
        """The batch that holds a record, None outside of the log."""
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].end_offset <= offset:
                low = middle + 1
            else:
                high = middle
        return (
            self.batches[low] if low < len(self.batches) and offset >= self.start.offset else None
        )


class MemorySnapshots:
    """Complete snapshots by id; the port `SnapshotView`."""

    def __init__(self) -> None:
        self.kept: dict[OffsetAndEpoch, Snapshot] = {}

    @property
    def latest_id(self) -> OffsetAndEpoch | None:
        return max(self.kept, key=lambda one: (one.epoch, one.offset), default=None)

    @property
    def earliest_id(self) -> OffsetAndEpoch | None:
        return min(self.kept, key=lambda one: (one.epoch, one.offset), default=None)

    def size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        snapshot = self.kept.get(snapshot_id)
        return len(snapshot.data) if snapshot is not None else None


class Disk:
    """What of a replica survives a crash, and what does not."""

    def __init__(self, formatted: VoterSet | None) -> None:
        self.election: ElectionState | None = None
        self.log = MemoryLog()
        self.snapshots = MemorySnapshots()
        self.partial: tuple[OffsetAndEpoch, bytes] | None = None
        self.formatted = formatted
        """The voters of the (0, 0) checkpoint that formatting a dynamic quorum left."""

    def lose_power(self) -> None:
        self.log.lose_power()
        self.partial = None

    def controls(self) -> list[ControlRecord]:
        """Control records in force, of the newest snapshot that the log starts at, and the log."""
        found: list[ControlRecord] = []
        base = [one for one in self.snapshots.kept.values() if one.snapshot_id == self.log.start]
        if base:
            before = Offset(self.log.start.offset - 1)
            found += [ControlRecord(before, message) for message in base[0].controls]
        elif self.formatted is not None and self.log.start.offset == 0:
            level = KRaftVersionRecord(version=0, kraft_version=1)
            before = Offset(-1)
            found += [ControlRecord(before, level)]
            found += [ControlRecord(before, self.formatted.to_record())]
        for batch in self.log.batches:
            found += control_records(batch)
        return found

    def history(self, static: VoterSet | None) -> VoterSetHistory:
        """The voter sets that a start finds."""
        voters = VoterSetHistory(static)
        for record in self.controls():
            assert take_control_record(voters, record.offset, record.message), record
        return voters


def control_records(batch: Batch) -> list[ControlRecord]:
    """The records of a batch that a replica obeys, with their offsets."""
    return [
        ControlRecord(Offset(batch.base_offset + delta), message)
        for delta, message in enumerate(batch.controls)
        if isinstance(message, VotersRecord | KRaftVersionRecord)
    ]
