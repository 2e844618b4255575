"""Batches whose CRC is right although nobody can read the records in them."""

import struct

import pytest

from kraft_wire.model import Offset, StorageError
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.damage import inspect
from kraft_wire.storage.recovery.opening import open_log
from kraft_wire.storage.segment import CorruptLog
from kraft_wire.storage.stored_records import UnreadableRecords
from kraft_wire.storage.timestamps import offset_for_timestamp, offset_of_max_timestamp
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.record import append_record
from kraft_wire.wire.records.record_batch import CHECKED_FROM, HEADER_BYTES
from tests.storage.making import (
    DIRECTORY,
    PARTITION,
    TOPIC_ID,
    append,
    batch_bytes,
    contents,
    marker_bytes,
    open_at,
)

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=100, cleanup_policy=("compact",))
_CRC_AT = 17


def spoilt(batch: bytes) -> bytes:
    """A batch whose first record has a size that it does not keep to, with a right CRC."""
    changed = bytearray(batch)
    changed[HEADER_BYTES] ^= 0x08
    struct.pack_into(">I", changed, _CRC_AT, crc32c(bytes(changed[CHECKED_FROM:])))
    return bytes(changed)


def log_with_spoilt_batch(at: int, fs: SimFileSystem | None = None) -> Log:
    """Nine batches of other keys, of which one cannot be read, in segments of two."""
    log = open_at(fs or SimFileSystem(), SMALL)
    for offset in range(9):
        data = batch_bytes(offset, key=b"key %d" % (offset % 3), timestamp=1_000 + offset)
        append(log, spoilt(data) if offset == at else data)
    log.update_high_watermark(log.log_end_offset)
    return log


def test_search_by_time_names_file_and_offset_of_what_it_cannot_read() -> None:
    log = log_with_spoilt_batch(4)
    held_in = next(log.segments_from(Offset(4))).path
    with pytest.raises(UnreadableRecords, match="the batch at offset 4") as failure:
        offset_for_timestamp(log, 1_004, upper_bound=Offset(9))
    assert failure.value.path == held_in
    assert isinstance(failure.value, StorageError)
    found = offset_for_timestamp(log, 1_005, upper_bound=Offset(9))
    assert found is not None
    assert found.offset == 5


def test_search_for_the_largest_time_fails_only_where_the_unreadable_batch_has_it() -> None:
    with pytest.raises(UnreadableRecords):
        offset_of_max_timestamp(log_with_spoilt_batch(8), upper_bound=Offset(9))
    found = offset_of_max_timestamp(log_with_spoilt_batch(3), upper_bound=Offset(9))
    assert found is not None
    assert found.offset == 8


def test_unreadable_batch_across_the_log_start_is_told_too() -> None:
    log = open_at(SimFileSystem())
    append(log, spoilt(batch_bytes(0, count=3)))
    log.advance_log_start_offset(Offset(1))
    with pytest.raises(UnreadableRecords):
        offset_of_max_timestamp(log, upper_bound=Offset(3))


def test_compaction_leaves_a_log_alone_that_it_cannot_read() -> None:
    fs = SimFileSystem()
    log = log_with_spoilt_batch(2, fs)
    before = contents(log)
    with pytest.raises(UnreadableRecords, match="the batch at offset 2"):
        compact(fs, log, Offset(0), 10_000)
    assert contents(log) == before


def test_compaction_that_meets_it_in_the_clean_part_removes_its_leftovers() -> None:
    fs = SimFileSystem()
    log = log_with_spoilt_batch(2, fs)
    before = contents(log)
    with pytest.raises(UnreadableRecords, match="the batch at offset 2"):
        compact(fs, log, Offset(5), 10_000)
    assert contents(log) == before[2:], "the group before it is done, and right"
    assert not [name for name in fs.names(DIRECTORY) if name.endswith(".cleaned")]


def test_log_with_unreadable_records_is_served_but_marked() -> None:
    fs = SimFileSystem()
    directory = LogDirectory.open(fs, "disk")
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    append(log, spoilt(batch_bytes(0)))
    with pytest.raises(UnreadableRecords) as failure:
        offset_for_timestamp(log, 0, upper_bound=Offset(1))
    directory.note_error(PARTITION, failure.value)
    assert directory.unreadable == {PARTITION: failure.value}
    assert directory.logs[PARTITION] is log
    assert directory.offline is None
    directory.delete_log(PARTITION)
    assert directory.unreadable == {}


@pytest.mark.parametrize("is_clean", [True, False])
def test_marker_that_cannot_be_read_is_damage_that_an_operator_sees(is_clean: bool) -> None:
    fs = SimFileSystem()
    log = open_at(fs)
    data = batch_bytes(0, producer_id=7, sequence=0, transactional=True)
    append(log, data)
    log.close()
    for name in [name for name in fs.names(DIRECTORY) if name.endswith(".snapshot")]:
        fs.unlink(f"{DIRECTORY}/{name}")  # so that a clean start replays the log, too
    path = f"{DIRECTORY}/{0:020d}.log"
    fs.open(path).pwrite(spoilt(marker_bytes(1, producer_id=7, abort=True)), len(data))
    with pytest.raises(CorruptLog) as failure:
        open_log(fs, DIRECTORY, PARTITION, TOPIC_ID, LogConfig(), wall_ms=1, is_clean=is_clean)
    assert (failure.value.path, failure.value.position) == (path, len(data))
    (damage,) = inspect(fs, "disk", PARTITION)
    assert (damage.path, damage.position, damage.first_offset) == (path, len(data), 1)


@pytest.mark.parametrize("deltas", [(0, 2, 1), (0, 0, 0), (0, 1, 7), (0, -1, 1), (1, 2, 2)])
def test_records_in_another_order_than_their_offsets_are_not_compacted(
    deltas: tuple[int, ...],
) -> None:
    """A client's batch without compression is stored as it is; `MemoryRecordsBuilder` of 4.3.1
    refuses to write it anew, and the partition counts as one that cannot be cleaned.
    """
    body = bytearray()
    for key, delta in enumerate(deltas):
        append_record(body, delta, 0, b"key %d" % key, b"v", [])
    for first in (0, 3):  # of the whole log, and behind a batch with the same keys
        fs = SimFileSystem()
        log = open_at(fs, SMALL)
        for offset in range(0, first, 3):
            append(log, batch_bytes(offset, count=3, key=b"key 0"))
        data = bytearray(batch_bytes(first, count=len(deltas)))
        data[HEADER_BYTES:] = body
        struct.pack_into(">i", data, 8, len(data) - 12)
        struct.pack_into(">I", data, _CRC_AT, crc32c(bytes(data[CHECKED_FROM:])))
        append(log, bytes(data))
        for offset in range(first + 3, first + 12, 3):
            append(log, batch_bytes(offset, count=3, key=b"key 0"))
        log.update_high_watermark(log.log_end_offset)
        before = [path for segment in log.segments for path in [segment.path]]
        with pytest.raises(UnreadableRecords, match=f"the batch at offset {first}"):
            compact(fs, log, Offset(0), 10_000)
        assert [segment.path for segment in log.segments] == before
