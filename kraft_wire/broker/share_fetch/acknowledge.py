"""What a member does with its records: acknowledge, release, reject, renew; or it goes (KIP-932).

The batches of one request are allowed or refused together. The new states are set at once, then
written; `SharePartition.settle` ends or undoes them.

Not here: the form of a request (`acknowledge_batches`), and sessions.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_fetch.in_flight import InFlightBatch
from kraft_wire.broker.share_fetch.record_state import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    FINAL_STATES,
    NO_MEMBER,
    DeliveryState,
    RecordState,
)
from kraft_wire.broker.share_fetch.share_partition import (
    Change,
    Done,
    Outcome,
    SharePartition,
    stored_batch,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Acknowledgement", "acknowledge", "release"]

_RENEW: Final = 4
_STATES: Final[dict[int, DeliveryState]] = {
    0: ARCHIVED,  # the log has no record there
    1: ACKNOWLEDGED,
    2: AVAILABLE,
    3: ARCHIVED,
}
"""The state that each type of acknowledgement asks for; `_RENEW` changes none."""

_INVALID_STATE: Final = ErrorCode.INVALID_RECORD_STATE


class Acknowledgement(NamedTuple):
    """One batch of a request: a type for all its offsets, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def type_at(self, offset: int) -> int:
        """Return the type for an offset."""
        return self.types[offset - self.first_offset] if len(self.types) > 1 else self.types[0]

    def counts(self) -> Mapping[int, int]:
        """Return how many offsets have each type."""
        if len(self.types) > 1:
            return Counter(self.types)
        return {self.types[0]: self.last_offset - self.first_offset + 1}


class _Refused(Exception):
    """A batch that is not allowed; the request changes nothing."""

    def __init__(self, message: str, error: ErrorCode = _INVALID_STATE) -> None:
        super().__init__(message)
        self.outcome = Outcome(error, message)


def acknowledge(
    partition: SharePartition,
    member_id: str,
    batches: Sequence[Acknowledgement],
    at: ClockReading,
    then: Done,
) -> None:
    """Change the states of a member's records, and write them.

    Errors: INVALID_REQUEST for offsets behind what is in flight, INVALID_RECORD_STATE, and those of
    the share coordinator. Offsets below the start are skipped.
    """
    work = _Acknowledging(partition, member_id, at)
    failure = None
    try:
        for each in batches:
            work.take(each)
    except _Refused as refused:
        failure = refused.outcome
    partition.settle(work.changes, failure, at, then)


def release(partition: SharePartition, member_id: str, at: ClockReading, then: Done) -> None:
    """Take all its records from a member whose session ended."""
    work = _Acknowledging(partition, member_id, at)
    start_offset = partition.start_offset
    for batch in partition.in_flight:
        whole = batch.whole
        if (
            whole is not None
            and whole.state is ACQUIRED
            and whole.member_id == member_id
            and batch.first_offset < start_offset <= batch.last_offset
        ):
            batch.split()  # those below the start are archived whatever their count
        for first, last, state in _parts(batch):
            if state.state is ACQUIRED and state.member_id == member_id:
                work.change(state, first, last, ARCHIVED if last < start_offset else AVAILABLE)
    partition.settle(work.changes, None, at, then)


