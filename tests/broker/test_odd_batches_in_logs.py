"""Batches as a hostile client may write them: what the leader stores can be read and compacted.

A leader stores batches without compression as they came. Their records may have any offsets and
times, and their headers any producer id, so that nothing that reads a log may rely on them.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.producing.append_validation import AppendOrigin, AppendRejected
from kraft_wire.broker.producing.produced_batch import produced_batch
from kraft_wire.broker.replication.replicated_records import batches_to_append
from kraft_wire.broker.share_fetch.log_batches import read_batches
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.opening import open_log
from kraft_wire.storage.stored_records import UnreadableRecords
from kraft_wire.storage.timestamps import offset_for_timestamp, offset_of_max_timestamp
from kraft_wire.wire.compression.codecs import Compression, compress
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record, append_record
from tests.storage.making import DIRECTORY, PARTITION, TOPIC_ID, open_at

WALL_MS = 1_700_000_000_000
LARGEST = (1 << 63) - 1
TIMES = [0, 1, -1, -2, LARGEST, -LARGEST - 1, WALL_MS, WALL_MS - 5, 1 << 40]
NUMBERS = [0, 1, 2, 5, -1, -2, (1 << 31) - 1, -(1 << 31)]
FIELDS: list[tuple[int, str, list[int]]] = [
    (12, ">i", NUMBERS),  # leader epoch
    (21, ">h", [0x08, 0x40, 0x48, 0x20, 0x100]),  # attributes
    (23, ">i", NUMBERS),  # last offset
    (27, ">q", TIMES),
    (35, ">q", TIMES),
    (43, ">q", [-1, 0, 7, -5, LARGEST]),  # producer id
    (51, ">h", [0, 1, -1, 32_767]),
    (53, ">i", NUMBERS),
    (57, ">i", NUMBERS),  # count
]


def odd_batch(draw: Random) -> bytes:
    """A batch with right sizes and a right checksum; the rest is drawn."""
    count = draw.choice([1, 1, 2, 3, 5])
    codec = draw.choice([Compression.NONE] * 3 + [Compression.GZIP, Compression.LZ4])
    body = bytearray()
    for index in range(count):
        offset = draw.choice([index] * 4 + [draw.choice(NUMBERS)])
        time_ms = draw.choice([0, 0, 0, draw.choice(TIMES)])
        append_record(body, offset, time_ms, draw.choice([b"a", b"b", b"c"]), b"v", [])
    base = draw.choice([WALL_MS, WALL_MS, draw.choice(TIMES)])
    data = build_batch([Record(b"k", timestamp=base)] * count, compression=codec)
    del data[61:]
    data += compress(codec, body) if codec else body
    struct.pack_into(">i", data, 8, len(data) - 12)
    for at, form, values in draw.sample(FIELDS, draw.choice([0, 0, 1, 2])):
        struct.pack_into(form, data, at, draw.choice(values))
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return bytes(data)


def odd_topic(draw: Random) -> dict[str, Any]:
    return {
        "compression_type": draw.choice(["producer", "producer", "snappy", "uncompressed"]),
        "message_timestamp_type": draw.choice(["CreateTime", "CreateTime", "LogAppendTime"]),
        "message_timestamp_after_max_ms": draw.choice([3_600_000, LARGEST]),
        "segment_bytes": draw.choice([300, 1_000, 1 << 20]),
        "index_interval_bytes": draw.choice([1, 100, 4_096]),
        "cleanup_policy": ("compact",),
    }


def produce(target: Partition, data: bytes) -> int:
    """Store a batch if the leader takes it; return 1 then."""
    try:
        batch = produced_batch(memoryview(data), 9)
    except AppendRejected:
        return 0
    result = target.append_as_leader(
        batch, origin=AppendOrigin.CLIENT, acks=-1, now_ms=1, wall_ms=WALL_MS
    )
    return int(result.error is E.NONE)


def read_everywhere(log: Log, draw: Random) -> None:
    """Fetch, share, and look up times."""
    high_watermark = log.high_watermark
    for time_ms in TIMES:
        offset_for_timestamp(log, time_ms, upper_bound=high_watermark)
    offset_of_max_timestamp(log, upper_bound=high_watermark)
    for _ in range(4):
        offset = Offset(draw.randrange(log.log_start_offset, log.log_end_offset + 1))
        found = log.read(
            offset, draw.choice([0, 60, 1_000]), upper_bound=high_watermark, min_one_batch=True
        )
        assert found.offset_behind >= 0
        read_batches(found.records, offset, offset - 1, 500, finds_markers=False)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_leader_stores_can_be_read_and_compacted(seed: int) -> None:
    draw, stored = Random(seed), 0
    for _ in range(60):
        fs, config = SimFileSystem(), LogConfig(**odd_topic(draw))
        log = open_at(fs, config)
        target = Partition("t", TOPIC_ID, 0, log, LeaderEpoch(4))
        for _ in range(draw.randrange(1, 12)):
            stored += produce(target, odd_batch(draw))
        if draw.random() < 0.3:
            log.advance_log_start_offset(Offset(draw.randrange(log.high_watermark + 1)))
        read_everywhere(log, draw)
        with suppress(UnreadableRecords):
            compact(fs, log, Offset(0), WALL_MS)
        read_everywhere(log, draw)
        open_log(fs, DIRECTORY, PARTITION, TOPIC_ID, config, wall_ms=WALL_MS)
    assert stored > 100


@pytest.mark.parametrize(
    ("key", "is_abort"),
    [(None, False), (b"\0", False), (b"\xff\xff\0\0", False), (b"\0\0\0\0", True)],
)
def test_a_marker_of_a_former_leader_may_have_any_key(key: bytes | None, is_abort: bool) -> None:
    """A follower takes it, and a share fetch of read_committed records reads it later."""
    marker = build_batch(
        [Record(key, b"", timestamp=1)],
        partition_leader_epoch=4,
        producer_id=7,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    assert batches_to_append(memoryview(marker), Offset(0), -1, LeaderEpoch(4))
    (read,) = read_batches(bytes(marker), 0, 0, 500, finds_markers=True)
    assert read.is_abort_marker is is_abort


def stored_alone(data: bytes) -> tuple[SimFileSystem, Log]:
    fs = SimFileSystem()
    log = open_at(fs, LogConfig(cleanup_policy=("compact",), segment_bytes=100))
    target = Partition("t", TOPIC_ID, 0, log, LeaderEpoch(4))
    assert produce(target, data)
    for _ in range(2):
        assert produce(target, bytes(build_batch([Record(b"k", b"v", timestamp=1)])))
    return fs, log


def test_a_producer_id_below_minus_1_is_none() -> None:
    """`RecordBatch.hasProducerId` of 4.3.1; the cleaner's pass over it ended our process."""
    data = bytearray(build_batch([Record(b"k", b"v", timestamp=WALL_MS)]))
    struct.pack_into(">q", data, 43, -5)
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    fs, log = stored_alone(bytes(data))
    compact(fs, log, Offset(0), WALL_MS)
    assert log.log_end_offset == 3


def test_records_may_be_later_than_the_largest_time_of_their_batch() -> None:
    """`LogValidator` of 4.3.1 takes back append times of a producer, and lets its records be."""
    data = bytearray(build_batch([Record(b"k", b"v", timestamp=n) for n in (1, WALL_MS * 2)]))
    struct.pack_into(">h", data, 21, 0x08)
    struct.pack_into(">q", data, 35, WALL_MS)
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    _, log = stored_alone(bytes(data))
    log.advance_log_start_offset(Offset(1))
    found = offset_of_max_timestamp(log, upper_bound=log.high_watermark)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, 2 * WALL_MS)
