"""One partition of `__transaction_state`: its transactional ids, and the writing of their changes.

Memory follows the log: a change counts when its record is committed. Until then it is pending, and
so is the completion of a transaction from the commit of its Prepare record to that of its Complete
record. Changes by requests are in `init_producer_id`, `add_partitions` and `end_transaction`,
changes by time in `expiry`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback
from kraft_wire.broker.coordination.shard_log import ShardLog
from kraft_wire.broker.coordination.timers import Timers
from kraft_wire.broker.transactions.environment import TransactionEnvironment
from kraft_wire.broker.transactions.expiry import abort_timed_out, remove_expired
from kraft_wire.broker.transactions.markers import TransactionMarkers
from kraft_wire.broker.transactions.records import transaction_record
from kraft_wire.broker.transactions.replay import Replay
from kraft_wire.broker.transactions.states import PREPARED, TransactionEvent, TransactionState
from kraft_wire.broker.transactions.transactional_id import TransactionalId, TransactionMetadata
from kraft_wire.broker.transactions.transition import next_metadata
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.memory_records import AnyBatch

__all__ = ["TransactionShard"]

_COMPLETION_RETRY_MS: Final = 100


class _Timer(NamedTuple):
    """The name of a deadline: the scan of open transactions, or an id's Complete record."""

    owner_id: str
    is_scan: bool = False


_SCAN: Final = _Timer("", is_scan=True)


