"""Parts of the verbs: lines of errors, bars, staged results, and the shares of a metadata log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from kraft_wire.spark import PipelineError, translated
from kraft_wire.spark import failure as failure_module
from kraft_wire.spark.failure import line_first, line_of
from kraft_wire.spark.kraftlog.planning import EVERYTHING, LogPart, Stretch
from kraft_wire.spark.metadata.history_reading import AsOf
from kraft_wire.spark.metadata.metadata_tables import TABLE_SCHEMAS
from kraft_wire.spark.verbs import staging as staging_module
from kraft_wire.spark.verbs.export import without_internal
from kraft_wire.spark.verbs.progress import Bar, progress, seed_progress
from kraft_wire.spark.verbs.staging import refuse_output, staged
from kraft_wire.spark.verbs.tables import (
    ClusterLogs,
    WrittenTables,
    _amount_of,
    _judged,
    _Reading,
    _shares,
    _Task,
    _Written,
)
from kraft_wire.spark.workers import Amount

MIB = 1 << 20


def line(call: Callable[[], object]) -> str:
    with pytest.raises(PipelineError) as refused:
        call()
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x\nkraft_wire.PipelineError: first \nPipelineError: last one \n\tat y", "last one"),
        ("\n: java.Fault: what\n\tat y", "java.Fault: what"),
        ("An error occurred while calling o1.x\n: a.Fault: what", "a.Fault: what"),
        ('Traceback (most recent call last)\n  File "x"\nKeyError: 7', "KeyError: 7"),
        ("Driver stacktrace:\n... 3 more\nwhat", "what"),
    ],
)
def test_line_of_a_trace_is_ours_or_the_first_that_tells_something(text: str, found: str) -> None:
    assert line_of(text) == found


def raised(error: Exception) -> str:
    def call() -> None:
        with translated():
            raise error

    return line(call)


def test_errors_of_the_system_have_their_file() -> None:
    assert raised(OSError(13, "Permission denied", "/x")) == "/x: Permission denied"
    assert raised(OSError(13, "Permission denied")) == "Permission denied"
    assert raised(OSError("only words")) == "only words"
    assert raised(PySparkException("a PipelineError: ours\n\tat x")) == "ours"
    assert str(PipelineError("one\ntwo\r\nthree")) == "one two three"


HIDE = "SPARK_HIDE_TRACEBACK"


@pytest.mark.parametrize(
    ("words", "is_hidden"),
    [
        (["python", "-m", "pyspark.sql.worker.plan_data_source_read"], True),
        (["-m", "pyspark.sql.streaming.python_streaming_source_runner"], True),
        (["-m", "pyspark.daemon", "pyspark.worker"], False),
    ],
)
def test_trace_is_left_out_in_processes_of_data_sources_alone(
    monkeypatch: pytest.MonkeyPatch, words: list[str], is_hidden: bool
) -> None:
    environ: dict[str, str] = {}
    monkeypatch.setattr(failure_module.os, "environ", environ)
    monkeypatch.setattr(sys, "argv", words)
    PipelineError("x")
    assert environ == ({HIDE: "1"} if is_hidden else {})


@pytest.mark.parametrize("is_task", [False, True])
def test_our_line_is_first_where_a_task_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, is_task: bool
) -> None:
    environ: dict[str, str] = {}
    monkeypatch.setattr(failure_module.os, "environ", environ)
    context = SimpleNamespace() if is_task else None
    monkeypatch.setattr(failure_module.TaskContext, "get", lambda: context)
    with pytest.raises(KeyError), line_first():
        raise KeyError
    assert environ == {}
    with pytest.raises(PipelineError, match="x"), line_first():
        raise PipelineError("x")
    assert environ == ({HIDE: "1"} if is_task else {})


class Shown:
    """A progress display that keeps what it is told."""

    disable = True

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def add_task(self, what: str, **fields: object) -> int:
        self.calls.append((what, fields))
        return 7

    def update(self, task: int, **fields: object) -> None:
        self.calls.append((task, fields))


def test_bar_adds_up_what_is_done() -> None:
    shown = Shown()
    bar = Bar(cast(Any, shown), "export")
    bar.plan(0)
    bar.plan(5000)
    bar.tell(Amount(1, 2000, 1500))
    bar.tell(Amount(1, 3000, 0))
    assert shown.calls == [
        ("export", {"total": None, "counted": ""}),
        (7, {"total": 1}),
        (7, {"total": 5000}),
        (7, {"completed": 2000, "counted": "1 files, 1,500 records"}),
        (7, {"completed": 5000, "counted": "2 files, 1,500 records"}),
    ]


def test_no_bar_is_shown_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("export") as bar:
        bar.plan(10)
        bar.tell(Amount(1, 10, 10))
    with seed_progress(3) as seeds:
        seeds.tell(Amount(files=3, records=9))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "is_narrowed"),
    [
        ({}, True),
        ({"VIEW": " Batches "}, True),
        ({"view": "segments"}, True),
        ({"view": "metadata"}, False),
        ({"Topics": "a"}, False),
        ({"topicspattern": ".*"}, False),
        ({"ASSIGN": "{}"}, False),
    ],
)
def test_export_leaves_out_kafkas_own_topics_unless_topics_are_chosen(
    options: dict[str, str], is_narrowed: bool
) -> None:
    own = "__cluster_metadata|__consumer_offsets|__share_group_state|__transaction_state"
    pattern = {"topicsPattern": f"(?!(?:{own})$).*"} if is_narrowed else {}
    assert without_internal(options) == {**options, **pattern}


def test_output_is_refused_with_its_place(tmp_path: Path) -> None:
    full, file, node = tmp_path / "full", tmp_path / "file", tmp_path / "node"
    for each in (full, node / "t-0"):
        each.mkdir(parents=True)
    (full / "x").touch()
    file.touch()
    assert line(lambda: refuse_output("s3://a/b")) == (
        "s3://a/b: give a directory that driver and workers share as a path"
    )
    assert line(lambda: refuse_output("/")) == "/ is not a directory"
    again = "already exists: give another directory or --overwrite"
    assert line(lambda: refuse_output(str(full))) == f"{full} {again}"
    assert line(lambda: refuse_output(f"file://{file}")) == f"{file} {again}"
    known = [str(node)]
    assert line(lambda: refuse_output(str(tmp_path), overwrite=True, reading=known)) == (
        f"{tmp_path} holds {node}, which is read: give another directory"
    )
    assert line(lambda: refuse_output(f"{node}/x", reading=known)) == (
        f"{node}/x is inside the log directory {node}: give another one"
    )
    assert refuse_output(str(full), overwrite=True) == full
    assert refuse_output(f"file://{tmp_path}/new", reading=[str(node)]) == tmp_path / "new"
    (tmp_path / "empty").mkdir()
    assert refuse_output(str(tmp_path / "empty")) == tmp_path / "empty"


@pytest.mark.parametrize("is_there", [False, True])
def test_old_results_are_back_if_the_new_ones_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    target = tmp_path / "out"
    if is_there:
        target.mkdir()
        (target / "old").touch()
    real = os.replace

    def move(old: Path, new: Path) -> None:
        if old.suffix == ".part":
            raise OSError(5, "Input/output error", str(new))
        real(old, new)

    monkeypatch.setattr(staging_module.os, "replace", move)

    def write() -> None:
        with staged(str(target), overwrite=True) as staging:
            (staging / "new").touch()

    assert line(write) == f"{target}: Input/output error"
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == (["out", "out/old"] if is_there else [])


def cluster(*sizes: int) -> ClusterLogs:
    """A cluster whose metadata logs have these sizes, the first in two files."""
    stretches = [(Stretch("0.log", 0, size, True),) for size in sizes]
    stretches[0] += (Stretch("1.log", 0, 0, True),)
    logs = [
        LogPart("1", "m", 0, f"/node-{number}", EVERYTHING, each, True)
        for number, each in enumerate(stretches)
    ]
    return ClusterLogs("c", tuple(logs))


@pytest.mark.parametrize(
    ("size", "tasks_max", "shares"),
    [(0, 4, 1), (8 * MIB - 1, 4, 1), (8 * MIB, 4, 2), (99 * MIB, 4, 4), (99 * MIB, 20, 8)],
)
def test_log_is_shared_by_a_task_for_each_4_mib(size: int, tasks_max: int, shares: int) -> None:
    assert _shares(cluster(size), tasks_max) == shares


def test_shares_of_a_log_add_up_to_its_bytes_and_are_one_log() -> None:
    reading = _Reading(cluster(100), AsOf(), 3)
    written = _Written("", records=9)
    assert [_amount_of(_Task(reading, number), written) for number in range(3)] == [
        Amount(2, 34, 9),
        Amount(0, 33, 0),
        Amount(0, 33, 0),
    ]


def result(records: int = 9, end: int = 20, epoch: int = 3, file: str = "a") -> _Written:
    return _Written("", records, end, epoch, dict.fromkeys(TABLE_SCHEMAS, 2), (file,))


def test_shares_that_agree_are_the_tables() -> None:
    reading = _Reading(cluster(100), AsOf(), 2)
    rows = dict.fromkeys(TABLE_SCHEMAS, 4)
    wanted = WrittenTables("c", "/node-0", 9, 20, rows, ("a", "b"))
    assert _judged(reading, [result(), result(file="b")]) == wanted


@pytest.mark.parametrize("other", [result(end=18), result(records=8), result(epoch=4)])
def test_log_that_grew_between_its_shares_is_read_up_to_the_smaller_end(other: _Written) -> None:
    reading = _Reading(cluster(100), AsOf(timestamp_ms=5), 2, rounds=4)
    again = replace(reading, as_of=AsOf(min(20, other.end_offset), 5), rounds=5)
    assert _judged(reading, [result(), other]) == again
    assert line(lambda: _judged(again, [result(), other])) == (
        "/node-0 changes while it is read: try again"
    )


def test_log_that_is_refused_is_replaced_by_the_next_and_the_first_reason_counts() -> None:
    reading = _Reading(cluster(100, 50), AsOf(), 2)
    refused = [result(), _Written("damaged"), _Written("later")]
    second = _judged(reading, refused)
    assert isinstance(second, _Reading)
    others = replace(reading.cluster, logs=reading.cluster.logs[1:])
    assert second == replace(reading, cluster=others, refused="damaged")
    assert line(lambda: _judged(second, [_Written("gone")])) == "damaged"
    assert line(lambda: _judged(replace(second, refused=""), [_Written("gone")])) == "gone"
