"""An ingest takes every record once, over several runs, and refuses what would not be once."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from typer.testing import CliRunner

from kraft_wire.cli.spark.command import app
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.verbs.ingest import DELTA_SETTINGS, Ingest, delta_settings, ingest
from kraft_wire.spark.workers import Amount
from tests.server_process import ServerProcess
from tests.spark.connector_jars import connector_jars
from tests.spark.topics_written import LiveTopics, Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def topics(module_server: ServerProcess) -> LiveTopics:
    return LiveTopics(module_server.bootstrap)


def asked_for(topics: LiveTopics, topic: str, place: Path) -> Ingest:
    output, checkpoint = str(place / "out"), str(place / "checkpoint")
    return Ingest(topics.bootstrap, topic, output, checkpoint)


def rows_in(spark: SparkSession, asked: Ingest) -> list[tuple[str, int, int, bytes | None]]:
    rows = spark.read.parquet(asked.output).collect()
    return sorted((row.topic, row.partition, row.offset, row.value) for row in rows)


def told(rows: list[Row]) -> list[tuple[str, int, int, bytes | None]]:
    return sorted((row[0], row[1], row[2], row[5]) for row in rows)


@pytest.mark.parametrize("connector", ["kraftwire", "kafka"])
def test_two_runs_with_a_grown_topic_take_every_record_once(
    spark: SparkSession,
    topics: LiveTopics,
    tmp_path: Path,
    connector: Literal["kraftwire", "kafka"],
) -> None:
    if connector == "kafka":
        connector_jars()  # an error that says why they are not here
    topic = topics.create("taken")
    asked = replace(asked_for(topics, topic, tmp_path), connector=connector)
    written = topics.write(topic, 300)
    amounts: list[Amount] = []
    first = ingest(spark, asked, tell=amounts.append)
    assert rows_in(spark, asked) == told(written)
    assert first.records == sum(each.records for each in amounts) == 300
    topics.grow(topic, 3)
    written += topics.write(topic, 90, partitions=3)
    second = ingest(spark, asked)
    assert rows_in(spark, asked) == told(written)
    assert second.records == 90
    assert second.began[topic, 0] == first.reached[topic, 0]
    assert sum(second.reached.values()) == 390


def test_interval_goes_on_until_it_is_stopped(
    spark: SparkSession, topics: LiveTopics, tmp_path: Path
) -> None:
    topic = topics.create("ever")
    asked = replace(asked_for(topics, topic, tmp_path), trigger="1 second")
    written = topics.write(topic, 50)
    queries: list[StreamingQuery] = []
    arrived = threading.Event()

    def stop() -> None:
        arrived.wait(120)
        queries[0].stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    taken = ingest(spark, asked, started=queries.append, tell=lambda _: arrived.set())
    stopper.join()
    assert taken.records == 50
    assert rows_in(spark, asked) == told(written)


def test_output_without_its_checkpoint_is_refused(
    spark: SparkSession, topics: LiveTopics, tmp_path: Path
) -> None:
    topic = topics.create("parted")
    topics.write(topic, 10)
    asked = asked_for(topics, topic, tmp_path)
    ingest(spark, asked)
    with pytest.raises(PipelineError, match=r"holds rows, and .* does not say which"):
        ingest(spark, replace(asked, checkpoint=str(tmp_path / "other")))
    shutil.rmtree(asked.output)
    with pytest.raises(PipelineError, match=r"says that rows were written, and .* holds none"):
        ingest(spark, asked)


def test_run_that_was_killed_before_its_first_offsets_is_started_again(
    spark: SparkSession, topics: LiveTopics, tmp_path: Path
) -> None:
    topic = topics.create("early")
    written = topics.write(topic, 10)
    asked = asked_for(topics, topic, tmp_path)
    (Path(asked.output) / "_spark_metadata").mkdir(parents=True)
    assert ingest(spark, asked).records == 10
    assert rows_in(spark, asked) == told(written)


def test_delta_that_does_not_start_is_told_in_one_line(
    spark: SparkSession, topics: LiveTopics, tmp_path: Path
) -> None:
    topic = topics.create("lake")
    asked = replace(asked_for(topics, topic, tmp_path), sink="delta")
    with pytest.raises(PipelineError, match=r"^Delta is not here: give delta-spark_2\.13"):
        ingest(spark, asked)
    assert not Path(asked.output).exists()


def test_delta_needs_its_jars_from_somewhere() -> None:
    with pytest.raises(PipelineError, match=r"^Delta is not here"):
        delta_settings({"spark.jars": "other.jar"})
    own = {"spark.sql.extensions": "mine"}
    assert delta_settings(own, ["delta-spark_2.13-4.1.0.jar"]) == {**DELTA_SETTINGS, **own}
    named = {"spark.jars.packages": "io.delta:delta-spark_2.13:4.1.0"}
    assert delta_settings(named) == {**DELTA_SETTINGS, **named}


def test_verb_ends_with_a_table_and_says_what_is_wrong_in_one_line(
    spark: SparkSession, topics: LiveTopics, tmp_path: Path
) -> None:
    topic = topics.create("verb")
    topics.write(topic, 40)
    given = ["ingest", "--bootstrap-servers", topics.bootstrap, "--output", str(tmp_path / "out")]
    given += ["--checkpoint", str(tmp_path / "checkpoint"), "--subscribe"]
    ended = CliRunner().invoke(app, [*given, topic])
    assert ended.exit_code == 0, ended.output
    assert "40 records in 1 batch," in ended.stdout
    for words, line in [
        ([topic, "--trigger", "sometimes"], "neither available-now nor"),
        ([topic, "--option", "startingOffset=latest"], "startingOffset"),
        ([topic, "--sink", "delta"], "Delta is not here: give delta-spark_2.13 and delta-storage"),
    ]:
        refused = CliRunner().invoke(app, [*given, *words])
        assert refused.exit_code == 2
        assert line in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
