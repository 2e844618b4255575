"""How logs are divided into tasks: every byte once, and no task for nothing."""

import shutil
from pathlib import Path

import pytest

from kraft_wire.spark import parse_log_options
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.planning import (
    OffsetRange,
    Stretch,
    plan_log_parts,
    task_bytes,
)
from kraft_wire.spark.kraftlog.replicas import list_replicas
from kraft_wire.storage.os_files import OsFileSystem
from tests.spark.log_directories import WrittenLogs


@pytest.mark.parametrize("size", ["1", "700", "3000", "20000", "10000000"])
@pytest.mark.parametrize("has_index", [True, False])
def test_stretches_are_the_files_end_to_end(
    written: WrittenLogs, tmp_path: Path, size: str, has_index: bool
) -> None:
    fs = OsFileSystem()
    path = Path(shutil.copytree(written.path, tmp_path / "copy"))
    for index in path.glob("*/*.index") if not has_index else ():
        index.unlink()
    given = {"path": str(path), "maxPartitionBytes": size, "openCostInBytes": "1"}
    options = parse_log_options(given)
    for replica in list_replicas(fs, options):
        tasks = plan_log_parts(fs, [(replica.files, OffsetRange(0, None))], options, 2)
        stretches = [one for task in tasks for part in task for one in part.stretches]
        last = replica.files.segments[-1]
        for part in (each for task in tasks for each in task):
            end = part.stretches[-1]
            is_end = (end.segment, end.end_position) == (last.file, last.size_bytes)
            assert part.holds_log_end is is_end
        by_segment: dict[str, list[Stretch]] = {}
        for one in stretches:
            by_segment.setdefault(one.segment, []).append(one)
        for segment in replica.files.segments:
            found = sorted(by_segment.pop(segment.file, []), key=lambda one: one.start_position)
            ends = [0, *(one.end_position for one in found)]
            assert [one.start_position for one in found] == ends[:-1]
            assert ends[-1] == segment.size_bytes
            assert all(one.size_bytes > 0 or segment.size_bytes == 0 for one in found)
            assert [one.is_file_end for one in found[:-1]] == [False] * (len(found) - 1)
            assert all(one.is_file_end for one in found[-1:])
        assert by_segment == {}


@pytest.mark.parametrize(
    ("total_bytes", "files", "parallelism", "least", "found"),
    [
        (10_000, 1, 4, None, (10_000 + 100) // 4),
        (10_000, 20, 4, None, (10_000 + 2_000) // 4),
        (10_000, 1, 4, 8, (10_000 + 100) // 8),
        (10_000, 1, 8, 4, (10_000 + 100) // 8),
        (10_000, 1, 1_000, None, 100),
        (1_000_000, 1, 2, None, 5_000),
        (0, 0, 2, None, 100),
    ],
)
def test_tasks_are_as_large_as_those_of_sparks_file_sources(
    total_bytes: int, files: int, parallelism: int, least: int | None, found: int
) -> None:
    """`FilePartition.maxSplitBytes`: min(largest, max(open cost, bytes of all with it / cores))."""
    options = LogOptions(
        paths=("x",), partition_bytes_max=5_000, open_cost_bytes=100, partitions_min=least
    )
    assert task_bytes(options, total_bytes, files, parallelism) == found


def test_segments_behind_the_first_are_cut_as_small_too(written: WrittenLogs) -> None:
    fs, size_bytes = OsFileSystem(), 3_000
    given = {"path": str(written.path), "maxPartitionBytes": str(size_bytes)}
    options = parse_log_options({**given, "openCostInBytes": "1"})
    pairs = [(one.files, OffsetRange(0, None)) for one in list_replicas(fs, options)]
    tasks = plan_log_parts(fs, pairs, options, 2)
    stretches = [one for task in tasks for part in task for one in part.stretches]
    assert max(one.size_bytes for one in stretches) < 3 * size_bytes
