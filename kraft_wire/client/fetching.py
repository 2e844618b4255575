"""Reads one partition from its leader, with one request always ahead of the decoder.

The next request is sent as soon as an answer has arrived, before its bytes are processed; the last
complete batch determines its offset. An answer may end inside a batch (KIP-74), which is dropped
and fetched again. Answers are full, without a fetch session (KIP-227): a session saves bytes if
many partitions are idle, and here is one that is not.

It does not decode batches, and decides nothing about aborted transactions: the list of an answer is
returned with its bytes.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from kraft_wire.client.cluster import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    PASSING_ERRORS,
    ClusterClient,
    ClusterRefused,
    RetryDeadline,
)
from kraft_wire.client.connection import BrokerConnection, BrokerConnectionError
from kraft_wire.model import TopicPartition
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kraft_wire.wire.records.record_batch import LOG_OVERHEAD_BYTES

__all__ = ["FetchSettings", "FetchedBatches", "OffsetsLost", "fetch_partition", "whole_batches"]

_VERSION_MAX: Final = 12
"""The last that carries names of topics."""
_HEAD: Final = struct.Struct(">qi4xb")  # base offset, length, magic
_LAST_DELTA: Final = struct.Struct(">i")
_LAST_DELTA_AT: Final = 23
_MAGIC_OF_DELTAS: Final = 2


class OffsetsLost(ClusterRefused):
    """The log does not have a requested offset, but has later ones."""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How a partition is fetched; a value that can be pickled."""

    partition_bytes_max: int = 8 << 20
    fetch_bytes_max: int = 52_428_800
    bytes_min: int = 1
    wait_ms_max: int = 500
    read_committed: bool = False
    progress_seconds: float = 120.0
    """How long nothing may come although something is there."""


class FetchedBatches(NamedTuple):
    """The whole batches of one answer."""

    records: memoryview
    aborted: list[tuple[int, int]]
    """Producer id and first offset of aborted transactions (KIP-98)."""
    offset: int
    """The requested offset: earlier records of the first batch do not count."""
    next_offset: int


def fetch_partition(
    cluster: ClusterClient,
    key: TopicPartition,
    start: int,
    end: int,
    settings: FetchSettings,
    *,
    fail_on_loss: bool = True,
) -> Iterator[FetchedBatches]:
    """Yield the batches that hold [start, end) of a partition, each as a whole.

    Offsets that were deleted raise OffsetsLost or, without `fail_on_loss`, are skipped. The log may
    then begin inside a batch (DeleteRecords), which is yielded as a whole.
    """
    assert 0 <= start <= end, (start, end)
    reading = _Reading(cluster, key, start, end, settings, fail_on_loss)
    while True:
        fetched = reading.step()
        if fetched is not None:
            yield fetched
            reading.patience.renew()  # the caller's time does not count
        if reading.offset >= end:
            return


