"""The verbs over workers in this process: what they write, what they tell, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kraft_wire.audit.collector import plan_audit, run_audit
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.registration import parallelism_of
from kraft_wire.spark.verbs import audit as spark_audit
from kraft_wire.spark.verbs import export as spark_export
from kraft_wire.spark.verbs.audit import audit_directories
from kraft_wire.spark.verbs.export import export_records, planned_bytes
from kraft_wire.spark.workers import Amount, run_on_workers
from tests.audit.clean_set import write_clean_set
from tests.audit.faults import Replicas, damaged
from tests.spark.local_session import LocalSession
from tests.spark.log_directories import WrittenLogs


def session(cores: int = 3, **settings: str) -> SparkSession:
    return cast(SparkSession, LocalSession(cores, **settings))


def total(amounts: list[Amount]) -> Amount:
    return Amount(*map(sum, zip(*amounts, strict=True)))


# -- workers -----------------------------------------------------------------------------------


def test_results_come_in_the_order_of_their_tasks_and_what_was_done_is_told() -> None:
    told: list[Amount] = []
    found = run_on_workers(
        session(),
        [3, 1, 2],
        lambda task: task * 10,
        amount_of=lambda task, result: Amount(1, task, result),
        tell=told.append,
    )
    assert found == [30, 10, 20]
    assert total(told) == Amount(3, 6, 60)


def test_without_tasks_nobody_is_asked() -> None:
    assert run_on_workers(cast(SparkSession, None), [], lambda task: task) == []


@pytest.mark.parametrize(
    ("settings", "cores"),
    [
        ({}, 3),
        ({"spark.default.parallelism": "5"}, 5),
        ({"spark.sql.leafNodeDefaultParallelism": "7", "spark.default.parallelism": "5"}, 7),
        ({"spark.default.parallelism": "0"}, 3),
        ({"spark.default.parallelism": "many"}, 3),
        ({"spark.default.parallelism": ""}, 3),
    ],
)
def test_tasks_at_a_time_are_what_a_setting_says_or_the_session_has(
    settings: dict[str, str], cores: int
) -> None:
    assert parallelism_of(session(3, **settings)) == cores
    assert parallelism_of(session(0)) == 1


def test_a_session_without_a_context_has_the_processors_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Connect:
        conf = MappingProxyType({"spark.master": "sc://here"})

        @property
        def sparkContext(self) -> Any:
            raise PySparkException("a Connect session has none")

    monkeypatch.setattr("os.cpu_count", lambda: 11)
    assert parallelism_of(cast(SparkSession, Connect())) == 11
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert parallelism_of(cast(SparkSession, Connect())) == 1


# -- export ------------------------------------------------------------------------------------


@pytest.mark.parametrize("group_rows", [1 << 18, 7])
def test_exported_files_hold_the_records_that_were_written(
    written: WrittenLogs, tmp_path: Path, group_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_export, "_GROUP_ROWS", group_rows)
    told: list[Amount] = []
    output = tmp_path / "out"
    options = {"includeHeaders": "true", "arrowBatchRows": "7", "maxPartitionBytes": "20000"}
    spark = session(2)
    done = export_records(
        spark, [str(written.path)], str(output), options=options, tell=told.append
    )
    rows = parquet.read_table(output).to_pylist()
    rows.sort(key=lambda row: (row["topic"], row["partition"], row["offset"]))
    wanted = written.visible()
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
        (each.topic, each.partition, each.offset) for each in wanted
    ]
    assert [(row["key"], row["value"]) for row in rows] == [
        (each.key, each.value) for each in wanted
    ]
    files = sorted(output.glob("*.parquet"))
    assert len(files) > 1
    assert (done.files, done.records) == (len(files), len(wanted))
    assert done.size_bytes == sum(path.stat().st_size for path in files)
    assert total(told).records == len(wanted)
    assert total(told).size_bytes == planned_bytes([str(written.path)], options) > 0
    groups = [parquet.read_metadata(path).row_group(0).num_rows for path in files]
    assert max(groups) <= max(group_rows, 7)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_export_of_nothing_has_one_file_with_the_columns(
    written: WrittenLogs, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    options = {"topics": "empty"}
    done = export_records(session(), [str(written.path)], str(output), options=options)
    (file,) = output.iterdir()
    assert (done.files, done.records) == (1, 0)
    assert parquet.read_table(file).column_names[:2] == ["key", "value"]


def test_what_an_attempt_left_is_not_exported(written: WrittenLogs, tmp_path: Path) -> None:
    """A task may run twice: only the file of the attempt that counts is kept."""
    output = tmp_path / "out"

    def tell(amount: Amount) -> None:
        (staging,) = tmp_path.glob(".out.*")
        (staging / "part-lost.parquet").write_bytes(b"cut")

    done = export_records(session(), [str(written.path)], str(output), tell=tell)
    assert not (output / "part-lost.parquet").exists()
    assert done.files == len(list(output.iterdir()))


def test_export_that_fails_leaves_nothing_and_says_where(tmp_path: Path) -> None:
    logs = WrittenLogs(tmp_path / "node-1", 1)
    for _ in range(50):
        logs.append("orders", 0, 10)
    logs.close()
    segment = sorted((logs.path / "orders-0").glob("*.log"))[-2]
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with pytest.raises(PipelineError, match=f"{segment.name}.*wrong checksum"):
        export_records(session(), [str(logs.path)], str(tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["node-1"]


# -- audit -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three replicas with several faults at once."""
    nodes = write_clean_set(tmp_path_factory.mktemp("replicas"))
    for seed in range(12):
        damaged(Replicas.of(nodes, frozenset({"state"})), seed)
    return [str(node) for node in nodes]


