"""A topic partition as one group shares it: start, end, and what is in flight between (KIP-932).

Pure state of the topic partition's leader: what is durable goes through `SharePersister`, what a
member may have now is decided in `acquire`, what becomes of it in `acknowledge`. The rules are
those of 4.3.1's `SharePartition`; `tests/broker/share_fetch/test_against_apache.py` tells random
stories to both.

    EMPTY ──load──► LOADING ──► ACTIVE ──fence──► FENCED
                       └──────► FAILED

Not here: which share partitions there are (`share_partitions`), sessions, and reading the log.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_fetch.in_flight import InFlightBatch
from kraft_wire.broker.share_fetch.locks import Lock, Locks
from kraft_wire.broker.share_fetch.record_state import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    FINAL_STATES,
    NO_MEMBER,
    STORED_STATES,
    RecordState,
)
from kraft_wire.broker.share_fetch.share_settings import ShareGroupSettings
from kraft_wire.broker.share_fetch.window import Window
from kraft_wire.broker.share_persister import (
    DeliveryStateBatch,
    PersisterResult,
    SharePartitionKey,
    SharePartitionState,
    SharePersister,
    ShareStateWrite,
)
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Change", "Done", "Life", "Outcome", "ShareEnvironment", "SharePartition"]

_NOT_STARTED: Final = -1
_SERVER_ERROR: Final = "Unable to complete operation due to server error."
_ERRORS_OF_CLIENTS: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What share consumers see of the share coordinator's errors; all others are -1."""


class Outcome(NamedTuple):
    """How a load or a change ended."""

    error: ErrorCode
    message: str | None = None


Done: TypeAlias = Callable[[Outcome, ClockReading], None]
"""Called once, maybe before the call that takes it returns."""

_NO_ERROR: Final = Outcome(ErrorCode.NONE)


class Life(Enum):
    """Where a share partition is in its life on this leader."""

    EMPTY = "empty"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class Change(NamedTuple):
    """A state that was changed and must be written."""

    state: RecordState
    stored: DeliveryStateBatch


class ShareEnvironment(NamedTuple):
    """What share partitions need of their broker."""

    persister: SharePersister
    locks: Locks
    settings: Callable[[str], ShareGroupSettings]
    """Returns the settings of a group, read at each use."""
    changed: "Callable[[SharePartition], None]"
    """Wakes the fetches that wait for records of a share partition."""
    first_offset: "Callable[[SharePartition, ClockReading], Offset | ErrorCode]"
    """Returns where a group without a start offset begins, by its `share.auto.offset.reset`."""


