"""The view of a log directory: files, checkpointed offsets, and where each log ends."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from kraft_wire.columnar import SEGMENTS, list_partitions, segments_table
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record


def batches(first: int, count: int) -> bytes:
    return b"".join(
        build_batch([Record(b"k", b"v" * 50)], base_offset=at) for at in range(first, first + count)
    )


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A node's directory with three partitions and what lies beside them."""
    orders = tmp_path / "orders-1"
    orders.mkdir()
    (orders / f"{0:020d}.log").write_bytes(batches(0, 10))
    (orders / f"{10:020d}.log").write_bytes(batches(10, 6) + bytes(100))
    (orders / f"{10:020d}.index").write_bytes(bytes(24))
    (orders / f"{16:020d}.log.deleted").write_bytes(b"")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{7:020d}.log").write_bytes(b"")
    (tmp_path / "empty-0").mkdir()
    (tmp_path / "orders-2.0123456789abcdef-delete").mkdir()
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=4\n")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 1 3\n")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n2\norders 1 15\norders 0 7\n")
    return tmp_path


def test_segments_are_listed_with_what_the_checkpoints_say(log_dir: Path) -> None:
    table = segments_table(list_partitions(OsFileSystem(), str(log_dir)))
    assert table.schema.equals(SEGMENTS)
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("4", "orders", 0, f"{7:020d}.log", 7, 0, -1, 7, 7),
        ("4", "orders", 1, f"{0:020d}.log", 0, len(batches(0, 10)), 3, 16, 15),
        ("4", "orders", 1, f"{10:020d}.log", 10, len(batches(10, 6)) + 100, 3, 16, 15),
    ]


def test_partitions_without_files_are_listed_too(log_dir: Path) -> None:
    found = list_partitions(OsFileSystem(), str(log_dir))
    assert [(each.topic, each.partition) for each in found] == [
        ("empty", 0),
        ("orders", 0),
        ("orders", 1),
    ]
    assert [each.log_end_offset for each in found] == [-1, 7, 16]
    assert [each.earliest_offset for each in found] == [0, 7, 3]


@pytest.mark.parametrize("position", [5, 127, 1 << 30])
def test_index_that_points_beside_a_batch_does_not_hide_the_log_end(
    log_dir: Path, position: int
) -> None:
    index = log_dir / "orders-1" / f"{10:020d}.index"
    index.write_bytes(struct.pack(">ii", 2, position))
    assert list_partitions(OsFileSystem(), str(log_dir))[2].log_end_offset == 16
    index.write_bytes(struct.pack(">ii", 2, len(batches(10, 2))) + bytes(16))
    assert list_partitions(OsFileSystem(), str(log_dir))[2].log_end_offset == 16


def test_damaged_small_files_count_as_absent(log_dir: Path) -> None:
    for name in ("meta.properties", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        (log_dir / name).write_text("nonsense")
    found = list_partitions(OsFileSystem(), str(log_dir))[2]
    assert (found.node, found.log_start_offset, found.high_watermark) == ("", -1, -1)
    assert found.log_end_offset == 16


def test_names_with_numbers_that_kafka_cannot_have_are_passed_over(log_dir: Path) -> None:
    (log_dir / "orders-1" / f"{1 << 63:020d}.log").write_bytes(batches(0, 1))
    (log_dir / "orders-01").mkdir()
    (log_dir / "orders-1-20261122120000").mkdir()
    (log_dir / "orders-1-20261122120000" / f"{0:020d}.log").write_bytes(batches(0, 1))
    found = list_partitions(OsFileSystem(), str(log_dir))
    assert [(each.topic, each.partition) for each in found] == [
        ("empty", 0),
        ("orders", 0),
        ("orders", 1),
    ]
    assert [each.base_offset for each in found[2].segments] == [0, 10]


@pytest.mark.parametrize("stem", ["a" * 20, "-" + "1" * 19, "٠" * 20, "²" * 20, "0" * 19, "0" * 21])
def test_a_name_that_is_not_20_digits_is_no_segment(log_dir: Path, stem: str) -> None:
    (log_dir / "orders-1" / f"{stem}.log").write_bytes(batches(0, 1))
    found = list_partitions(OsFileSystem(), str(log_dir))
    assert [each.base_offset for each in found[2].segments] == [0, 10]


def test_names_that_no_text_can_hold_are_passed_over(log_dir: Path) -> None:
    for name in (b"caf\xe9-0", b"two\nlines-0"):
        os.mkdir(os.fsencode(log_dir) + b"/" + name)
    found = list_partitions(OsFileSystem(), str(log_dir))
    assert [each.topic for each in found] == ["empty", "orders", "orders"]


def test_partition_that_is_deleted_while_it_is_listed_is_none(log_dir: Path) -> None:
    class Deleting(OsFileSystem):
        def is_directory(self, path: str) -> bool:
            was_there = super().is_directory(path)
            if path.endswith("orders-0"):
                os.rename(path, f"{path}.0123456789abcdef-delete")
            return was_there

    found = list_partitions(Deleting(), str(log_dir))
    assert [(each.topic, each.partition) for each in found] == [("empty", 0), ("orders", 1)]
