"""The state of a partition's idempotent and transactional producers (KIP-98, KIP-360, KIP-890).

Per producer id: the epoch and the last five batches, to recognise a retry and refuse a gap; for
transactions, the start of the open one. The table follows the log exactly, so that a follower and a
recovery have the same one; `<offset>.snapshot` files in Kafka's format shorten the replay. A
snapshot has only the last batch of each producer, as in Kafka.

It is part of storage because the log does recovery, rolls and truncation. `check` decides on a
client's batch; batches in the log are `update`d without a check.
"""

import struct
from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from typing import NamedTuple

from kraft_wire.frozen import slotted
from kraft_wire.model import Offset
from kraft_wire.storage.indexes import AbortedTransaction
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.record import increment_sequence
from kraft_wire.wire.records.record_batch import CONTROL_BIT, TRANSACTIONAL_BIT, RecordBatch

__all__ = [
    "BATCHES_KEPT",
    "BatchMetadata",
    "CorruptSnapshot",
    "ProducerState",
    "ProducerStates",
    "SequenceCheck",
    "SequenceVerdict",
    "read_marker",
]

NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
BATCHES_KEPT = 5
_SEQUENCE_MAX = (1 << 31) - 1
_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEAD = struct.Struct(">hI")
_SNAPSHOT_COUNT = struct.Struct(">i")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_CHECKED_FROM = _SNAPSHOT_HEAD.size
_CONTROL_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1


class CorruptSnapshot(Exception):
    """A producer snapshot is damaged; the table is rebuilt from the log instead."""


class SequenceVerdict(Enum):
    """The kind of a client's batch, by its producer id, epoch and sequence."""

    OK = "ok"
    DUPLICATE = "duplicate"
    OUT_OF_ORDER_SEQUENCE_NUMBER = "out of order"
    INVALID_PRODUCER_EPOCH = "fenced"
    INVALID_TXN_STATE = "plain inside a transaction"


class SequenceCheck(NamedTuple):
    """A verdict; for a duplicate with the offsets of the first copy."""

    verdict: SequenceVerdict
    base_offset: Offset = Offset(-1)
    timestamp: int = -1


_OK = SequenceCheck(SequenceVerdict.OK)
_OUT_OF_ORDER = SequenceCheck(SequenceVerdict.OUT_OF_ORDER_SEQUENCE_NUMBER)
_FENCED = SequenceCheck(SequenceVerdict.INVALID_PRODUCER_EPOCH)
_INVALID_TXN_STATE = SequenceCheck(SequenceVerdict.INVALID_TXN_STATE)


class BatchMetadata(NamedTuple):
    """An appended batch: its last sequence, last offset, count minus one, newest time."""

    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: int

    @property
    def base_sequence(self) -> int:
        """Sequence of the first record; sequences wrap to 0 after the largest int32."""
        assert self.offset_delta >= 0, self
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + _SEQUENCE_MAX + 1

    @property
    def base_offset(self) -> Offset:
        """Offset of the first record."""
        assert self.last_offset >= self.offset_delta, self
        return Offset(self.last_offset - self.offset_delta)


