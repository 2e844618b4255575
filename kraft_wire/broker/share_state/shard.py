"""One partition of `__share_group_state`: calls are decided, written, and answered once committed.

A change is in memory as soon as it is in the log, so the next call sees it; no answer leaves before
everything that it depends on is committed, also that of a call that writes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.shard_log import ShardLog
from kraft_wire.broker.coordination.timers import Timers
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.broker.share_state.calls import StateCall, StateCallback
from kraft_wire.broker.share_state.decisions import DecidingFacts, decide
from kraft_wire.broker.share_state.environment import ShareStateEnvironment
from kraft_wire.broker.share_state.failures import append_failure, commit_failure
from kraft_wire.broker.share_state.records import record_of
from kraft_wire.broker.share_state.replay import Replay
from kraft_wire.broker.share_state.state_table import Change, StateTable, Tombstone
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.memory_records import AnyBatch

__all__ = ["ShareStateShard"]

_BATCH_BYTES: Final = 256 << 10
"""About how large the batches of snapshots and tombstones are that no call has asked for."""


class _Timer(NamedTuple):
    """The name of the only deadline: when old records are removed."""

    owner_id: str


_PRUNE: Final = _Timer("")

_Changes = Iterable[tuple[SharePartitionKey, Change]]


class ShareStateShard:
    """A `CoordinatorShard` of share partitions."""

    __slots__ = (
        "_pruned_to",
        "_replay",
        "_written_end",
        "env",
        "is_released",
        "log",
        "table",
        "timers",
    )

    def __init__(self, log: ShardLog, env: ShareStateEnvironment) -> None:
        self.log = log
        self.env = env
        self.table = StateTable(env.updates_per_snapshot)
        self.timers: Timers[_Timer] = Timers()
        self.is_released = False
        """Whether another coordinator has the share partitions now."""
        self._replay = Replay(self.table)
        self._written_end = 0
        """The end of what this shard has written; what it has loaded is committed."""
        self._pruned_to: int | None = None

    def call(self, call: StateCall, at: ClockReading, then: StateCallback) -> None:
        """Serve a call; errors are those of `decisions`, of the append, and NOT_COORDINATOR."""
        env = self.env
        facts = DecidingFacts(env.has_partition, env.updates_per_snapshot(), at.wall_ms)
        decision = decide(call, self.table.entries.get(call.key), facts)
        if decision.change is not None:
            error = self._write([(call.key, decision.change)], at)
            if error is not ErrorCode.NONE:
                then(append_failure(call.kind, error), at)
                return

        def answer(error: ErrorCode, later: ClockReading) -> None:
            if error is ErrorCode.NONE:
                then(decision.result, later)
            else:
                then(commit_failure(call.kind, error), later)

        self._when_committed(at, answer)

    def _write(
        self, changes: Sequence[tuple[SharePartitionKey, Change]], at: ClockReading
    ) -> ErrorCode:
        """Write changes as one batch, and take them into memory unless that fails."""
        offset = self.log.end_offset()
        error, _ = self.log.append_for_later([record_of(*each) for each in changes], at)
        if error is not ErrorCode.NONE:
            return error
        for number, (key, change) in enumerate(changes):
            self.table.apply(key, change, offset + number)
        self._written_end = self.log.end_offset()
        if _PRUNE not in self.timers:
            self._schedule_pruning(at)
        return ErrorCode.NONE

    def _when_committed(self, at: ClockReading, then: CommitCallback) -> None:
        """Call back once the ISR has everything that was written, or on timeout."""
        if self.log.high_watermark() >= self._written_end:
            then(ErrorCode.NONE, at)
            return

        def on_committed(error: ErrorCode, later: ClockReading) -> None:
            then(ErrorCode.NOT_COORDINATOR if self.is_released else error, later)

        self.log.await_commit(self._written_end, at, on_committed)

    # -- the runtime's calls ---------------------------------------------------------------------

    @property
    def ignored(self) -> Mapping[str, int]:
        """Reason to number of records that could not be read."""
        return self._replay.ignored

    def replay(self, batch: AnyBatch) -> None:
        """Take a batch of the log into the shard."""
        self._replay.batch(batch)

    def loaded(self, at: ClockReading) -> None:
        """Begin to remove old records."""
        self._schedule_pruning(at)

    def tick(self, at: ClockReading) -> None:
        """Remove the records that a load does not need any more."""
        while self.timers.pop_due(at.now_ms) is not None:
            self._schedule_pruning(at)
            self._when_committed(at, self._prune)

    def _schedule_pruning(self, at: ClockReading) -> None:
        self.timers.schedule(_PRUNE, at.now_ms + self.env.prune_interval_ms())

    def _prune(self, error: ErrorCode, at: ClockReading) -> None:
        first = self.table.needed.first_needed()
        if error is ErrorCode.NONE and first is not None and first != self._pruned_to:
            self._pruned_to = first
            self.env.delete_records(self.log.partition, first)

    def topics_deleted(self, topics: Mapping[Uuid, str], at: ClockReading) -> None:
        """Remove the states of deleted topics."""
        self._write_all(((key, Tombstone.TOMBSTONE) for key in self.table.keys_of(topics)), at)

    def clean_up(self, at: ClockReading) -> None:
        """Write cold share partitions again: their old snapshots hold the log's start back."""
        self._write_all(self.table.cold_snapshots(at.wall_ms, self.env.cold_interval_ms()), at)

    def _write_all(self, changes: _Changes, at: ClockReading) -> None:
        """Write many changes in batches; those that fail come again after the next interval."""
        for batch in _batched(changes):
            self._write(batch, at)

    def resign(self) -> None:
        """Stop writing; calls that wait for a commit are answered when the log is given up."""
        self.is_released = True


def _batched(changes: _Changes) -> Iterator[list[tuple[SharePartitionKey, Change]]]:
    batch: list[tuple[SharePartitionKey, Change]] = []
    size_bytes = 0
    for key, change in changes:
        record: CoordinatorRecord = record_of(key, change)
        size_bytes += len(record.key) + len(record.value or b"")
        batch.append((key, change))
        if size_bytes >= _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch
