"""Whole plans of small logs, and the lines about damage in them, compared with what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraft_wire.columnar import PartitionFiles, SegmentFile
from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.spark import PipelineError, parse_log_options, read_task, read_view
from kraft_wire.spark.kraftlog.log_walk import _said
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.planning import (
    EVERYTHING,
    LogPart,
    OffsetRange,
    Stretch,
    pack,
    plan_log_parts,
    whole_log,
)
from kraft_wire.spark.kraftlog.schemas import view_schema
from kraft_wire.spark.kraftlog.views import ViewTask, plan_view
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.files import File
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from tests.spark.log_directories import CLUSTER_ID, TOPIC_ID
from tests.storage.making import append, batch_bytes

SEGMENTS = [
    SegmentFile("00.log", 0, 100),
    SegmentFile("10.log", 10, 200),
    SegmentFile("20.log", 20, 0),
    SegmentFile("30.log", 30, 50),
]
FILES = PartitionFiles("1", "t", 3, "/t-3", SEGMENTS, log_start_offset=0)
OTHER = PartitionFiles("2", "u", 0, "/u-0", SEGMENTS[:1], log_start_offset=0)


def part(files: PartitionFiles, offsets: OffsetRange, *names: str, is_end: bool) -> LogPart:
    """Whole segments of a log."""
    stretches = tuple(
        Stretch(each.file, 0, each.size_bytes, True) for each in SEGMENTS if each.file in names
    )
    return LogPart(
        files.node, files.topic, files.partition, files.directory, offsets, stretches, is_end
    )


@pytest.mark.parametrize(
    ("start", "end", "names", "is_end"),
    [
        (0, None, ("00.log", "10.log", "30.log"), True),
        (9, None, ("00.log", "10.log", "30.log"), True),
        (10, None, ("10.log", "30.log"), True),
        (11, None, ("10.log", "30.log"), True),
        (29, None, ("30.log",), True),
        (99, None, ("30.log",), True),
        (0, 30, ("00.log", "10.log"), False),
        (0, 31, ("00.log", "10.log", "30.log"), True),
        (0, 10, ("00.log",), False),
        (0, 11, ("00.log", "10.log"), False),
        (5, 6, ("00.log",), False),
    ],
)
def test_task_has_the_segments_that_may_hold_the_offsets(
    start: int, end: int | None, names: tuple[str, ...], is_end: bool
) -> None:
    options = LogOptions(("/",), open_cost_bytes=1000)
    offsets = OffsetRange(start, end)
    plan = plan_log_parts(SimFileSystem(), [(FILES, offsets)], options, 1)
    assert plan == [(part(FILES, offsets, *names, is_end=is_end),)]


@pytest.mark.parametrize("end", [5, 4])
def test_range_without_offsets_has_no_task(end: int) -> None:
    logs = [(FILES, OffsetRange(5, end))]
    assert plan_log_parts(SimFileSystem(), logs, LogOptions(("/",)), 1) == []


def test_small_segments_share_a_task_and_neighbours_are_one_part() -> None:
    offsets = OffsetRange(0, None)
    logs = [(FILES, offsets), (OTHER, offsets)]
    options = LogOptions(("/",), open_cost_bytes=0, partition_bytes_max=200)
    assert plan_log_parts(SimFileSystem(), logs, options, 1) == [
        (part(FILES, offsets, "00.log", is_end=False),),
        (part(FILES, offsets, "10.log", is_end=False),),
        (
            part(FILES, offsets, "30.log", is_end=True),
            part(OTHER, offsets, "00.log", is_end=True),
        ),
    ]
    wide = LogOptions(("/",), open_cost_bytes=0, partition_bytes_max=350)
    assert plan_log_parts(SimFileSystem(), logs, wide, 1) == [
        (part(FILES, offsets, "00.log", "10.log", "30.log", is_end=True),),
        (part(OTHER, offsets, "00.log", is_end=True),),
    ]


@pytest.mark.parametrize(
    ("wanted", "cost", "sizes"),
    [
        (300, 0, [[100, 200], [50, 100]]),
        (299, 0, [[100], [200, 50], [100]]),
        (309, 10, [[100], [200, 50], [100]]),
        (310, 10, [[100, 200], [50, 100]]),
        (369, 10, [[100, 200], [50, 100]]),
        (370, 10, [[100, 200, 50], [100]]),
        (1, 0, [[100], [200], [50], [100]]),
    ],
)
def test_opening_a_file_counts_for_the_size_of_a_task(
    wanted: int, cost: int, sizes: list[list[int]]
) -> None:
    offsets = OffsetRange(0, None)
    parts = [
        *(part(FILES, offsets, name, is_end=False) for name in ("00.log", "10.log", "30.log")),
        part(OTHER, offsets, "00.log", is_end=True),
    ]
    tasks = pack(parts, wanted, cost)
    assert [[size for one in task for size in stretches(one)] for task in tasks] == sizes
    assert [one.directory for task in tasks for one in task].count("/u-0") == 1


def stretches(one: LogPart) -> list[int]:
    return [each.size_bytes for each in one.stretches]


def test_committed_records_are_divided_where_a_producer_snapshot_is(tmp_path: Path) -> None:
    place = str(tmp_path)
    segments = [SegmentFile(f"{base:020d}.log", base, 100) for base in (0, 10, 20, 30)]
    files = PartitionFiles("1", "t", 3, place, segments, log_start_offset=0)
    for base in (10, 30):
        (tmp_path / f"{base:020d}.snapshot").touch()
    options = LogOptions(("/",), read_committed=True, open_cost_bytes=0, partition_bytes_max=100)
    plan = plan_log_parts(OsFileSystem(), [(files, OffsetRange(0, None))], options, 1)
    whole = tuple(Stretch(each.file, 0, 100, True) for each in segments)
    named = ("1", "t", 3, place, OffsetRange(0, None))
    assert plan == [
        (LogPart(*named, whole[:1], False, whole),),
        (LogPart(*named, whole[1:3], False, whole),),
        (LogPart(*named, whole[3:], True, whole),),
    ]


def test_whole_log_has_empty_segments_and_its_end() -> None:
    names = [each.file for each in SEGMENTS]
    assert whole_log(FILES) == part(FILES, EVERYTHING, *names, is_end=True)
    assert whole_log(FILES).size_bytes == 350


BATCHES = ((0, 2), (2, 1), (3, 3), (6, 2), (8, 2), (10, 1))
"""Base offset and records; segments begin at 0, 3 and 8."""


def begun(path: Path, config: LogConfig | None = None) -> tuple[LogDirectory, Log]:
    """An empty log, and its directory."""
    fs = OsFileSystem()
    write_meta_properties(fs, str(path), MetaProperties(CLUSTER_ID, 1, None))
    logs = LogDirectory.open(fs, str(path))
    return logs, logs.create_log(TopicPartition("t", 0), TOPIC_ID, config or LogConfig(), 1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of three segments with two batches each."""
    logs, made = begun(tmp_path)
    for base, count in BATCHES:
        if base in (3, 8):
            made.roll(1)
        append(made, batch_bytes(base, count=count, size=20))
        made.update_high_watermark(made.log_end_offset)
    logs.close(broker_epoch=1)
    return tmp_path


