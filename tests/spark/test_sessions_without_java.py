"""Sessions without a JVM: their settings, what is registered, and tasks as frames of Connect."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from kraft_wire.spark import PipelineError
from kraft_wire.spark import registration as registration_module
from kraft_wire.spark import session as session_package_name
from kraft_wire.spark import workers as workers_module
from kraft_wire.spark.kraftlog.log_source import KraftLogSource
from kraft_wire.spark.kraftwire.wire_source import KraftWireSource
from kraft_wire.spark.registration import register
from kraft_wire.spark.workers import attempt_name, run_on_workers

session_module = sys.modules["kraft_wire.spark.session"]
assert session_package_name is not session_module, "the package's `session` is the function"
PYTHON = sys.executable
QUIET = [
    ("spark.ui.enabled", "false"),
    ("spark.ui.showConsoleProgress", "false"),
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.execution.arrow.pyspark.enabled", "true"),
]


class Spark:
    """`SparkSession` as this package uses it: a builder, an active session, a started one."""

    def __init__(self, *, has_session: bool = False, error: Exception | None = None) -> None:
        self.calls: list[object] = []
        self.has_session = has_session
        self.error = error
        self.conf: dict[str, str] = {}
        self.builder = self
        self.sparkContext = SimpleNamespace(
            defaultParallelism=3, setLogLevel=lambda level: self.calls.append(("level", level))
        )
        self.dataSource = SimpleNamespace(
            register=lambda source: self.calls.append((source.name(), source.parallelism))
        )

    def appName(self, name: str) -> Spark:
        self.calls.append(("name", name))
        return self

    def master(self, master: str) -> Spark:
        self.calls.append(("master", master))
        return self

    def config(self, key: str, value: str) -> Spark:
        self.calls.append((key, value))
        return self

    def getOrCreate(self) -> Spark:
        if self.error is not None:
            raise self.error
        return self

    def active(self) -> Spark:
        if not self.has_session:
            raise PySparkException("no session")
        return self

    def getActiveSession(self) -> Spark | None:
        return self if self.has_session else None

    def stop(self) -> None:
        self.calls.append("stop")


REGISTERED = [("level", "ERROR"), ("kraftlog", 3), ("kraftwire", 3)]


def started(monkeypatch: pytest.MonkeyPatch, fake: Spark, **options: Any) -> dict[str, str]:
    """Start a session with `fake`; return the environment that its workers get."""
    monkeypatch.setattr(session_module, "SparkSession", fake)
    environ: dict[str, str] = {}
    monkeypatch.setattr(session_module, "os", SimpleNamespace(environ=environ))
    assert session_package_name(**options) is fake
    return environ


def test_session_has_quiet_settings_and_the_drivers_python(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Spark()
    environ = started(monkeypatch, fake)
    assert fake.calls == [("name", "kraft-wire"), ("master", "local[*]"), *QUIET, *REGISTERED]
    assert environ == {
        "PYSPARK_PYTHON": PYTHON,
        "PYSPARK_DRIVER_PYTHON": PYTHON,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def test_settings_of_the_caller_take_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Spark()
    conf = {"spark.pyspark.python": "/opt/python", "spark.ui.enabled": "true"}
    master = "spark://host:7077"
    environ = started(
        monkeypatch, fake, master=master, conf=conf, jars=["/a.jar", "/b.jar"], app_name="mine"
    )
    settings = [
        ("spark.ui.enabled", "true"),
        *QUIET[1:],
        ("spark.jars", "/a.jar,/b.jar"),
        ("spark.pyspark.python", "/opt/python"),
    ]
    assert fake.calls == [("name", "mine"), ("master", master), *settings, *REGISTERED]
    assert environ == {"PYSPARK_PYTHON": "/opt/python", "PYSPARK_DRIVER_PYTHON": PYTHON}


@pytest.mark.parametrize("kind", [PySparkException, RuntimeError, OSError])
def test_spark_that_does_not_start_is_one_line(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    fake = Spark(error=kind("\nJAVA_HOME is not set\nat x\n"))
    monkeypatch.setattr(session_module, "SparkSession", fake)
    monkeypatch.setattr(session_module, "os", SimpleNamespace(environ={}))
    line = "Spark does not start with master local[2]: JAVA_HOME is not set"
    with pytest.raises(PipelineError) as refused:
        session_package_name("local[2]")
    assert str(refused.value) == line


@pytest.mark.parametrize("has_session", [False, True])
def test_verb_stops_only_the_session_that_it_started(
    monkeypatch: pytest.MonkeyPatch, has_session: bool
) -> None:
    fake = Spark(has_session=has_session)
    quiet: list[str] = []

    def quiet_start() -> nullcontext[None]:
        quiet.append("quiet")
        return nullcontext()

    monkeypatch.setattr(session_module, "SparkSession", fake)
    monkeypatch.setattr(session_module, "quiet_start", quiet_start)
    monkeypatch.setattr(session_module, "os", SimpleNamespace(environ={}))
    with session_module.running("local[2]", conf={"a": "b"}, jars=["/c.jar"]) as spark:
        assert spark is fake
        assert "stop" not in fake.calls
    begun = [("master", "local[2]"), *QUIET, ("spark.jars", "/c.jar"), ("a", "b"), *REGISTERED]
    assert fake.calls[1:] == begun + ([] if has_session else [("level", "OFF"), "stop"])
    assert quiet == ([] if has_session else ["quiet"])
    fake.calls.clear()
    with pytest.raises(KeyError), session_module.running("local[2]"):
        raise KeyError
    assert ("stop" in fake.calls) is not has_session


class Connect:
    """A Connect session: it has no context, and runs a function over a frame of numbers."""

    def __init__(self) -> None:
        self.conf: dict[str, str] = {}
        self.ranges: list[tuple[int, ...]] = []

    @property
    def sparkContext(self) -> object:
        raise PySparkException("not supported")

    def range(self, *bounds: int) -> Connect:
        self.ranges.append(bounds)
        return self

    def mapInArrow(self, run: Callable[..., Iterator[pa.RecordBatch]], schema: str) -> Connect:
        assert schema == "result binary"
        start, end, step, _ = self.ranges[-1]
        ids = [*range(start, end, step)][::-1]  # partitions end in any order
        batches = [
            pa.RecordBatch.from_pydict({"id": pa.array(part)}) for part in (ids[:1], ids[1:])
        ]
        self.results = [row for batch in run(iter(batches)) for row in batch.to_pylist()]
        return self

    def collect(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(**row) for row in self.results]


def test_tasks_of_a_connect_session_are_rows_of_a_frame() -> None:
    connect: Any = Connect()
    assert run_on_workers(connect, ["a", "b", "c"], str.upper) == ["A", "B", "C"]
    assert connect.ranges == [(0, 3, 1, 3)]
    assert [pickle.loads(row["result"]) for row in connect.results] == [
        (2, "C"),
        (1, "B"),
        (0, "A"),
    ]
    assert run_on_workers(connect, [], str.upper) == []
    assert connect.ranges == [(0, 3, 1, 3)]


def test_attempt_outside_of_a_task_is_named_by_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempt_name() == str(os.getpid())
    task = SimpleNamespace(partitionId=lambda: 7, taskAttemptId=lambda: 12)
    monkeypatch.setattr(workers_module.TaskContext, "get", lambda: task)
    assert attempt_name() == "00007-12"


def test_registered_sources_are_ours_with_the_sessions_parallelism() -> None:
    found: list[type] = []
    context = SimpleNamespace(defaultParallelism=7)
    fake: Any = SimpleNamespace(
        conf={}, sparkContext=context, dataSource=SimpleNamespace(register=found.append)
    )
    register(fake)
    assert [(each.__name__, each.__bases__) for each in found] == [
        ("KraftLogSource", (KraftLogSource,)),
        ("KraftWireSource", (KraftWireSource,)),
    ]
    assert [vars(each)["parallelism"] for each in found] == [7, 7]
    assert KraftLogSource.parallelism == (os.cpu_count() or 1), "that of other sessions stays"


@pytest.mark.parametrize("has_session", [False, True])
def test_import_registers_with_the_active_session(
    monkeypatch: pytest.MonkeyPatch, has_session: bool
) -> None:
    fake = Spark(has_session=has_session)
    monkeypatch.setattr(registration_module, "SparkSession", fake)
    registration_module._register_with_active_session()
    assert fake.calls == (REGISTERED[1:] if has_session else [])