@pytest.mark.parametrize("task_bytes", [None, 1], ids=["partitions", "segments"])
def test_findings_are_those_of_the_audit_in_one_process(
    broken: list[str], task_bytes: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if task_bytes is not None:
        monkeypatch.setattr(spark_audit, "_TASK_BYTES_MIN", task_bytes)
        monkeypatch.setattr(spark_audit, "_TASK_BYTES_MAX", 50_000)
    wanted = run_audit(plan_audit(broken), processes=1)
    told: list[Amount] = []
    spark = session()
    output = tmp_path / "report"
    found = audit_directories(spark, broken, str(output), tell=told.append)
    assert wanted.count("error") >= 5
    assert [each.to_json() for each in found.findings] == [
        each.to_json() for each in wanted.findings
    ]
    assert found.summary() == wanted.summary()
    assert sorted(map(repr, found.outcome.extents)) == sorted(map(repr, wanted.outcome.extents))
    assert parquet.read_table(output / "findings.parquet").num_rows == len(found.findings)
    assert "<html" in (output / "report.html").read_text()
    segments = [Path(each, name) for each in broken for name in Path(each).glob("*/*.log")]
    assert total(told).files == len(segments)
    tasks = cast(LocalSession, spark).tasks
    assert (len(tasks) > len(segments) // 2) == (task_bytes is not None)


def test_chosen_checks_alone_are_made(broken: list[str]) -> None:
    found = audit_directories(session(), broken, checks="crc,gap")
    wanted = run_audit(plan_audit(broken), ["crc", "gap"], processes=1)
    assert {each.check for each in found.findings} <= {"crc", "gap"}
    assert found.findings == wanted.findings


def test_what_cannot_be_audited_is_one_line_before_anything_runs(
    broken: list[str], tmp_path: Path
) -> None:
    spark = session()
    file = tmp_path / "report"
    file.touch()
    for asked, words in (
        ({"node_dirs": broken, "output": str(file)}, "report: not a directory"),
        ({"node_dirs": [str(tmp_path / "nowhere")]}, "nowhere"),
        ({"node_dirs": broken, "checks": "beauty"}, "beauty"),
        ({"node_dirs": broken, "output": f"{broken[0]}/report"}, "log directory"),
        ({"node_dirs": broken, "acks": tmp_path / "no-acks"}, "no-acks"),
        ({"node_dirs": broken, "high_watermark": tmp_path / "no-marks"}, "no-marks"),
    ):
        with pytest.raises(PipelineError, match=words) as refused:
            audit_directories(spark, **cast(Any, asked))
        assert "\n" not in str(refused.value)
    assert cast(LocalSession, spark).tasks == []


@pytest.mark.parametrize("task_bytes", [1, 1 << 30])
def test_small_file_that_cannot_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task_bytes: int
) -> None:
    monkeypatch.setattr(spark_audit, "_TASK_BYTES_MIN", task_bytes)
    monkeypatch.setattr(spark_audit, "_TASK_BYTES_MAX", max(task_bytes, 5_000))
    (node, *_) = write_clean_set(tmp_path / "clean")
    index = node / "orders-0" / f"{0:020d}.index"
    index.unlink()
    index.mkdir()
    with pytest.raises(PipelineError, match="Is a directory"):
        audit_directories(session(), [str(node)])
