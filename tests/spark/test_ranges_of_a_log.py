"""Every range of offsets of small logs: each row is there once, whatever the index knows.

The twin is what was appended. Logs differ in the sizes of batches, the gaps between them, where
segments end, and how many batches have an entry in the offset index.
"""

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest

from kraft_wire.model import TopicPartition
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.schemas import view_schema
from kraft_wire.spark.kraftlog.views import plan_view, read_task
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from tests.spark.log_directories import CLUSTER_ID, TOPIC_ID
from tests.storage.making import append, batch_bytes

FS = OsFileSystem()
KINDS: tuple[dict[str, str], ...] = ({}, {"isolationLevel": "read_committed"}, {"view": "batches"})
ONE_TASK: dict[str, str] = {}
MANY_TASKS = {"maxPartitionBytes": "1", "openCostInBytes": "1", "minPartitions": "64"}


def write(path: Path, seed: int, interval_bytes: int, gaps: tuple[int, ...]) -> list[range]:
    """Make one log; return the offsets of each batch."""
    random_source = random.Random(seed)
    write_meta_properties(FS, str(path), MetaProperties(CLUSTER_ID, 1, None))
    directory = LogDirectory.open(FS, str(path))
    config = LogConfig(index_interval_bytes=interval_bytes, cleanup_policy=("compact",))
    log = directory.create_log(TopicPartition("t", 0), TOPIC_ID, config, 1)
    batches = []
    for _ in range(8):
        if random_source.random() < 0.3:
            log.roll(1)
        base, count = log.log_end_offset + random_source.choice(gaps), random_source.randint(1, 3)
        append(log, batch_bytes(base, count=count, size=random_source.randint(0, 60)))
        batches.append(range(base, base + count))
        log.update_high_watermark(log.log_end_offset)
    directory.close(broker_epoch=1)
    return batches


def offsets_read(path: Path, start: int, end: int, options: dict[str, str]) -> list[int]:
    """The offsets of the rows; of the view `batches`, the base offsets."""
    bounds = {
        "startingOffsets": json.dumps({"t": {"0": start}}),
        "endingOffsets": json.dumps({"t": {"0": end}}),
    }
    parsed = parse_log_options({"path": str(path), "topics": "t"} | bounds | options)
    column = "baseOffset" if parsed.view == "batches" else "offset"
    found: list[int] = []
    for task in plan_view(FS, parsed, 1):
        for rows in read_task(FS, task, parsed, view_schema(parsed)):
            found += rows.column(column).to_pylist()
    return found


@pytest.mark.parametrize("tasks", [ONE_TASK, MANY_TASKS], ids=["one task", "many tasks"])
@pytest.mark.parametrize("interval_bytes", [0, 150])
@pytest.mark.parametrize("gaps", [(0,), (0, 0, 3)], ids=["whole", "with gaps"])
def test_each_range_has_each_of_its_rows_once(
    tmp_path: Path, tasks: dict[str, str], interval_bytes: int, gaps: tuple[int, ...]
) -> None:
    seed = len(tasks) + interval_bytes + len(gaps)
    batches = write(tmp_path, seed, interval_bytes, gaps)
    records = [offset for batch in batches for offset in batch]
    entries = sum(file.stat().st_size // 8 for file in tmp_path.glob("t-0/*.index"))
    assert interval_bytes > 0 or entries >= 8 - len([*tmp_path.glob("t-0/*.log")])
    places = sorted({0, *(each.stop for each in batches), *(each.start for each in batches)})
    kinds = random.Random(seed).choices(KINDS, k=2 * len(places) ** 2)
    for start in places:
        for end in (end for at in places for end in (at, at + 1) if end >= start):
            options = kinds.pop()
            found = offsets_read(tmp_path, start, end, tasks | options)
            wanted = [offset for offset in records if start <= offset < end]
            if "view" in options:
                wanted = [each.start for each in batches if {*each} & {*wanted}]
            assert found == wanted, (start, end, options)


def test_the_offsets_of_micro_batches_divide_a_log_without_loss(tmp_path: Path) -> None:
    """Whatever the seams: what one range ends at, the next one begins with."""
    batches = write(tmp_path, 5, 0, (0,))
    end = batches[-1].stop
    random_source = random.Random(5)
    for _ in range(4):
        seams = sorted({0, end, *(random_source.randrange(end) for _ in range(4))})
        found = [
            offset
            for first, last in pairwise(seams)
            for offset in offsets_read(tmp_path, first, last, {})
        ]
        assert found == list(range(end))
