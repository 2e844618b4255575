"""The store of a coordinator's records over one partition: which clock stamps what, and errors."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import (
    Appended,
    BrokerCoordinatorLog,
    CoordinatorRecord,
)
from kraft_wire.broker.partition import AppendResult, Partition
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

AT = ClockReading(now_ms=500, wall_ms=1_700_000_000_000)
RECORDS = [CoordinatorRecord(b"a", b"1"), CoordinatorRecord(b"b", None)]


class Led:
    """A partition that takes what comes, up to its high watermark."""

    topic_partition = ("__consumer_offsets", 3)

    def __init__(self, high_watermark: int, flush_messages: int, error: ErrorCode) -> None:
        self.high_watermark, self.error = high_watermark, error
        self.log_start_offset, self.log_end_offset = 0, 40
        self.offline = False
        self.appends: list[dict[str, Any]] = []
        self.flushes = 0
        self.log = SimpleNamespace(
            unflushed_records=2,
            config=SimpleNamespace(flush_messages=flush_messages),
            flush=self._flush,
        )

    def _flush(self) -> None:
        self.flushes += 1

    def append_as_leader(self, batch: RecordBatch, **how: Any) -> AppendResult:
        records = [(each.key, each.value, each.timestamp) for each in batch.iter_records()]
        self.appends.append({"records": records, "codec": batch.compression, **how})
        if self.error is ErrorCode.NONE:
            self.log_end_offset += len(records)
        return AppendResult(self.error)


BATCHES = [
    bytes(build_batch([Record(b"k", b"v" * 100)], base_offset=offset)) for offset in range(40)
]


class Segmented(Led):
    """A partition whose log has a segment for every batch, as a read that ends with each has."""

    def read(
        self, offset: int, max_bytes: int, *, upper_bound: int, min_one_batch: bool
    ) -> SimpleNamespace:
        assert upper_bound == self.log_end_offset
        batch = BATCHES[offset]
        return SimpleNamespace(
            records=batch if min_one_batch else batch[:max_bytes],
        )


class Store:
    """A store of partition 3 with what it reported."""

    def __init__(
        self, high_watermark: int = 40, flush_messages: int = 2, error: ErrorCode = ErrorCode.NONE
    ) -> None:
        self.led = Segmented(high_watermark, flush_messages, error)
        self.appended: list[object] = []
        self.flushed: list[tuple[Mapping[Any, int], int]] = []
        self.port = BrokerCoordinatorLog(
            lambda number: cast(Partition, self.led) if number == 3 else None,
            self.appended.append,
            lambda ends, now_ms: self.flushed.append((ends, now_ms)),
            Compression.GZIP,
        )


def test_records_are_stamped_with_the_wall_clock_and_waits_with_the_other() -> None:
    store = Store()
    assert store.port.append_for_later(3, RECORDS, AT) == Appended(ErrorCode.NONE, 42)
    (one,) = store.led.appends
    assert one["records"] == [(b"a", b"1", AT.wall_ms), (b"b", None, AT.wall_ms)]
    assert (one["now_ms"], one["wall_ms"], one["acks"]) == (AT.now_ms, AT.wall_ms, -1)
    assert one["codec"] is Compression.GZIP
    assert one["origin"].name == "COORDINATOR"
    assert store.appended == [store.led]
    assert store.led.flushes == 0


@pytest.mark.parametrize(("high_watermark", "safe_at"), [(41, 42), (42, None), (43, None)])
def test_what_is_committed_at_once_need_not_be_waited_for(
    high_watermark: int, safe_at: int | None
) -> None:
    store = Store(high_watermark)
    assert store.port.append_for_later(3, RECORDS, AT) == Appended(ErrorCode.NONE, safe_at)
    assert store.port.high_watermark(3) == high_watermark


@pytest.mark.parametrize(
    ("flush_messages", "high_watermark", "flushes"),
    [(1, 40, 1), (2, 40, 1), (3, 40, 0), (2, 42, 0)],
)
def test_append_is_flushed_where_the_topic_promises_that(
    flush_messages: int, high_watermark: int, flushes: int
) -> None:
    store = Store(high_watermark, flush_messages)
    assert store.port.append(3, RECORDS, AT) is ErrorCode.NONE
    assert store.led.flushes == flushes
    assert store.flushed == [({store.led.topic_partition: 42}, AT.now_ms)] * flushes


def test_refused_records_are_reported_nowhere() -> None:
    store = Store(error=ErrorCode.NOT_ENOUGH_REPLICAS)
    assert store.port.append_for_later(3, RECORDS, AT) == Appended(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert store.port.append(3, RECORDS, AT) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert (store.appended, store.flushed, store.led.flushes) == ([], [], 0)


def test_partition_that_is_gone_takes_and_shows_nothing() -> None:
    store = Store()
    assert store.port.append_for_later(4, RECORDS, AT).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert store.port.append(4, RECORDS, AT) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert store.port.high_watermark(4) == 0
    assert store.port.read(4, 0, 100) is None
    store.led.offline = True
    assert store.port.read(3, 0, 100) is None


@pytest.mark.parametrize(
    ("offset", "max_bytes", "offsets"),
    [
        (0, 1 << 16, range(40)),
        (38, 1 << 16, range(38, 40)),
        (5, 3 * len(BATCHES[0]), range(5, 8)),
        (5, 3 * len(BATCHES[0]) - 1, range(5, 7)),
        (5, 1, range(5, 6)),
        (40, 1 << 16, range(40, 40)),
    ],
)
def test_a_piece_is_read_over_the_seams_of_segments(
    offset: int, max_bytes: int, offsets: range
) -> None:
    """Cluster seed 1506 had a state topic of 41 segments, and each cost a tick of its own."""
    stretch = Store().port.read(3, offset, max_bytes)
    assert stretch is not None
    assert [each.last_offset for each in stretch.batches] == list(offsets)
    assert (stretch.next_offset, stretch.is_end) == (offsets.stop, offsets.stop == 40)
