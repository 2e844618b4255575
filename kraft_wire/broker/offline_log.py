"""The log of a partition that has none, because the disk refused it or the log is damaged.

Such a partition is offline: every handler answers KAFKA_STORAGE_ERROR before it asks the log for
anything. What is here is what may be asked all the same, by those who count or compare.
"""

from collections.abc import Iterable, Sequence
from typing import NoReturn

from kraft_wire.broker.ports import (
    AbortedTransactionView,
    ProducerStateView,
    ProducerVerdict,
    TopicLimits,
)
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["OfflineLog"]


class _NoProducers:
    """The producers of a log that has no batch, and gets none."""

    def get(self, producer_id: int) -> ProducerStateView | None:
        """Know no producer."""
        return None

    def active_producers(self) -> Iterable[ProducerStateView]:
        """Know no producers."""
        return ()

    def check(self, batch: RecordBatch) -> ProducerVerdict:
        """Say that nothing gets this far."""
        raise AssertionError("an append asks for the settings first, which are not there")


class OfflineLog:
    """An empty log that refuses every use with the error that is the reason for its absence."""

    unflushed_records = 0
    latest = LeaderEpoch(1 << 31)
    """No epoch begins here."""

    def __init__(self, error: StorageError) -> None:
        self.error = error
        self.high_watermark = self.log_start_offset = self.log_end_offset = Offset(0)
        self.last_stable_offset = Offset(0)

    @property
    def config(self) -> TopicLimits:
        """Raise: nothing may be appended."""
        raise self.error

    @property
    def producer_states(self) -> "_NoProducers":
        """The producers of no batch."""
        return _NoProducers()

    @property
    def epochs(self) -> "OfflineLog":
        """The epochs of no batch."""
        return self

    def epoch_at(self, offset: Offset) -> LeaderEpoch | None:
        """Know no epoch."""
        return None

    def announce(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Take no note."""

    def append(
        self,
        data: bytes | bytearray | memoryview,
        batches: Sequence[RecordBatch],
        now_ms: int,
        wall_ms: int,
    ) -> None:
        """Raise, as for all that follows: there is nothing to do it with."""
        self._refuse()

    def read(
        self, offset: Offset, max_bytes: int, *, upper_bound: Offset, min_one_batch: bool
    ) -> NoReturn:
        """Raise."""
        self._refuse()

    def aborted_transactions(self, first: Offset, end: Offset) -> Sequence[AbortedTransactionView]:
        """Return that there is no transaction."""
        return ()

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> OffsetAndEpoch:
        """Raise."""
        self._refuse()

    def advance_log_start_offset(self, offset: Offset) -> bool:
        """Raise."""
        self._refuse()

    def flush(self) -> None:
        """Have nothing to flush."""

    def truncate_to(self, offset: Offset) -> bool:
        """Raise."""
        self._refuse()

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Raise."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise self.error