@slotted
class ProducerState:
    """One producer id's entry."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: list[BatchMetadata] = field(default_factory=list)  # oldest first, five at most
    last_timestamp: int = -1
    coordinator_epoch: int = -1
    transaction_first_offset: Offset | None = None

    @property
    def last_sequence(self) -> int:
        """Sequence of the newest record, -1 if unknown."""
        assert len(self.batches) <= BATCHES_KEPT, self
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> Offset:
        """Offset of the newest record, -1 if unknown."""
        assert len(self.batches) <= BATCHES_KEPT, self
        return self.batches[-1].last_offset if self.batches else Offset(-1)


class ProducerStates:
    """The table of one partition."""

    __slots__ = ("_opened", "_states", "_unreplicated", "map_end_offset", "snapshot_offset")

    def __init__(self) -> None:
        self._states: dict[int, ProducerState] = {}
        self._opened: dict[int, Offset] = {}  # transactions without marker, in log order
        self._unreplicated: list[tuple[Offset, Offset]] = []  # (first, marker) not below HW yet
        self.map_end_offset = Offset(0)
        self.snapshot_offset = Offset(0)
        """Offset of the loaded snapshot, which does not have transactions that ended below it."""

    def __len__(self) -> int:
        return len(self._states)

    def get(self, producer_id: int) -> ProducerState | None:
        """Return the entry of a producer, or None."""
        return self._states.get(producer_id)

    def active_producers(self) -> Iterator[ProducerState]:
        """Iterate over the entries in the order in which the producers first wrote."""
        return iter(self._states.values())

    @property
    def has_markers(self) -> bool:
        """Whether any known producer has ended a transaction here."""
        return any(state.coordinator_epoch >= 0 for state in self._states.values())

    # -- the leader's check ----------------------------------------------------------------------

    def check(self, batch: RecordBatch) -> SequenceCheck:
        """Check a client's batch; first match wins: duplicate, old epoch, gap, not transactional.

        An unknown producer may begin at any sequence: its state may have expired (KIP-360). A known
        one begins a new epoch at sequence 0. Effects: none.
        """
        assert batch.producer_id >= 0, batch
        state = self._states.get(batch.producer_id)
        if state is None:
            return _OK
        epoch, base_sequence = batch.producer_epoch, batch.base_sequence
        if epoch == state.producer_epoch:
            last = state.last_sequence
            if base_sequence == last + 1:  # no copy of one of the last five, which end at `last`
                return _OK if state.transaction_first_offset is None else _in_transaction(batch)
            last_sequence = increment_sequence(base_sequence, batch.last_offset_delta)
            for kept in state.batches:
                if kept.last_sequence == last_sequence and kept.base_sequence == base_sequence:
                    return SequenceCheck(
                        SequenceVerdict.DUPLICATE, kept.base_offset, kept.timestamp
                    )
            follows = base_sequence == 0 and last == _SEQUENCE_MAX
        elif epoch < state.producer_epoch:
            return _FENCED
        else:
            follows = base_sequence == 0
        if not follows:
            return _OUT_OF_ORDER
        return _OK if state.transaction_first_offset is None else _in_transaction(batch)

    # -- following the log -----------------------------------------------------------------------

    def update(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Apply a batch of the log; return the transaction that it aborts, if any.

        The last stable offset in it is the one after its marker is applied.
        """
        assert batch.base_offset >= 0, batch
        self.map_end_offset = Offset(batch.base_offset + batch.last_offset_delta + 1)
        if batch.producer_id < 0:
            return None
        if batch.attributes & CONTROL_BIT:
            return self._end_transaction(batch)
        state = self._state_for(batch.producer_id, batch.producer_epoch)
        self._note_batch(state, batch)
        if batch.attributes & TRANSACTIONAL_BIT and state.transaction_first_offset is None:
            state.transaction_first_offset = Offset(batch.base_offset)
            self._opened[batch.producer_id] = Offset(batch.base_offset)
        assert len(state.batches) <= BATCHES_KEPT, state
        return None

    def _state_for(self, producer_id: int, epoch: int) -> ProducerState:
        """Return the entry, created or moved to the epoch if needed."""
        state = self._states.get(producer_id)
        if state is None:
            state = self._states[producer_id] = ProducerState(producer_id)
        if state.producer_epoch != epoch:
            state.producer_epoch = epoch
            state.batches.clear()
        assert state.producer_id == producer_id, state
        return state

    def _note_batch(self, state: ProducerState, batch: RecordBatch) -> None:
        delta = batch.last_offset_delta
        kept = state.batches
        assert len(kept) <= BATCHES_KEPT, state
        if len(kept) == BATCHES_KEPT:
            del kept[0]
        last_sequence = increment_sequence(batch.base_sequence, delta)
        last_offset = Offset(batch.base_offset + delta)
        kept.append(BatchMetadata(last_sequence, last_offset, delta, batch.max_timestamp))
        state.last_timestamp = batch.max_timestamp

    def _end_transaction(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Apply a commit or abort marker; other control records change nothing.

        A marker without its record ends what is open here as aborted. The leader had cleaned the
        whole transaction by then: it was aborted, or each of its records has a later one of its
        key, so that none is missed. In 4.3.1 it stays open.
        """
        assert batch.is_control, batch
        marker = read_marker(batch)
        if marker is None and batch.producer_id in self._opened and not batch.records_count:
            marker = True, self._states[batch.producer_id].coordinator_epoch
        if marker is None:
            return None
        is_abort, coordinator_epoch = marker
        state = self._state_for(batch.producer_id, batch.producer_epoch)
        first_offset = state.transaction_first_offset
        state.transaction_first_offset = None
        self._opened.pop(batch.producer_id, None)
        state.coordinator_epoch = coordinator_epoch
        state.last_timestamp = batch.max_timestamp
        if first_offset is None:
            return None
        marker_offset = Offset(batch.base_offset)
        self._unreplicated.append((first_offset, marker_offset))
        assert first_offset < marker_offset, (first_offset, marker_offset)
        if not is_abort:
            return None
        stable = self._first_open_offset()
        if stable is None:
            stable = Offset(marker_offset + 1)
        return AbortedTransaction(batch.producer_id, first_offset, marker_offset, stable)

    def _first_open_offset(self) -> Offset | None:
        """Return the start of the oldest transaction without a marker, or None."""
        assert len(self._opened) <= len(self._states), self._opened
        return next(iter(self._opened.values()), None)

    def first_unstable_offset(self, high_watermark: Offset) -> Offset | None:
        """Return the start of the oldest transaction that is open or not replicated, or None."""
        assert high_watermark >= 0, high_watermark
        if not self._opened and not self._unreplicated:
            return None
        if self._unreplicated:
            self._unreplicated = [
                entry for entry in self._unreplicated if entry[1] >= high_watermark
            ]
        unreplicated = min((first for first, _ in self._unreplicated), default=None)
        opened = self._first_open_offset()
        candidates = [offset for offset in (unreplicated, opened) if offset is not None]
        return min(candidates, default=None)

    def expire(self, wall_ms: int, expiration_ms: int) -> int:
        """Drop producers idle for that long, except with open transactions; return their number."""
        assert expiration_ms > 0, expiration_ms
        old = [
            producer_id
            for producer_id, state in self._states.items()
            if state.transaction_first_offset is None
            and wall_ms - state.last_timestamp >= expiration_ms
        ]
        for producer_id in old:
            del self._states[producer_id]
        return len(old)

    def clear(self, map_end_offset: Offset) -> None:
        """Drop everything, as in a log without records below that offset."""
        assert map_end_offset >= 0, map_end_offset
        self._states.clear()
        self._opened.clear()
        self._unreplicated.clear()
        self.map_end_offset = map_end_offset

    def forget_below(self, log_start_offset: Offset) -> None:
        """Drop finished transactions whose marker is below the log's start."""
        assert log_start_offset >= 0, log_start_offset
        self._unreplicated = [entry for entry in self._unreplicated if entry[1] >= log_start_offset]

    # -- snapshots -------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the content of a `.snapshot` file (format version 1)."""
        entries = b"".join(map(_snapshot_entry, self._states.values()))
        assert len(entries) == _SNAPSHOT_ENTRY.size * len(self._states)
        checked = _SNAPSHOT_COUNT.pack(len(self._states)) + entries
        return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc32c(checked)) + checked

    def load_snapshot(self, data: bytes, offset: Offset) -> None:
        """Load the snapshot taken at `offset`; CorruptSnapshot if it is damaged."""
        assert offset >= 0, offset
        states = {state.producer_id: state for state in _snapshot_states(data)}
        self.clear(offset)
        self._states = states
        self.snapshot_offset = offset
        opened = [
            (state.transaction_first_offset, producer_id)
            for producer_id, state in states.items()
            if state.transaction_first_offset is not None
        ]
        self._opened = {producer_id: first for first, producer_id in sorted(opened)}
        assert self.map_end_offset == offset, offset


