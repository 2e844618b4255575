"""What a read of logs counts as there: not what was deleted, not what no leader has."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from kraft_wire.model import Offset
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.schemas import view_schema
from kraft_wire.spark.kraftlog.views import plan_view, read_task
from kraft_wire.storage.os_files import OsFileSystem
from tests.spark.log_directories import WrittenLogs


def offsets(*paths: Path, **given: str) -> list[int]:
    """The offsets that a query shows, as its tasks read them."""
    options = parse_log_options({"paths": json.dumps([str(each) for each in paths]), **given})
    fs, schema = OsFileSystem(), view_schema(options)
    tables = [
        pa.Table.from_batches(read_task(fs, task, options, schema), schema)
        for task in plan_view(fs, options, 1)
    ]
    return sorted(offset for table in tables for offset in table["offset"].to_pylist())


@pytest.mark.parametrize(
    ("starting", "first"),
    [
        ("earliest", 14),
        (json.dumps({"t": {"0": 5}}), 14),
        (json.dumps({"t": {"0": 14}}), 14),
        (json.dumps({"t": {"0": 17}}), 17),
        (json.dumps({"t": {"0": -2}}), 14),
        ("physical", 0),
    ],
)
def test_deleted_records_are_shown_to_nobody_but_who_asks_for_what_is_on_the_disk(
    tmp_path: Path, starting: str, first: int
) -> None:
    written = WrittenLogs(tmp_path, 1)
    for _ in range(3):
        written.append("t", 0, 10)
    written.log("t", 0).advance_log_start_offset(Offset(14))
    written.close()
    assert offsets(tmp_path, startingOffsets=starting) == list(range(first, 30))


def test_replica_of_the_newest_leader_epoch_is_read_though_another_one_is_longer(
    tmp_path: Path,
) -> None:
    """The longer one has what its leader wrote and nobody else had: the next leader cuts it."""
    former, present = WrittenLogs(tmp_path / "1", 1), WrittenLogs(tmp_path / "2", 2)
    for node, second, epoch in ((former, 20, 0), (present, 5, 1)):
        node.append("t", 0, 10)
        node.append("t", 0, second, epoch=epoch)
        node.close()
    assert offsets(former.path, present.path) == list(range(15))
    assert offsets(present.path, former.path) == list(range(15))


def test_longest_replica_of_one_leader_epoch_is_read(tmp_path: Path) -> None:
    nodes = [WrittenLogs(tmp_path / str(number), number) for number in (1, 2, 3)]
    for node, count in zip(nodes, (4, 9, 7), strict=True):
        node.append("t", 0, count, epoch=3)
        node.close()
    assert offsets(*(each.path for each in nodes)) == list(range(9))