class _Acknowledging:
    """The changes of one request."""

    __slots__ = ("at", "changes", "member_id", "partition")

    def __init__(self, partition: SharePartition, member_id: str, at: ClockReading) -> None:
        self.partition = partition
        self.member_id = member_id
        self.at = at
        self.changes: list[Change] = []

    def take(self, asked: Acknowledgement) -> None:
        """Change what one batch names. Errors: `_Refused`."""
        start_offset = self.partition.start_offset
        if asked.last_offset < start_offset:
            return
        for batch in self._in_flight(asked):
            if batch.last_offset >= start_offset:
                self._take_batch(asked, batch)

    def _in_flight(self, asked: Acknowledgement) -> Sequence[InFlightBatch]:
        """Return the batches in flight that an acknowledgement concerns."""
        partition = self.partition
        in_flight, start_offset = partition.in_flight, partition.start_offset
        floor = in_flight.floor(asked.first_offset)
        if floor is None and asked.first_offset < start_offset <= asked.last_offset:
            floor = in_flight.floor(start_offset)
        if floor is None:
            raise _Refused(
                "Batch record not found. The request batch offsets are not found in the cache."
            )
        found = in_flight.beginning_in(floor.first_offset, asked.last_offset)
        last_offset = found[-1].last_offset
        for end, offset in (("first", asked.first_offset), ("last", asked.last_offset)):
            if offset > last_offset:
                raise _Refused(
                    f"Batch record not found. The {end} offset in request is past acquired "
                    "records.",
                    ErrorCode.INVALID_REQUEST,
                )
        return found

    def _take_batch(self, asked: Acknowledgement, batch: InFlightBatch) -> None:
        whole, start_offset = batch.whole, self.partition.start_offset
        if whole is not None:
            self._check_owner(whole)
            is_whole = batch.is_within(asked.first_offset, asked.last_offset)
            if is_whole and len(asked.types) == 1 and batch.first_offset >= start_offset:
                self._take_whole(asked.types[0], batch, whole)
                return
            _check_acquired(whole, "The batch", "The subset batch")
            batch.split()
        first = max(asked.first_offset, start_offset)
        for offset, state in batch.states(first, asked.last_offset):
            self._take_record(asked.type_at(offset), offset, state)

    def _check_owner(self, whole: RecordState) -> None:
        if whole.member_id == NO_MEMBER:
            raise _Refused(
                "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        if whole.member_id != self.member_id:
            raise _Refused("Member is not the owner of batch record")

    def _take_whole(self, kind: int, batch: InFlightBatch, whole: RecordState) -> None:
        _check_acquired(whole, "The batch", "The batch")
        first, last = batch.first_offset, batch.last_offset
        if kind == _RENEW:
            self._renew(whole, first, last)
        else:
            self.change(whole, first, last, _STATES[kind])

    def _take_record(self, kind: int, offset: int, state: RecordState) -> None:
        _check_acquired(state, "The offset", "The offset", "acquired")
        if state.member_id != self.member_id:
            raise _Refused("Member is not the owner of offset")
        if kind == _RENEW:
            self._renew(state, offset, offset)
        else:
            self.change(state, offset, offset, _STATES[kind])

    def _renew(self, state: RecordState, first: int, last: int) -> None:
        """Restart the lock, without a write."""
        if not self.partition.settings.renew_acknowledge_enable:
            raise _Refused("Renewing acquisition locks is not enabled for the group.")
        state.unlock()
        self.partition.lock(state, first, last, self.at)

    def change(self, state: RecordState, first: int, last: int, to: DeliveryState) -> None:
        """Begin the change of acquired records."""
        is_begun = state.begin(to, self.partition.settings.delivery_count_limit)
        assert is_begun, "acquired records are not changing"
        self.changes.append(Change(state, stored_batch(first, last, state)))
        if state.state in FINAL_STATES:
            self.partition.delivery_complete_count += self.partition.count_in_flight(first, last)


def _check_acquired(
    state: RecordState, what: str, which: str, needed: str = "in the acquired state"
) -> None:
    if state.state is not ACQUIRED:
        raise _Refused(f"{what} cannot be acknowledged. {which} is not {needed}.")


def _parts(batch: InFlightBatch) -> Iterator[tuple[int, int, RecordState]]:
    """Return the states of a batch, each with its first and last offset."""
    if batch.whole is not None:
        yield batch.first_offset, batch.last_offset, batch.whole
        return
    for offset, state in batch.states(batch.first_offset, batch.last_offset):
        yield offset, offset, state
