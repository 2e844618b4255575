"""What an audit reads: only the segments and batches that a ledger is about, and coordinators."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraft_wire.audit.collector.reading import (
    read_acknowledged,
    read_indexes,
    read_replica,
    read_segment,
)
from kraft_wire.audit.collector.transaction_states import _coordinated, hanging_findings
from kraft_wire.audit.hanging_checks import CoordinatedTransaction
from kraft_wire.audit.layout import layout_of
from kraft_wire.audit.ledger import Acknowledged
from kraft_wire.columnar import PartitionFiles, SegmentFile
from kraft_wire.columnar.transaction_log import TransactionRecord
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.transaction_log_value import PartitionsSchema, TransactionLogValue
from kraft_wire.wire.records.memory_records import iter_batches
from tests.storage.making import batch_bytes

SIZES = {0: 2, 2: 2, 4: 2, 6: 1, 8: 2}
"""Offsets and records of the batches; segments begin at 0, 4 and 8, and offset 7 is not there."""
SEGMENTS = {0: (0, 2), 4: (4, 6), 8: (8,)}


class Watched(OsFileSystem):
    """The disk, and which log files were opened."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open_for_reading(self, path: str) -> Any:
        if path.endswith(".log"):
            self.opened.append(Path(path).name)
        return super().open_for_reading(path)


@pytest.fixture
def files(tmp_path: Path) -> PartitionFiles:
    """A log of three segments."""
    segments = []
    for base, batches in SEGMENTS.items():
        data = b"".join(batch_bytes(each, count=SIZES[each], size=9) for each in batches)
        path = tmp_path / f"{base:020d}.log"
        path.write_bytes(data)
        segments.append(SegmentFile(path.name, base, len(data)))
    return PartitionFiles("1", "t", 0, str(tmp_path), segments, log_start_offset=1)


def name(base: int) -> str:
    return f"{base:020d}.log"


@pytest.mark.parametrize(
    ("wanted", "segments", "found"),
    [
        ((3,), (0,), [3]),
        ((2, 3), (0,), [2, 3]),
        ((5, 4, 5), (4,), [4, 5]),
        ((7,), (), []),
        ((9, 1), (0, 8), [1, 9]),
        ((0,), (), []),
        ((10, 99), (), []),
    ],
)
def test_only_segments_that_can_hold_the_records_are_opened(
    files: PartitionFiles, wanted: tuple[int, ...], segments: tuple[int, ...], found: list[int]
) -> None:
    replica = read_replica(OsFileSystem(), files, False)
    assert replica is not None
    fs = Watched()
    numbers = np.array(wanted, np.int64)
    ledger = Acknowledged(numbers, numbers)
    offsets, checksums = read_acknowledged(fs, files, layout_of(replica), ledger)
    assert fs.opened == [name(base) for base in segments]
    assert offsets.tolist() == found
    batches = {at: base for base, count in SIZES.items() for at in range(base, base + count)}
    values = [value_of(batches[at], at) for at in found]
    assert checksums.tolist() == [zlib.crc32(each) for each in values]


def value_of(base: int, offset: int) -> bytes:
    """The value that `batch_bytes` gave to a record."""
    (batch,) = iter_batches(batch_bytes(base, count=SIZES[base], size=9))
    (value,) = [bytes(each.value or b"") for each in batch.records() if each.offset == offset]
    return value


def test_segment_that_is_gone_has_no_batches_and_its_log_is_read_without_it(
    files: PartitionFiles, tmp_path: Path
) -> None:
    (tmp_path / name(0)).unlink()
    assert len(read_segment(OsFileSystem(), files, files.segments[0])) == 0
    replica = read_replica(OsFileSystem(), files, False)
    assert replica is not None
    assert (replica.segments, replica.batches.base_offset.tolist()) == ([4, 8], [4, 6, 8])
    for base in (4, 8):
        (tmp_path / name(base)).unlink()
    assert read_replica(OsFileSystem(), files, False) is None


def test_index_entries_are_those_before_the_zeros(files: PartitionFiles, tmp_path: Path) -> None:
    entries = [(0, 0), (1, 90)]
    data = b"".join(offset.to_bytes(4, "big") + at.to_bytes(4, "big") for offset, at in entries)
    (tmp_path / f"{4:020d}.index").write_bytes(data + bytes(24))
    times = (500).to_bytes(8, "big") + (1).to_bytes(4, "big") + b"\1\2\3"
    (tmp_path / f"{4:020d}.timeindex").write_bytes(times)
    found = read_indexes(OsFileSystem(), files, files.segments[1])
    assert found.segment == 4
    assert found.log_bytes == files.segments[1].size_bytes
    assert (found.relative_offsets.tolist(), found.positions.tolist()) == ([0, 1], [0, 90])
    assert (found.timestamps.tolist(), found.time_relative_offsets.tolist()) == ([500], [1])
    assert found.odd_bytes == (0, 3)
    absent = read_indexes(OsFileSystem(), files, SegmentFile(name(99), 99, 0))
    assert (absent.log_bytes, absent.odd_bytes) == (-1, (0, 0))
    assert len(absent.relative_offsets) == len(absent.timestamps) == 0


def test_transaction_of_a_coordinator_is_its_record() -> None:
    value = TransactionLogValue(
        producer_id=7,
        producer_epoch=2,
        transaction_timeout_ms=60,
        transaction_status=1,
        transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0, 3])],
        transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=1_000,
    )
    record = TransactionRecord(4, 9, "tid", value)
    places = frozenset({("t", 0), ("t", 3)})
    assert _coordinated(record) == CoordinatedTransaction("tid", "Ongoing", places, 1_000, 60)
    assert list(hanging_findings(OsFileSystem(), [], [], 0)) == []
