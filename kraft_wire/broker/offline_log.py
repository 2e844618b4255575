"""Replaces the log of a partition whose disk failed or whose log is damaged.

Such a partition is offline: every handler answers KAFKA_STORAGE_ERROR before it uses the log. This
module has only the parts that counts and comparisons still use.
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
    """The producers of a log that never has a batch."""

    def get(self, producer_id: int) -> ProducerStateView | None:
        """Return None: there is no producer."""
        return None

    def active_producers(self) -> Iterable[ProducerStateView]:
        """Return nothing: there is no producer."""
        return ()

    def check(self, batch: RecordBatch) -> ProducerVerdict:
        """Fail: no append gets this far."""
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
        """Return that there is no epoch."""
        return None

    def announce(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Take no note."""

    def append(
        self,
        data: bytes | bytearray | memoryview,
        batches: Sequence[RecordBatch],
        now_ms: int,
        wall_ms: int,
        gap_epochs: Sequence[OffsetAndEpoch] = (),
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