def test_stretch_ends_behind_the_last_batch_of_a_range(tmp_path: Path) -> None:
    """A task of few offsets does not read the rest of a large segment."""
    logs, made = begun(tmp_path, LogConfig(index_interval_bytes=0))
    for base in range(10):
        append(made, batch_bytes(base, size=20))
    size = made.active_segment.size_bytes
    logs.close(broker_epoch=1)
    files = PartitionFiles(
        "1", "t", 0, f"{tmp_path}/t-0", [SegmentFile(f"{0:020d}.log", 0, size)], log_start_offset=0
    )
    options = LogOptions(("/",), open_cost_bytes=0)
    ((one,),) = plan_log_parts(OsFileSystem(), [(files, OffsetRange(0, 4))], options, 1)
    (stretch,) = one.stretches
    assert (stretch.start_position, stretch.end_position) == (0, size * 4 // 10)
    assert not stretch.is_file_end


def read(path: Path, view: str = "records", **options: str) -> list[dict[str, Any]]:
    given = {"path": str(path), "view": view, **options}
    return [row for batch in read_view(given) for row in batch.to_pylist()]


def damage(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def segment(log: Path, base: int) -> Path:
    return log / "t-0" / f"{base:020d}.log"


def line_of(log: Path, **options: str) -> str:
    with pytest.raises(PipelineError) as refused:
        read(log, **options)
    return str(refused.value)


HINT = "; set onCorrupt to skip or report to read the undamaged records"


def test_damaged_records_are_named_by_their_offsets(log: Path) -> None:
    sizes = {row["baseOffset"]: row["sizeInBytes"] for row in read(log, "batches")}
    damage(segment(log, 3), sizes[3] - 1)
    where = f"{segment(log, 3)} position 0 (node 1)"
    what = f"offsets 3 to 5: {sizes[3]} bytes are a batch with a wrong checksum"
    assert line_of(log) == f"{where}: {what}{HINT}"
    kept = [row["offset"] for row in read(log, onCorrupt="skip")]
    assert kept == [0, 1, 2, 6, 7, 8, 9, 10]
    damage(segment(log, 0), sizes[0] + sizes[2] - 1)
    what = f"offsets from 2 on: {sizes[2]} bytes are a batch with a wrong checksum"
    assert line_of(log) == f"{segment(log, 0)} position {sizes[0]} (node 1): {what}{HINT}"
    statuses = [(row["baseOffset"], row["status"]) for row in read(log, "batches")]
    assert [status for _, status in statuses] == ["ok", "crc", "crc", "ok", "ok", "ok"]


@pytest.mark.parametrize(
    ("bounds", "is_refused"),
    [((0, 3), False), ((0, 4), True), ((5, 7), True), ((6, 7), False), ((3, 6), True)],
)
def test_damage_beside_the_offsets_is_passed_over(
    log: Path, bounds: tuple[int, int], is_refused: bool
) -> None:
    size = next(row["sizeInBytes"] for row in read(log, "batches") if row["baseOffset"] == 3)
    damage(segment(log, 3), size - 1)
    start, end = bounds
    options = {
        "startingOffsets": f'{{"t":{{"0":{start}}}}}',
        "endingOffsets": f'{{"t":{{"0":{end}}}}}',
    }
    if is_refused:
        assert "position 0 (node 1): offsets 3 to 5: " in line_of(log, **options)
    else:
        assert [row["offset"] for row in read(log, **options)] == list(range(start, end))


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (3, 5, "offsets 3 to 5: "),
        (3, 3, "offset 3: "),
        (3, 2, "offset 3: "),
        (0, 0, "offset 0: "),
        (3, None, "offsets from 3 on: "),
        (None, 5, "offsets up to 5: "),
        (None, None, ""),
    ],
)
def test_offsets_of_damage_are_told_as_far_as_they_are_known(
    first: int | None, last: int | None, text: str
) -> None:
    assert _said(first, last) == text


