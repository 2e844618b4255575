"""What compaction leaves of batches: the newest records of their keys, and all else as it was."""

from dataclasses import dataclass, replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.cleanable import cleanable_part
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.timestamps import offset_for_timestamp
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.storage.making import (
    DIRECTORY,
    append,
    batch_bytes,
    contents,
    marker_bytes,
    open_at,
    parsed,
)

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=0, cleanup_policy=("compact",))
WALL_MS = 5_000
SAME = (
    "base_offset",
    "last_offset",
    "partition_leader_epoch",
    "compression",
    "is_log_append_time",
    "is_transactional",
    "is_control",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
)
"""The fields that a batch keeps, whatever it loses."""


@dataclass(frozen=True)
class Drawn:
    """A batch as it is drawn: key, time and whether there is a value, for each record."""

    records: list[tuple[str, int, bool]]
    append_time: int | None
    compression: Compression
    has_producer: bool
    epoch_step: int


BATCHES = st.lists(
    st.builds(
        Drawn,
        records=st.lists(
            st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 900), st.booleans()),
            min_size=1,
            max_size=4,
        ),
        append_time=st.one_of(st.none(), st.integers(1_000, 2_000)),
        compression=st.sampled_from([Compression.NONE, Compression.NONE, Compression.LZ4]),
        has_producer=st.booleans(),
        epoch_step=st.integers(0, 1),
    ),
    min_size=1,
    max_size=8,
)


def fill(log: Log, drawn: list[Drawn]) -> list[RecordBatch]:
    """Append the batches; they are as a broker writes them, the active segment is empty."""
    epoch, sequence = 1, 0
    written = []
    for each in drawn:
        epoch += each.epoch_step
        records = [
            Record(
                key.encode(),
                b"v%d" % time if has_value else None,
                headers=[("h", b"1")],
                timestamp=time,
            )
            for key, time, has_value in each.records
        ]
        data = build_batch(
            records,
            base_offset=log.log_end_offset,
            partition_leader_epoch=epoch,
            compression=each.compression,
            log_append_time=each.append_time,
            producer_id=7 if each.has_producer else -1,
            producer_epoch=2 if each.has_producer else -1,
            base_sequence=sequence if each.has_producer else -1,
        )
        sequence += len(records) if each.has_producer else 0
        append(log, bytes(data))
        written.append(parsed(bytes(data)))
    log.roll(1)
    log.update_high_watermark(log.log_end_offset)
    return written


def shown(record: Record) -> tuple[object, ...]:
    """What a consumer sees of a record."""
    headers = [(name, value and bytes(value)) for name, value in record.headers]
    values = [each if each is None else bytes(each) for each in (record.key, record.value)]
    return record.offset, record.timestamp, values, headers


def judge(log: Log, written: list[RecordBatch], newest: dict[bytes, int]) -> None:
    """Compare each batch that is left with the one that was written at its base offset."""
    left = {parsed(data).base_offset: parsed(data) for data in contents(log)}
    for before in written:
        kept = [
            each for each in before.iter_records() if newest[bytes(each.key or b"")] == each.offset
        ]
        after = left.pop(before.base_offset, None)
        if after is None:
            assert not kept, before
            continue
        for name in SAME:
            assert getattr(after, name) == getattr(before, name), name
        assert [shown(each) for each in after.iter_records()] == [shown(each) for each in kept]
        assert after.records_count == len(kept)
        assert after.crc_is_valid()
        if before.is_log_append_time or not kept:
            assert after.max_timestamp == before.max_timestamp
        else:
            assert after.max_timestamp == max(each.timestamp for each in kept)
        has_tombstone = any(each.value is None for each in kept)
        assert after.delete_horizon_ms == (
            WALL_MS + CONFIG.delete_retention_ms if has_tombstone else None
        )
        if len(kept) == before.records_count and not has_tombstone:
            assert bytes(after.view) == bytes(before.view), "nothing to do"
    assert not left, "a batch was made up"