class _Reading:
    """One partition on its way from an offset to another."""

    def __init__(
        self,
        cluster: ClusterClient,
        key: TopicPartition,
        start: int,
        end: int,
        settings: FetchSettings,
        fail_on_loss: bool,
    ) -> None:
        self.offset = start
        self._cluster = cluster
        self._key = key
        self._end = end
        self._settings = settings
        self._fail_on_loss = fail_on_loss
        self.patience = RetryDeadline(settings.progress_seconds)
        self._ahead: BrokerConnection | None = None
        """The connection on which the request for `offset` is in progress."""

    def step(self) -> FetchedBatches | None:
        """Return the next answer's batches, None without any; `offset` moves on."""
        if self.offset >= self._end:
            return None
        try:
            if self._ahead is None:
                self._post()
            assert self._ahead is not None
            connection, self._ahead = self._ahead, None
            data = self._partition_of(connection.answer(FetchResponse))
            return self._taken(data)
        except BrokerConnectionError as error:
            self._ahead = None
            self._try_again(str(error))
            return None

    def _taken(self, data: PartitionData) -> FetchedBatches | None:
        code = data.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if not self._skip_what_is_lost():
                self._try_again(f"{self._key}: {error_name(code)}")
        elif code in PASSING_ERRORS:
            self._try_again(f"{self._key}: {error_name(code)}")
        elif code:
            raise ClusterRefused(f"{self._key}: {error_name(code)} at {self._place}")
        else:
            return self._batches(data)
        return None

    def _batches(self, data: PartitionData) -> FetchedBatches | None:
        records = data.records if isinstance(data.records, memoryview) else memoryview(b"")
        size, next_offset = whole_batches(records)
        if next_offset <= self.offset:
            if size or (records and not size):
                raise ClusterRefused(
                    f"{self._key}: no complete batch at offset {self.offset} in {len(records)} "
                    f"bytes from {self._place}"
                )
            if self.patience.is_over and not self._skip_what_is_lost():
                raise ClusterRefused(self._silence())
            return None
        offset, self.offset = self.offset, next_offset
        if next_offset < self._end:
            # if this fails the next step asks: the received answer must not be lost with it
            with suppress(BrokerConnectionError):
                self._post()
        aborted = [
            (each.producer_id, each.first_offset) for each in data.aborted_transactions or ()
        ]
        return FetchedBatches(records[:size], aborted, offset, next_offset)

    def _post(self) -> None:
        connection = self._cluster.leader_of(self._key)
        settings = self._settings
        partition = FetchPartition(
            partition=self._key.partition,
            fetch_offset=self.offset,
            partition_max_bytes=settings.partition_bytes_max,
        )
        request = FetchRequest(
            max_wait_ms=settings.wait_ms_max,
            min_bytes=settings.bytes_min,
            max_bytes=settings.fetch_bytes_max,
            isolation_level=int(settings.read_committed),
            topics=[FetchTopic(topic=self._key.topic, partitions=[partition])],
        )
        connection.post(request, version=connection.version_of(request, at_most=_VERSION_MAX))
        self._ahead = connection

    def _partition_of(self, answer: FetchResponse) -> PartitionData:
        if answer.error_code:
            raise BrokerConnectionError(
                f"{self._place} refused to fetch: {error_name(answer.error_code)}"
            )
        for topic in answer.responses:
            for each in topic.partitions:
                if (topic.topic, each.partition_index) == self._key:
                    return each
        raise BrokerConnectionError(f"{self._place} answered without {self._key}")

    def _skip_what_is_lost(self) -> bool:
        """Skip offsets that the log does not have, or raise OffsetsLost; False without any."""
        committed = self._settings.read_committed
        earliest, latest = (
            self._cluster.offsets_at({self._key: at}, read_committed=committed)[self._key]
            for at in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)
        )
        if earliest <= self.offset < latest:
            return False
        lost = min(earliest, self._end) - self.offset
        if self._fail_on_loss:
            what = f"begins at {earliest}" if lost > 0 else "ends before"
            raise OffsetsLost(f"{self._key}: offset {self.offset} does not exist, the log {what}")
        self.offset = min(earliest, self._end) if lost > 0 else self._end
        return True

    def _try_again(self, problem: str) -> None:
        if self.patience.is_over:
            seconds = f"{self._settings.progress_seconds:g} s"
            raise ClusterRefused(f"{problem}; {self._key} was retried for {seconds}")
        self._cluster.forget()
        self.patience.pause()

    @property
    def _place(self) -> str:
        return self._cluster.leader_address(self._key)

    def _silence(self) -> str:
        return (
            f"{self._key}: {self._place} returned no record from offset {self.offset} for "
            f"{self._settings.progress_seconds:g} s; the end is {self._end}"
        )


def whole_batches(records: memoryview) -> tuple[int, int]:
    """Return how many bytes are whole batches, and the offset behind the last of them.

    Zero and -1 without a whole batch. Formats 0 and 1 have only the offset of their last message,
    which is the base offset of a compressed set (KIP-31).
    """
    position, next_offset, total = 0, -1, len(records)
    while position + _HEAD.size <= total:
        base_offset, length, magic = _HEAD.unpack_from(records, position)
        after = position + LOG_OVERHEAD_BYTES + length
        if length <= 0 or after > total:
            break
        last = base_offset
        if magic >= _MAGIC_OF_DELTAS and length > _LAST_DELTA_AT:
            last += _LAST_DELTA.unpack_from(records, position + _LAST_DELTA_AT)[0]
        next_offset = last + 1
        position = after
    return position, next_offset
