"""An export holds every record once, and is there whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.spark.command import app
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.verbs.export import export_records, planned_bytes, without_internal
from kraft_wire.spark.verbs.tables import write_tables
from tests.spark.log_directories import WrittenLogs
from tests.spark.metadata_logs import batches, write_metadata_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


@pytest.mark.parametrize("writer", ["arrow", "spark"])
def test_files_hold_the_records_that_were_written(
    spark: SparkSession, written: WrittenLogs, tmp_path: Path, writer: str
) -> None:
    output = tmp_path / "out"
    options = {"includeHeaders": "true"}
    done = export_records(spark, [str(written.path)], str(output), writer=writer, options=options)
    rows = spark.read.parquet(str(output)).orderBy("topic", "partition", "offset").collect()
    wanted = written.visible()
    assert done.records == len(rows) == len(wanted)
    for row, record in zip(rows, wanted, strict=True):
        assert (row.topic, row.partition, row.offset) == (
            record.topic,
            record.partition,
            record.offset,
        )
        assert (row.key, row.value) == (record.key, record.value)
        assert [(each.key, each.value) for each in row.headers or []] == record.headers
        assert round(row.timestamp.timestamp() * 1000) == record.timestamp
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_export_of_nothing_still_has_its_columns(
    spark: SparkSession, written: WrittenLogs, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    done = export_records(spark, [str(written.path)], str(output), options={"topics": "empty"})
    frame = spark.read.parquet(str(output))
    assert (done.records, frame.count()) == (0, 0)
    assert frame.columns[:2] == ["key", "value"]


@pytest.mark.parametrize("verb", [export_records, write_tables])
def test_output_that_holds_what_is_read_is_not_overwritten(
    tmp_path: Path, verb: Callable[..., object]
) -> None:
    logs = WrittenLogs(tmp_path / "nodes" / "node-1", 1)
    logs.append("orders", 0, 10)
    logs.close()
    write_metadata_log(logs.path, "AAAAAAAAAAAAAAAAAAAAAA", batches()[:4])
    before = sorted(tmp_path.rglob("*"))
    for output in (logs.path, logs.path.parent):
        with pytest.raises(PipelineError, match=f"^{output} holds {logs.path}, which is read"):
            verb(None, [str(logs.path)], str(output), overwrite=True)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("writer", ["arrow", "spark"])
def test_export_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path, writer: str) -> None:
    logs = WrittenLogs(tmp_path / "node-1", 1)
    for _ in range(50):
        logs.append("orders", 0, 10)
    logs.close()
    segment = sorted((logs.path / "orders-0").glob("*.log"))[-2]
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with pytest.raises(PipelineError, match=f"{segment.name}.*wrong checksum"):
        export_records(spark, [str(logs.path)], str(tmp_path / "out"), writer=writer)
    assert [path.name for path in tmp_path.iterdir()] == ["node-1"]


def test_verb_ends_with_a_table_and_refuses_what_is_there(
    spark: SparkSession, written: WrittenLogs, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    given = ["export", str(written.path), "--output", str(output), "--option", "topics=money"]
    ended = CliRunner().invoke(app, given)
    assert ended.exit_code == 0, ended.output
    count = sum(record.topic == "money" for record in written.visible())
    assert f"{count:,}" in ended.stdout.split()
    again = CliRunner().invoke(app, given)
    assert again.exit_code == 2
    assert again.stderr.splitlines() == [
        f"kraft-wire spark: {output} already exists: give another directory or --overwrite"
    ]


@pytest.mark.parametrize("verb", ["export", "tables"])
def test_target_that_is_there_is_refused_before_a_session_starts(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def running(*_: object, **__: object) -> None:
        raise AssertionError("a session starts")

    monkeypatch.setattr(import_module("kraft_wire.spark.session"), "running", running)
    logs = WrittenLogs(tmp_path / "node-1", 1)
    logs.append("orders", 0, 10)
    logs.close()
    output = tmp_path / "out"
    (output / "old").mkdir(parents=True)
    ended = CliRunner().invoke(app, [verb, str(logs.path), "--output", str(output)])
    assert (ended.exit_code, ended.stderr) == (
        2,
        f"kraft-wire spark: {output} already exists: give another directory or --overwrite\n",
    )


def test_internal_topics_are_left_out_unless_topics_are_chosen(tmp_path: Path) -> None:
    logs = WrittenLogs(tmp_path / "node-1", 1)
    logs.append("orders", 0, 10)
    logs.append("__consumer_offsets_of_ours", 0, 10)
    logs.append("__consumer_offsets", 0, 10)
    logs.close()
    paths = [str(logs.path)]
    own = planned_bytes(paths, {"topics": "orders,__consumer_offsets_of_ours"})
    assert planned_bytes(paths, without_internal({})) == own
    assert planned_bytes(paths, without_internal({"VIEW": "batches"})) == own
    assert planned_bytes(paths) > own
    for chosen in ({"Topics": "__consumer_offsets"}, {"topicspattern": ".*"}, {"view": "metadata"}):
        assert without_internal(chosen) == chosen


FULL = """
import resource, signal, sys
from kraft_wire.spark.verbs.export import _write_task
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.views import plan_view
from kraft_wire.storage.os_files import OsFileSystem
options = parse_log_options({"path": sys.argv[1]})
(task,) = plan_view(OsFileSystem(), options, 1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    _write_task(task, options, sys.argv[2])
except PipelineError as error:
    print(error)
"""


def test_disk_that_takes_no_more_is_one_line_and_leaves_no_file(
    written: WrittenLogs, tmp_path: Path
) -> None:
    staging = tmp_path / ".out.part"
    staging.mkdir()
    arguments = [sys.executable, "-c", FULL, str(written.path), str(staging)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True)
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"{tmp_path}: cannot write Parquet: ")
    assert "File too large" in line
    assert not list(staging.iterdir())