def _in_transaction(batch: RecordBatch) -> SequenceCheck:
    """Check a batch of a producer with an open transaction: it must be transactional."""
    return _OK if batch.attributes & TRANSACTIONAL_BIT else _INVALID_TXN_STATE


def _snapshot_entry(state: ProducerState) -> bytes:
    """Encode one entry; only the newest batch of a producer is kept."""
    last = state.batches[-1] if state.batches else None
    first_offset = state.transaction_first_offset
    assert first_offset is None or first_offset >= 0, state
    return _SNAPSHOT_ENTRY.pack(
        state.producer_id,
        state.producer_epoch,
        last.last_sequence if last else NO_SEQUENCE,
        last.last_offset if last else -1,
        last.offset_delta if last else 0,
        state.last_timestamp,
        state.coordinator_epoch,
        -1 if first_offset is None else first_offset,
    )


def _snapshot_states(data: bytes) -> Iterator[ProducerState]:
    """Decode all entries; CorruptSnapshot for a wrong version, checksum or length."""
    if len(data) < _CHECKED_FROM + _SNAPSHOT_COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are not a snapshot")
    version, crc = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"unknown version {version}")
    if crc32c(data[_CHECKED_FROM:]) != crc:
        raise CorruptSnapshot("the CRC does not match")
    (count,) = _SNAPSHOT_COUNT.unpack_from(data, _CHECKED_FROM)
    entries = data[_CHECKED_FROM + _SNAPSHOT_COUNT.size :]
    if len(entries) != count * _SNAPSHOT_ENTRY.size:
        raise CorruptSnapshot(f"{count} entries in {len(entries)} bytes")
    for entry in _SNAPSHOT_ENTRY.iter_unpack(entries):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first = entry
        if offset >= 0 and not 0 <= delta <= offset:
            raise CorruptSnapshot(f"producer {producer_id}: {delta} records before {offset}")
        known = [BatchMetadata(sequence, Offset(offset), delta, timestamp)] if offset >= 0 else []
        opened = Offset(first) if first >= 0 else None
        assert len(known) <= 1, known
        yield ProducerState(producer_id, epoch, known, timestamp, coordinator_epoch, opened)


def read_marker(batch: RecordBatch) -> tuple[bool, int] | None:
    """Return (is abort, coordinator epoch) of an end-of-transaction batch, or None for others."""
    record = next(batch.iter_records(), None)
    assert batch.is_control, batch
    if record is None or record.key is None or len(record.key) < _CONTROL_KEY.size:
        return None
    _, kind = _CONTROL_KEY.unpack_from(record.key)
    if kind not in (_ABORT, _COMMIT):
        return None
    if record.value is None or len(record.value) < _MARKER_VALUE.size:
        return kind == _ABORT, -1
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    return kind == _ABORT, coordinator_epoch