class TransactionShard:
    """A `CoordinatorShard` of transactional ids."""

    __slots__ = ("_replay", "_scan_ms", "env", "ids", "is_released", "log", "ongoing", "timers")

    def __init__(self, log: ShardLog, env: TransactionEnvironment) -> None:
        self.log = log
        self.env = env
        self.ids: dict[str, TransactionalId] = {}
        self.ongoing: dict[str, None] = {}
        """Ids with an open transaction, which may time out."""
        self.is_released = False
        """Whether another coordinator has the ids now."""
        self.timers: Timers[_Timer] = Timers()
        self._replay = Replay(self.ids)
        self._scan_ms = 0
        """When open transactions are next compared with their timeouts."""

    # -- writing ---------------------------------------------------------------------------------

    def write(
        self,
        entry: TransactionalId,
        target: TransactionMetadata,
        at: ClockReading,
        answer: CommitCallback,
    ) -> None:
        """Write a change; call `answer` once it is committed, or cannot be for now.

        Errors: those of the append as a coordinator's, NOT_COORDINATOR when the partition has moved
        meanwhile. A record in the log that is not committed yet keeps the change pending: it takes
        effect as soon as it is committed, regardless of the client's answer.
        """
        assert entry.pending in (None, target.state), (entry.name, entry.pending, target)
        entry.pending = target.state
        record = transaction_record(entry.name, target, self.env.transaction_version())
        appended = self.log.append_for_later([record], at)
        if appended.error is not ErrorCode.NONE:
            entry.pending = None
            answer(appended.error, at)
        elif appended.safe_at is None:
            self._committed(entry, target, at)
            answer(ErrorCode.NONE, at)
        else:
            self._await(entry, target, appended.safe_at, at, answer)

    def _await(
        self,
        entry: TransactionalId,
        target: TransactionMetadata,
        safe_at: int,
        at: ClockReading,
        answer: CommitCallback,
    ) -> None:
        def on_committed(error: ErrorCode, then: ClockReading) -> None:
            if self.is_released or error is ErrorCode.NOT_COORDINATOR:
                answer(ErrorCode.NOT_COORDINATOR, then)
            elif error is ErrorCode.NONE or self.log.high_watermark() >= safe_at:
                self._committed(entry, target, then)
                answer(error, then)
            else:
                answer(error, then)
                self._await(entry, target, safe_at, then, _no_answer)

        self.log.await_commit(safe_at, at, on_committed, target.timeout_ms)

    def _committed(
        self, entry: TransactionalId, target: TransactionMetadata, at: ClockReading
    ) -> None:
        """Let a committed change take effect; a decided transaction gets its markers."""
        assert entry.pending is target.state, (entry.name, entry.pending, target)
        entry.metadata = target
        entry.pending = None
        self.note_state(entry)
        if target.state in PREPARED:
            self._send_markers(entry, at)

    def note_state(self, entry: TransactionalId) -> None:
        """Note whether an id has an open transaction."""
        if entry.metadata.state is TransactionState.ONGOING:
            self.ongoing[entry.name] = None
            self.timers.schedule(_SCAN, self._scan_ms)
        else:
            self.ongoing.pop(entry.name, None)
            if not self.ongoing:
                self.timers.cancel(_SCAN)

    # -- completion ------------------------------------------------------------------------------

    def _send_markers(self, entry: TransactionalId, at: ClockReading) -> None:
        """Have the markers of a decided transaction written, then complete it."""
        metadata = entry.metadata
        assert entry.pending is None, (entry.name, entry.pending)
        assert metadata.state in PREPARED, (entry.name, metadata)
        is_commit = metadata.state is TransactionState.PREPARE_COMMIT
        entry.pending = (
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        )
        entry.unmarked = dict(metadata.partitions)
        markers = TransactionMarkers(
            transactional_id=entry.name,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            is_commit=is_commit,
            coordinator_epoch=self.env.coordinator_epoch(self.log.partition),
            transaction_version=metadata.client_version,
            unmarked=entry.unmarked,
            completed=lambda then: self._complete(entry, then),
            is_dropped=lambda: self.is_released,
        )
        self.env.markers.send(markers, at)

    def _complete(self, entry: TransactionalId, at: ClockReading) -> None:
        """Write that every partition has its marker; a refused record is written again."""
        if self.is_released:
            return
        assert not entry.unmarked, (entry.name, entry.unmarked)
        metadata = entry.metadata
        target = next_metadata(
            metadata, TransactionEvent.MARKERS_WRITTEN, metadata.client_version, at.wall_ms
        )

        def answer(error: ErrorCode, then: ClockReading) -> None:
            if entry.pending is None and error is not ErrorCode.NONE:
                entry.pending = target.state
                retry_ms = then.now_ms + _COMPLETION_RETRY_MS
                self.timers.schedule(_Timer(entry.name), retry_ms)

        self.write(entry, target, at, answer)

    # -- the runtime's calls ---------------------------------------------------------------------

    @property
    def ignored(self) -> Mapping[str, int]:
        """Reason to number of records that could not be read."""
        return self._replay.ignored

    def replay(self, batch: AnyBatch) -> None:
        """Take a batch of the log into the shard."""
        self._replay.batch(batch)

    def loaded(self, at: ClockReading) -> None:
        """Send the markers of decided transactions again, to all their partitions."""
        for entry in list(self.ids.values()):
            self.note_state(entry)
            if entry.metadata.state in PREPARED:
                self._send_markers(entry, at)

    def tick(self, at: ClockReading) -> None:
        """Abort transactions that timed out; write refused Complete records again."""
        while (timer := self.timers.pop_due(at.now_ms)) is not None:
            if timer.is_scan:
                self._scan(at)
            else:
                self._complete(self.ids[timer.owner_id], at)

    def _scan(self, at: ClockReading) -> None:
        settings = self.env.settings()
        interval_ms = settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._scan_ms = at.now_ms + interval_ms
        self.timers.schedule(_SCAN, self._scan_ms)
        abort_timed_out(self, at)

    def topics_deleted(self, topics: Mapping[Uuid, str], at: ClockReading) -> None:
        """Do nothing: the sender of markers skips deleted partitions."""

    def clean_up(self, at: ClockReading) -> None:
        """Remove ids that were idle for `transactional.id.expiration.ms`."""
        remove_expired(self, at)

    def resign(self) -> None:
        """Stop writing; requests that wait for a commit are answered when the shard is unloaded."""
        self.is_released = True


def _no_answer(error: ErrorCode, at: ClockReading) -> None:
    """The client has its answer already."""