class SharePartition(Window):
    """One share partition of the leader: a window of its records, their locks, and its life."""

    __slots__ = ("env", "key", "leader_epoch", "life", "lock_timeouts_count", "state_epoch")

    def __init__(
        self, key: SharePartitionKey, leader_epoch: LeaderEpoch, env: ShareEnvironment
    ) -> None:
        super().__init__()
        self.key = key
        self.leader_epoch = leader_epoch
        self.env = env
        self.life = Life.EMPTY
        self.state_epoch = 0
        self.lock_timeouts_count = 0
        """`AcquisitionLockTimeoutPerSec`: offsets whose lock ended by time."""

    @property
    def settings(self) -> ShareGroupSettings:
        """The group's settings as they are now."""
        return self.env.settings(self.key.group_id)

    # -- loading ---------------------------------------------------------------------------------

    def load(self, at: ClockReading, then: Done) -> None:
        """Read the stored state, and take over the share partition."""
        assert self.life is Life.EMPTY, self.life
        self.life = Life.LOADING

        def loaded(result: PersisterResult, at: ClockReading) -> None:
            outcome = self._loaded(result, at)
            if self.life is Life.LOADING:
                self.life = Life.ACTIVE if outcome.error == ErrorCode.NONE else Life.FAILED
            then(outcome, at)

        self.env.persister.read(
            {self.key: self.leader_epoch},
            at,
            lambda results, at: loaded(results[self.key], at),
        )

    def _loaded(self, result: PersisterResult, at: ClockReading) -> Outcome:
        if result.error != ErrorCode.NONE:
            return client_outcome(result)
        state = result.state
        assert state is not None, "Read without an error has the state"
        start_offset = state.start_offset
        if start_offset == _NOT_STARTED:
            found = self.env.first_offset(self, at)
            if isinstance(found, ErrorCode):
                return Outcome(found)
            start_offset = found
        if not _is_sound(state, start_offset):
            return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
        self.state_epoch = state.state_epoch
        self.take_stored(start_offset, state.batches)
        return _NO_ERROR

    def fence(self) -> None:
        """End this life: the broker does not lead the partition any more, or the state is gone."""
        self.life = Life.FENCED
        for batch in self.in_flight:
            for state in batch.each if batch.whole is None else (batch.whole,):
                state.unlock()

    def can_acquire(self) -> bool:
        """Whether a fetch may find something: a record in flight is available, or there is room."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight_count < self.settings.partition_max_record_locks

    # -- locks -----------------------------------------------------------------------------------

    def lock(
        self, state: RecordState, first_offset: int, last_offset: int, at: ClockReading
    ) -> None:
        """Begin the lock of records that are acquired, or that their owner asked to renew."""
        assert state.lock is None, self.key
        assert state.state is ACQUIRED, state.state
        deadline_ms = at.now_ms + self.settings.record_lock_duration_ms
        state.lock = self.env.locks.set(self.lock_ended, first_offset, last_offset, deadline_ms)

    def lock_ended(self, lock: Lock, at: ClockReading) -> None:
        """Take the records from their owner; the state changes even if its write fails."""
        self.lock_timeouts_count += lock.last_offset - lock.first_offset + 1
        batch, start_offset = self.in_flight.floor(lock.first_offset), self.start_offset
        assert batch is not None, "what is locked is in flight"
        whole = batch.whole
        if (
            whole is not None
            and whole.state is ACQUIRED
            and batch.first_offset < start_offset <= batch.last_offset
        ):
            batch.split()  # those below the start are archived whatever their count
        stored = list(self._unlocked(batch, lock.first_offset, lock.last_offset))
        if stored:
            self._write(stored, at, lambda outcome, at: self._lock_end_written())
            self.env.changed(self)

    def _unlocked(
        self, batch: InFlightBatch, first_offset: int, last_offset: int
    ) -> "Sequence[DeliveryStateBatch]":
        """Make the acquired records of a range available, or archive them."""
        if batch.whole is not None:
            ranges = [(batch.first_offset, batch.last_offset, batch.whole)]
        else:
            states = batch.states(first_offset, last_offset)
            ranges = [(offset, offset, state) for offset, state in states]
        stored: list[DeliveryStateBatch] = []
        limit = self.settings.delivery_count_limit
        for first, last, state in ranges:
            if state.state is not ACQUIRED:
                continue
            to = ARCHIVED if last < self.start_offset else AVAILABLE
            is_moved = state.move(to, NO_MEMBER, limit)
            assert is_moved, "acquired records are not changing"
            stored.append(stored_batch(first, last, state))
            state.unlock()
            if state.is_final:
                self.delivery_complete_count += self.count_in_flight(first, last)
            else:
                self.find_next = True
        return stored

    def _lock_end_written(self) -> None:
        """Move the start, whether the write succeeded or not."""
        if self.advance_start():
            self.env.changed(self)

    # -- changes that are written ------------------------------------------------------------------

    def settle(
        self, changes: Sequence[Change], failure: Outcome | None, at: ClockReading, then: Done
    ) -> None:
        """Write the changes of one request, and end or undo them together.

        With `failure` nothing is written: one part of the request is not allowed.
        """
        if failure is not None:
            self._finish(changes, is_written=False)
            then(failure, at)
            return
        if not changes:
            then(_NO_ERROR, at)
            return

        def written(outcome: Outcome, at: ClockReading) -> None:
            is_written = outcome.error == ErrorCode.NONE
            self._finish(changes, is_written=is_written)
            if is_written:
                self.advance_start()
            self.env.changed(self)
            then(outcome, at)

        self._write([change.stored for change in changes], at, written)

    def _finish(self, changes: Sequence[Change], *, is_written: bool) -> None:
        for state, stored in changes:
            state.finish(is_written=is_written)
            if state.state is AVAILABLE:
                self.find_next = True
            if is_written:
                continue
            if stored.delivery_state in FINAL_STATES and state.state not in FINAL_STATES:
                count = self.count_in_flight(stored.first_offset, stored.last_offset)
                self.delivery_complete_count -= count

    def _write(self, stored: Sequence[DeliveryStateBatch], at: ClockReading, then: Done) -> None:
        write = ShareStateWrite(
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=Offset(self.start_offset),
            delivery_complete_count=self.delivery_complete_count,
            batches=stored,
        )
        self.env.persister.write(
            {self.key: write},
            at,
            lambda results, at: then(client_outcome(results[self.key]), at),
        )


def client_outcome(result: PersisterResult) -> Outcome:
    """Return what a share consumer sees of the share coordinator's answer."""
    if result.error == ErrorCode.NONE:
        return _NO_ERROR
    if result.error in (ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION):
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, _SERVER_ERROR)
    error = _ERRORS_OF_CLIENTS.get(result.error, ErrorCode.UNKNOWN_SERVER_ERROR)
    return Outcome(error, result.error_message)


def stored_batch(first_offset: int, last_offset: int, state: RecordState) -> DeliveryStateBatch:
    """Return a state as it is written."""
    return DeliveryStateBatch(
        Offset(first_offset), Offset(last_offset), int(state.state), state.delivery_count
    )


def _is_sound(state: SharePartitionState, start_offset: int) -> bool:
    """Whether the stored batches can be taken over."""
    return all(
        start_offset <= each.first_offset <= each.last_offset
        and each.delivery_state in STORED_STATES
        for each in state.batches
    )
