"""A way to the share coordinators that records calls, and answers when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterCallback,
    PersisterResult,
    SharePartitionKey,
    ShareStateWrite,
)
from kraft_wire.model import LeaderEpoch
from kraft_wire.wire.generated.error_code import ErrorCode


class Call(NamedTuple):
    """One call that waits for its answer."""

    verb: str
    partitions: dict[SharePartitionKey, Any]
    then: PersisterCallback
    at: ClockReading

    def answer(self, at: ClockReading | None = None, **results: Any) -> None:
        """Answer with one result for all partitions, without an error unless one is given."""
        self.answer_each(lambda key: PersisterResult(**{"error": ErrorCode.NONE, **results}), at)

    def answer_each(
        self,
        result: Callable[[SharePartitionKey], PersisterResult],
        at: ClockReading | None = None,
    ) -> None:
        """Answer with a result for each partition."""
        self.then({key: result(key) for key in self.partitions}, at or self.at)


class RecordingPersister:
    """A `SharePersister` whose calls wait in `calls`, the oldest first."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def take(self) -> Call:
        """Return the oldest call, which does not wait here any more."""
        return self.calls.pop(0)

    def initialize(
        self,
        partitions: Mapping[SharePartitionKey, InitialShareState],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        self._record("initialize", partitions, at, then)

    def read(
        self,
        partitions: Mapping[SharePartitionKey, LeaderEpoch],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        raise AssertionError("the group coordinator does not read batches")

    def write(
        self,
        partitions: Mapping[SharePartitionKey, ShareStateWrite],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        raise AssertionError("the group coordinator does not write batches")

    def delete(
        self, partitions: Sequence[SharePartitionKey], at: ClockReading, then: PersisterCallback
    ) -> None:
        self._record("delete", dict.fromkeys(partitions), at, then)

    def read_summary(
        self,
        partitions: Mapping[SharePartitionKey, LeaderEpoch],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        self._record("read_summary", partitions, at, then)

    def _record(
        self,
        verb: str,
        partitions: Mapping[SharePartitionKey, Any] | Iterable[SharePartitionKey],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        self.calls.append(Call(verb, dict(partitions), then, at))