@settings(max_examples=100, deadline=None)
@given(BATCHES)
def test_a_batch_that_loses_records_keeps_everything_else(drawn: list[Drawn]) -> None:
    """Its type of time and its append time among it; twice, and after a restart, as well."""
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    written = fill(log, drawn)
    newest = {
        bytes(record.key or b""): int(record.offset)
        for batch in written
        for record in batch.iter_records()
    }
    for wall_ms in (WALL_MS, WALL_MS + 1):
        compact(fs, log, Offset(0), wall_ms)
        judge(log, written, newest)
    log = open_at(fs, CONFIG)
    log.update_high_watermark(log.log_end_offset)
    judge(log, written, newest)
    times = [each.append_time for each in drawn if each.append_time is not None]
    for time in times:
        found = offset_for_timestamp(log, time, upper_bound=log.log_end_offset)
        left = [
            (record.timestamp, record.offset)
            for data in contents(log)
            for record in parsed(data).iter_records()
            if record.timestamp >= time
        ]
        assert (found and (found.timestamp, found.offset)) == (left[0] if left else None)


def test_a_batch_of_a_transaction_that_loses_records_stays_one() -> None:
    """Else a reader of what is committed would show it although its transaction is aborted."""
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    records = [Record(key, b"1", timestamp=1) for key in (b"a", b"b")]
    data = build_batch(
        records,
        partition_leader_epoch=0,
        producer_id=7,
        producer_epoch=2,
        base_sequence=0,
        is_transactional=True,
    )
    append(log, bytes(data))
    append(log, marker_bytes(2, producer_id=7, abort=False))
    append(log, batch_bytes(3, key=b"b"))
    log.roll(1)
    log.update_high_watermark(log.log_end_offset)
    compact(fs, log, Offset(0), WALL_MS)
    first, marker, last = (parsed(each) for each in contents(log))
    for name in SAME:
        assert getattr(first, name) == getattr(parsed(bytes(data)), name), name
    assert [record.key for record in first.iter_records()] == [b"a"]
    assert (marker.is_control, last.base_offset) == (True, 3)


# -- segments that are far apart (KAFKA-6264) ---------------------------------------------------

INT32_MAX = (1 << 31) - 1
GAPS = st.one_of(
    st.integers(0, 3),
    st.integers(INT32_MAX - 4, INT32_MAX + 4),
    st.sampled_from([INT32_MAX // 3, INT32_MAX // 2, INT32_MAX // 2 + 1, INT32_MAX * 2]),
)
STEPS = st.lists(
    st.tuples(GAPS, st.sampled_from("abcdefgh"), st.sampled_from([True, True, False])),
    min_size=1,
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
@example([(INT32_MAX // 2 + 1, key, True) for key in "abc"])
@example([(INT32_MAX, key, True) for key in "abc"])
def test_segments_that_are_far_apart_stay_apart(steps: list[tuple[int, str, bool]]) -> None:
    """Each offset is found by the indexes, whose entries have 31 bits, and by the next start."""
    fs = SimFileSystem()
    log = open_at(fs, replace(CONFIG, segment_bytes=1 << 20))
    newest: dict[bytes, int] = {}
    for gap, key, rolls in steps:
        offset = Offset(log.log_end_offset + gap)
        if rolls:
            log.roll(1, offset)
        append(log, batch_bytes(offset, key=key.encode(), timestamp=1_000 + len(newest)))
        newest[key.encode()] = offset
    log.roll(1)
    log.update_high_watermark(log.log_end_offset)
    end = log.log_end_offset
    for _ in range(2):
        assert compact(fs, log, Offset(0), WALL_MS).next_dirty_offset == end
        assert_found(log, newest, end)
        assert cleanable_part(log, end, WALL_MS).cleanable_bytes == 0
    for is_clean in (True, False):
        if is_clean:
            log.close()
        log = open_at(fs, CONFIG, is_clean=is_clean)
        log.update_high_watermark(end)
        assert_found(log, newest, end)


def assert_found(log: Log, newest: dict[bytes, int], end: Offset) -> None:
    """Every record that is left is found by its offset, and its segment by its name."""
    assert log.log_end_offset == end
    found = {parsed(data).base_offset for data in contents(log)}
    assert found == {*newest.values()}
    names = [name for name in log._fs.names(DIRECTORY) if name.endswith(".log")]
    bases = sorted(int(name[:20]) for name in names)
    assert bases == [segment.base_offset for segment in log.segments]
    for offset in found:
        read = log.read(Offset(offset), 1, upper_bound=end, min_one_batch=True)
        assert read.first_offset == offset
        base = max(base for base in bases if base <= offset)
        assert offset - base <= INT32_MAX, "an index of the segment cannot name it"
