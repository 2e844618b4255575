"""The audit over Spark finds what the audit without it finds, and ends the same way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from kraft_wire.audit.collector import plan_audit, run_audit
from kraft_wire.cli.audit import print_json
from kraft_wire.cli.spark.command import app
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.verbs import audit as spark_audit
from kraft_wire.spark.verbs.audit import audit_directories
from tests.audit.clean_set import write_clean_set
from tests.audit.faults import Replicas, damaged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

FAULTS = range(12)
"""Seeds, each of another fault or place; all of them damage one set of replicas."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three replicas with several faults at once."""
    nodes = write_clean_set(tmp_path_factory.mktemp("replicas"))
    for seed in FAULTS:
        damaged(Replicas.of(nodes, frozenset({"state"})), seed)
    return [str(node) for node in nodes]


@pytest.mark.parametrize("task_bytes", [None, 1], ids=["partitions", "segments"])
def test_findings_are_those_of_the_audit_without_spark(
    spark: SparkSession,
    broken: list[str],
    task_bytes: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if task_bytes is not None:
        monkeypatch.setattr(spark_audit, "_TASK_BYTES_MIN", task_bytes)
        monkeypatch.setattr(spark_audit, "_TASK_BYTES_MAX", 50_000)
    wanted = run_audit(plan_audit(broken), processes=1)
    found = audit_directories(spark, broken)
    assert wanted.count("error") >= 5
    assert [each.to_json() for each in found.findings] == [
        each.to_json() for each in wanted.findings
    ]
    assert found.summary() == wanted.summary()
    assert sorted(map(repr, found.outcome.extents)) == sorted(map(repr, wanted.outcome.extents))


def test_verb_prints_the_findings_and_writes_the_report(
    spark: SparkSession,
    broken: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    print_json(run_audit(plan_audit(broken), ["crc", "gap"], processes=1))
    wanted = capsys.readouterr().out
    output = tmp_path / "report"
    given = [*broken, "--json", "--checks", "crc,gap", "--output", str(output)]
    ended = CliRunner().invoke(app, ["audit", *given])
    assert ended.exit_code == 1, ended.output
    assert ended.stdout == wanted
    rows = parquet.read_table(output / "findings.parquet").num_rows
    assert rows == len(wanted.splitlines()) - 1 >= 5
    assert (output / "report.html").exists()
    never = CliRunner().invoke(app, ["audit", *broken, "--fail-on", "never", "--checks", "crc"])
    assert never.exit_code == 0


def test_what_cannot_be_audited_is_one_line(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="nowhere"):
        audit_directories(spark, [str(tmp_path / "nowhere")])
    ended = CliRunner().invoke(app, ["audit", str(tmp_path), "--checks", "beauty"])
    assert ended.exit_code == 2
    assert len(ended.stderr.splitlines()) == 1, ended.stderr


def test_small_file_of_a_large_partition_that_cannot_be_read_is_one_line(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_audit, "_TASK_BYTES_MIN", 1)
    monkeypatch.setattr(spark_audit, "_TASK_BYTES_MAX", 5_000)
    (node, *_) = write_clean_set(tmp_path / "clean")
    index = node / "orders-0" / f"{0:020d}.index"
    index.unlink()
    index.mkdir()
    with pytest.raises(PipelineError, match="Is a directory"):
        audit_directories(spark, [str(node)])
