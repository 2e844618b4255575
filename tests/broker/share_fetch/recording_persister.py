"""The port `SharePersister` over a dictionary: keeps what was written, answers when a test says."""

from collections.abc import Mapping, Sequence

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_persister import (
    DeliveryStateBatch,
    InitialShareState,
    PersisterCallback,
    PersisterResult,
    SharePartitionKey,
    SharePartitionState,
    ShareStateWrite,
)
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.wire.generated.error_code import ErrorCode

Pending = tuple[PersisterCallback, dict[SharePartitionKey, PersisterResult]]


class RecordingPersister:
    """States in memory; `reads` and `writes` are in the order of the calls."""

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, SharePartitionState] = {}
        self.reads: list[tuple[SharePartitionKey, int]] = []
        self.writes: list[tuple[SharePartitionKey, ShareStateWrite]] = []
        self.answers_at_once = True
        """Whether calls are answered before they return; otherwise `answer` does it."""
        self.next_error: ErrorCode | None = None
        """Of the next call, and of no other."""
        self.waiting: list[Pending] = []

    def initialize(
        self,
        partitions: Mapping[SharePartitionKey, InitialShareState],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        raise NotImplementedError

    def delete(
        self, partitions: Sequence[SharePartitionKey], at: ClockReading, then: PersisterCallback
    ) -> None:
        raise NotImplementedError

    def read_summary(
        self,
        partitions: Mapping[SharePartitionKey, LeaderEpoch],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        raise NotImplementedError

    def start(self, key: SharePartitionKey, start_offset: int, *batches: tuple[int, ...]) -> None:
        """Store a state as the group coordinator and former leaders would."""
        stored = [
            DeliveryStateBatch(Offset(first), Offset(last), state, count)
            for first, last, state, count in batches
        ]
        epoch = LeaderEpoch(0)
        self.states[key] = SharePartitionState(1, epoch, Offset(start_offset), -1, stored)

    def read(
        self,
        partitions: Mapping[SharePartitionKey, LeaderEpoch],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        results = {}
        for key, epoch in partitions.items():
            self.reads.append((key, epoch))
            error = self._error()
            state = self.states.get(key)
            if error == ErrorCode.NONE and state is None:
                error = ErrorCode.INVALID_REQUEST
            results[key] = PersisterResult(error, None, None if error else state)
        self._give(then, results, at)

    def write(
        self,
        partitions: Mapping[SharePartitionKey, ShareStateWrite],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        results = {}
        for key, write in partitions.items():
            self.writes.append((key, write))
            results[key] = PersisterResult(self._error())
        self._give(then, results, at)

    def answer(self, at: ClockReading) -> None:
        """Answer the oldest call."""
        then, results = self.waiting.pop(0)
        then(results, at)

    def _error(self) -> ErrorCode:
        error, self.next_error = self.next_error, None
        return ErrorCode.NONE if error is None else error

    def _give(
        self,
        then: PersisterCallback,
        results: dict[SharePartitionKey, PersisterResult],
        at: ClockReading,
    ) -> None:
        if self.answers_at_once:
            then(results, at)
        else:
            self.waiting.append((then, results))
