"""The log of one shard: append, and wait until the ISR has the appended records."""

from collections.abc import Sequence

from kraft_wire.broker.coordination.append_errors import coordinator_error
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback, CommitWaits
from kraft_wire.broker.coordination.log import (
    Appended,
    CoordinatorLog,
    CoordinatorRecord,
    TransactionalWrite,
)
from kraft_wire.broker.producing.transaction_marker import TransactionMarker
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["ShardLog"]


class ShardLog:
    """One partition of the coordinator's topic; errors are the ones for clients."""

    __slots__ = ("_commits", "_log", "partition")

    def __init__(self, partition: int, log: CoordinatorLog, commits: CommitWaits) -> None:
        self.partition = partition
        self._log = log
        self._commits = commits

    def append(self, records: Sequence[CoordinatorRecord], at: ClockReading) -> ErrorCode:
        """Write records as one batch, without waiting for followers."""
        return coordinator_error(self._log.append(self.partition, records, at))

    def append_for_later(
        self,
        records: Sequence[CoordinatorRecord],
        at: ClockReading,
        transaction: TransactionalWrite | None = None,
    ) -> Appended:
        """As `append`; the answer has to wait for the high watermark that is returned."""
        appended = self._log.append_for_later(self.partition, records, at, transaction)
        return Appended(coordinator_error(appended.error), appended.safe_at)

    def append_marker(self, marker: TransactionMarker, at: ClockReading) -> Appended:
        """End a producer's transaction; the answer waits as for `append_for_later`."""
        appended = self._log.append_marker(self.partition, marker, at)
        return Appended(coordinator_error(appended.error), appended.safe_at)

    def end_offset(self) -> int:
        """Return the offset that the next record gets."""
        return self._log.end_offset(self.partition)

    def await_commit(
        self,
        safe_at: int,
        at: ClockReading,
        on_committed: CommitCallback,
        timeout_ms: int | None = None,
    ) -> None:
        """Call `on_committed` once the high watermark is there, or will not be in time."""
        self._commits.await_commit(self.partition, safe_at, at, on_committed, timeout_ms)

    def high_watermark(self) -> int:
        """Return the exclusive end of the committed records."""
        return self._log.high_watermark(self.partition)