@pytest.mark.parametrize("is_loss_an_error", ["true", "false"])
def test_file_that_cannot_be_opened_is_an_error_whatever_is_lost(
    log: Path, is_loss_an_error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: OsFileSystem, path: str) -> File:
        raise StorageError("open", path, "Permission denied")

    options = parse_log_options({"path": str(log), "failOnDataLoss": is_loss_an_error})
    (task,) = plan_view(OsFileSystem(), options, 1)
    assert isinstance(task, ViewTask)
    monkeypatch.setattr(OsFileSystem, "open_for_reading", refused)
    with pytest.raises(PipelineError, match=r"cannot be read: .*Permission denied"):
        list(read_task(OsFileSystem(), task, options, view_schema(options)))


@pytest.mark.parametrize(
    "more", [{}, {"isolationLevel": "read_committed", "includeHeaders": "true"}]
)
def test_file_that_is_gone_is_data_loss_or_left_out(log: Path, more: dict[str, str]) -> None:
    segment(log, 3).unlink()
    options = parse_log_options({"path": str(log), **more})
    (task,) = plan_view(OsFileSystem(), options, 1)
    assert isinstance(task, ViewTask)
    segment(log, 0).rename(log / "kept")
    with pytest.raises(PipelineError) as refused:
        list(read_task(OsFileSystem(), task, options, view_schema(options)))
    assert str(refused.value) == (
        f"{segment(log, 0)} was deleted after the query was planned, and its records are lost;"
        " set failOnDataLoss to false to continue without them"
    )
    loose = parse_log_options({"path": str(log), "failOnDataLoss": "false", **more})
    rows = [
        row["offset"]
        for batch in read_task(OsFileSystem(), task, loose, view_schema(loose))
        for row in batch.to_pylist()
    ]
    assert rows == [8, 9, 10]
