"""How an ingest starts, what it refuses in which line, and its totals, with a session of words."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from kraft_wire.spark import PipelineError
from kraft_wire.spark.verbs import ingest as ingest_module
from kraft_wire.spark.verbs.ingest import Ingest, Ingested, _offsets, delta_settings, ingest
from kraft_wire.spark.workers import Amount

NO_DELTA = (
    "Delta is not here: give delta-spark_2.13 and delta-storage through --jars, on pyspark 4.2,"
    " or leave out --sink delta"
)
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


class Words:
    """A session, its reader, frame, writer and query in one: it keeps what it is told."""

    def __init__(self, **errors: Exception) -> None:
        self.told: list[object] = []
        self.errors = errors
        self.readStream = self.writeStream = self
        self.recentProgress: list[Any] = []
        self.polls = 0

    def __getattr__(self, name: str) -> Any:
        def call(*given: object, **named: object) -> Words:
            if name in self.errors:
                raise self.errors[name]
            self.told.append((name, *given, *([named] if named else [])))
            return self

        return call

    def awaitTermination(self, seconds: int) -> bool:
        assert seconds == 1
        self.polls += 1
        if "awaitTermination" in self.errors:
            raise self.errors["awaitTermination"]
        self.recentProgress = batches()[: self.polls]
        return self.polls == 3


def batches() -> list[Any]:
    return [
        SimpleNamespace(
            batchId=number,
            numInputRows=10 * number,
            sources=[
                SimpleNamespace(
                    startOffset=json.dumps({"t": {"0": number}}),
                    endOffset=json.dumps({"t": {"0": number + 1}}),
                )
            ],
        )
        for number in range(1, 5)
    ]


def asked(tmp_path: Path, **named: Any) -> Ingest:
    return Ingest("b:9092", "t,u", f"{tmp_path}/out", f"{tmp_path}/check", **named)


def run(words: Words, wanted: Ingest, tell: Any = lambda _: None) -> Ingested:
    return ingest(cast(SparkSession, words), wanted, tell=tell)


def refused(words: Words, wanted: Ingest) -> str:
    with pytest.raises(PipelineError) as error:
        run(words, wanted)
    return str(error.value)


@pytest.mark.parametrize(
    ("named", "source", "trigger"),
    [
        ({}, "kraftwire", {"availableNow": True}),
        ({"trigger": " 5 minutes "}, "kraftwire", {"processingTime": "5 minutes"}),
        ({"sink": "delta", "connector": "kafka"}, "kafka", {"availableNow": True}),
    ],
)
def test_query_has_source_sink_checkpoint_and_trigger(
    tmp_path: Path, named: dict[str, str], source: str, trigger: dict[str, object]
) -> None:
    words, amounts = Words(), []
    taken = run(words, asked(tmp_path, **named), amounts.append)
    options = {
        "startingOffsets": "earliest",
        "kafka.bootstrap.servers": "b:9092",
        "subscribe": "t,u",
    }
    assert words.told == [
        ("format", source),
        ("options", options),
        ("load",),
        ("format", named.get("sink", "parquet")),
        ("outputMode", "append"),
        ("option", "checkpointLocation", f"{tmp_path}/check"),
        ("trigger", trigger),
        ("start", f"{tmp_path}/out"),
    ]
    assert taken == Ingested(3, 60, {("t", 0): 1}, {("t", 0): 4})
    assert amounts == [Amount(records=10), Amount(records=20), Amount(records=30)]


def test_options_of_the_user_move_the_start_and_not_the_topics(tmp_path: Path) -> None:
    given = {"startingOffsets": "latest", "subscribe": "other", "minPartitions": "2"}
    words = Words()
    started: list[object] = []
    spark = cast(SparkSession, words)
    ingest(spark, asked(tmp_path, options=given), started=started.append)
    assert started == [words]
    assert words.told[1] == (
        "options",
        {
            "startingOffsets": "latest",
            "subscribe": "t,u",
            "minPartitions": "2",
            "kafka.bootstrap.servers": "b:9092",
        },
    )
    wrong = {"startingOfsets": "latest"}
    assert refused(Words(), asked(tmp_path, options=wrong)) == (
        "option 'startingofsets' does not exist in kraftwire; did you mean startingOffsets?"
    )
    other = asked(tmp_path, options=wrong, connector="kafka")
    assert run(Words(), other).batches == 3, "its options are Spark's matter"


def test_interrupt_stops_the_query_and_counts_its_last_batch(tmp_path: Path) -> None:
    words = Words(awaitTermination=KeyboardInterrupt())
    words.recentProgress = batches()[:1]
    taken = run(words, asked(tmp_path))
    assert words.told[-1] == ("stop",)
    assert (taken.batches, taken.records) == (1, 10)
    failing = Words(awaitTermination=PySparkException("the query failed\n\tat x"))
    assert refused(failing, asked(tmp_path)) == "the query failed"


ABSENT = AnalysisException("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka")


@pytest.mark.parametrize(
    ("named", "errors", "line"),
    [
        (
            {"connector": "kafka"},
            {"load": ABSENT},
            "Spark's own connector is not here: give its jars through --jars, or leave out"
            " --connector kafka",
        ),
        ({}, {"load": ABSENT}, str(ABSENT)),
        ({"connector": "kafka"}, {"load": AnalysisException("other")}, "other"),
        ({"sink": "delta"}, {"start": PySparkException("[DATA_SOURCE_NOT_FOUND] x")}, NO_DELTA),
        ({}, {"start": PySparkException("[DATA_SOURCE_NOT_FOUND] x")}, "[DATA_SOURCE_NOT_FOUND] x"),
        ({"sink": "delta"}, {"start": PySparkException("other\n\tat x")}, "other"),
        *[
            (
                {"sink": "delta"},
                {"start": PySparkException(f"java.lang.{kind}: y\n\tat x")},
                f"Delta's jars do not fit pyspark {pyspark.__version__}: java.lang.{kind}: y",
            )
            for kind in ("NoSuchMethodError", "NoClassDefFoundError", "ClassNotFoundException")
        ],
    ],
)
def test_query_that_does_not_start_is_one_line(
    tmp_path: Path, named: dict[str, str], errors: dict[str, Exception], line: str
) -> None:
    assert refused(Words(**errors), asked(tmp_path, **named)) == line


@pytest.mark.parametrize(
    ("trigger", "is_right"),
    [("1 ms", True), ("2 Milliseconds", True), ("3S", True), ("4 days", False), ("1 m 2", False)],
)
def test_units_of_a_trigger(tmp_path: Path, trigger: str, is_right: bool) -> None:
    wanted = asked(tmp_path, trigger=trigger)
    if is_right:
        assert run(Words(), wanted).batches == 3
    else:
        assert refused(Words(), wanted) == (
            f"--trigger {trigger!r} is neither available-now nor such as '10 seconds'"
        )


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")


def test_output_and_checkpoint_belong_together(tmp_path: Path) -> None:
    output, checkpoint = tmp_path / "out", tmp_path / "check"
    (output / "_spark_metadata").mkdir(parents=True)
    (checkpoint / "commits").mkdir(parents=True)
    write(checkpoint / "commits" / ".0.crc")
    assert run(Words(), asked(tmp_path)).batches == 3, "a killed query left only directories"
    write(output / "a" / "rows.parquet")
    assert refused(Words(), asked(tmp_path)) == (
        f"{output} holds rows, and {checkpoint} does not say which: give the checkpoint that"
        " they were written with, or a new output"
    )
    (checkpoint / "offsets").mkdir()
    assert run(Words(), asked(tmp_path)).batches == 3
    write(checkpoint / "commits" / "0")
    assert run(Words(), asked(tmp_path)).batches == 3
    (output / "a" / "rows.parquet").unlink()
    assert refused(Words(), asked(tmp_path)) == (
        f"{checkpoint} says that rows were written, and {output} holds none: give the output"
        " of this checkpoint, or a new checkpoint"
    )
    far = Ingest("b:9092", "t", str(output), f"file://{checkpoint}")
    assert run(Words(), far).batches == 3, "a place that is not visible here is not judged"


@pytest.mark.parametrize("place", ["output", "checkpoint"])
def test_neither_place_is_in_a_log_directory(tmp_path: Path, place: str) -> None:
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "meta.properties").write_text("version=1\n")
    inside = f"{tmp_path}/node/x"
    places = {"output": f"{tmp_path}/out", "checkpoint": f"{tmp_path}/check"} | {place: inside}
    assert refused(Words(), Ingest("b:9092", "t", **places)) == (
        f"{inside} is inside the log directory {tmp_path}/node: give another one"
    )


@pytest.mark.parametrize(
    "key", ["spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"]
)
def test_delta_needs_its_jars_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    (tmp_path / "jars").mkdir()
    monkeypatch.setattr(ingest_module.pyspark, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(PipelineError) as error:
        delta_settings({"a": "b"}, ["/x/delta-storage.jar"])
    assert str(error.value) == NO_DELTA
    jar = "/x/delta-spark_2.13.jar"
    assert delta_settings({}, [jar]) == DELTA
    assert delta_settings({key: jar, "a": "b"}) == {**DELTA, key: jar, "a": "b"}
    (tmp_path / "jars" / "delta-spark_2.13.jar").touch()
    extension = {"spark.sql.extensions": "mine"}
    assert delta_settings(extension) == {**DELTA, **extension}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"t": {"0": 5, "1": "6"}, "u": {}}', {("t", 0): 5, ("t", 1): 6}),
        (None, {}),
        ("", {}),
        ("null", {}),
        ("7", {}),
        ('{"t": 7}', {}),
        ('{"t": {"x": 7}}', {}),
        ("not JSON", {}),
    ],
)
def test_offsets_of_a_source_of_another_kind_are_none(
    text: str | None, found: dict[tuple[str, int], int]
) -> None:
    assert _offsets(text) == found
