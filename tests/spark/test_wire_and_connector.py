"""`kraftwire` and Spark's own Kafka connector: same rows, tasks and offsets, on both brokers.

The connector's jars come through Maven (`tests.spark.connector_jars`). Against our node it also
shows that the node serves the connector: batch and stream, as source and as sink.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess
from tests.spark.connector_jars import connector_jars
from tests.spark.topics_written import CODECS, LiveTopics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java

SECONDS_MAX = 120
COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
FORMATS = ("kafka", "kraftwire")


@pytest.fixture(scope="module", autouse=True)
def jars() -> list[str]:
    """The connector, or an error that says why it is not here."""
    return connector_jars()


@pytest.fixture(scope="module")
def ours(module_server: ServerProcess) -> LiveTopics:
    """Topics of our own node."""
    return LiveTopics(module_server.bootstrap)


@pytest.fixture(params=["ours", "apache"])
def topics(request: pytest.FixtureRequest) -> Iterator[LiveTopics]:
    """Topics of either broker."""
    if request.param == "ours":
        yield request.getfixturevalue("ours")
    else:
        node: ApacheNode = request.getfixturevalue("apache_node")
        yield LiveTopics(node.bootstrap)


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All rows in order, with every column of the source."""
    rows = [tuple(row[name] for name in COLUMNS) for row in frame.collect()]
    return sorted(rows, key=lambda row: row[:3])


def load(spark: SparkSession, format_name: str, topics: LiveTopics, **options: str) -> DataFrame:
    """A batch query."""
    reader = spark.read.format(format_name).options(**topics.options, includeHeaders="true")
    return reader.options(**options).load()


def test_batch_rows_and_schema_are_the_connectors(spark: SparkSession, topics: LiveTopics) -> None:
    topic = topics.create("same")
    for number, codec in enumerate(CODECS):
        topics.write(topic, 100, codec=codec, first=100 * number)
    bounds = {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {"0": 7, "1": -2}}),
        "endingOffsets": json.dumps({topic: {"0": 222, "1": -1}}),
        "minPartitions": "5",
    }
    theirs, own = (load(spark, each, topics, **bounds) for each in FORMATS)
    assert own.schema == theirs.schema
    assert rows_of(own) == rows_of(theirs)
    assert len(rows_of(own)) == 215 + 250
    assert own.rdd.getNumPartitions() == theirs.rdd.getNumPartitions()


def test_committed_rows_are_the_connectors(spark: SparkSession, apache_node: ApacheNode) -> None:
    topics = LiveTopics(apache_node.bootstrap)
    topic = topics.create("money")
    for number in range(4):
        topics.transact(topic, abort=number % 2 == 1)
        topics.write(topic, 20)
    waiting = topics.open_transaction(topic)
    topics.write(topic, 20)
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    theirs, own = (rows_of(load(spark, each, topics, **options)) for each in FORMATS)
    assert own == theirs
    assert all(row[6] not in (b"aborted", b"open") for row in own)
    waiting.abort_transaction()


def test_committed_rows_of_the_files_are_the_connectors_task_by_task(
    spark: SparkSession, apache_node: ApacheNode
) -> None:
    topics = LiveTopics(apache_node.bootstrap)
    topic = topics.create("tills", segment_ms="20")
    waiting = []
    for number in range(9):
        if number % 3 == 0:
            waiting.append(topics.open_transaction(topic))
        topics.transact(topic, abort=number % 2 == 1)
        topics.write(topic, 20)
        if number % 3 == 2 and number < 8:
            producer = waiting.pop()
            end = producer.abort_transaction if number == 2 else producer.commit_transaction
            end(SECONDS_MAX)
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    theirs = rows_of(load(spark, "kafka", topics, **options))
    files = spark.read.format("kraftlog").options(topics=topic, includeHeaders="true")
    files = files.options(isolationLevel="read_committed", maxPartitionBytes="1")
    own = files.option("openCostInBytes", "1").load(str(apache_node.data))
    assert own.rdd.getNumPartitions() > 6
    assert rows_of(own) == theirs
    values = [row[6] for row in theirs]
    assert (values.count(b"open"), values.count(b"committed")) == (1, 60)
    assert b"aborted" not in values
    waiting.pop().abort_transaction(SECONDS_MAX)


def test_stream_stops_at_the_offsets_of_the_connector(
    spark: SparkSession, topics: LiveTopics, tmp_path: Path
) -> None:
    topic = topics.create("stream", 3)
    topics.write(topic, 100, partitions=3)
    topics.write(topic, 400, partitions=1)
    stops, contents = [], []
    for each in FORMATS:
        stream = spark.readStream.format(each).options(**topics.options, includeHeaders="true")
        stream = stream.option("subscribe", topic).option("startingOffsets", "earliest")
        frame = stream.option("maxOffsetsPerTrigger", "90").load()
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / each))
        writer = writer.option("checkpointLocation", str(tmp_path / f"{each}-checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(SECONDS_MAX)
        progress = [json.loads(p.json)["sources"][0]["endOffset"] for p in query.recentProgress]
        stops.append([json.loads(p) if isinstance(p, str) else p for p in progress])
        contents.append(rows_of(spark.read.parquet(str(tmp_path / each))))
    assert stops[0] == stops[1]
    assert len(stops[0]) >= 5
    assert contents[0] == contents[1]
    assert len(contents[0]) == 500


def test_both_sinks_write_the_same_to_the_same_partitions(
    spark: SparkSession, topics: LiveTopics, tmp_path: Path
) -> None:
    source = topics.create("source")
    topics.write(source, 200)
    keyed = load(spark, "kraftwire", topics, subscribe=source).where("key is not null")
    frame = keyed.select("key", "value", "headers")
    stream = spark.readStream.format("kafka").options(**topics.options, includeHeaders="true")
    streamed = stream.option("subscribe", source).option("startingOffsets", "earliest").load()
    found = []
    for each in FORMATS:
        sink = topics.create("sink", 5)
        options = {**topics.options, "topic": sink, "includeHeaders": "true"}
        frame.write.format(each).mode("append").options(**options).save()
        writer = streamed.where("key is not null").select("key", "value", "headers").writeStream
        writer = writer.format(each).options(**options).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / each)).start()
        assert query.awaitTermination(SECONDS_MAX)
        rows, own = (rows_of(load(spark, name, topics, subscribe=sink)) for name in FORMATS)
        assert own == rows
        found.append(sorted((row[1], row[5], row[6] or b"", str(row[7])) for row in rows))
    assert found[0] == found[1]
    assert len(found[0]) == 2 * frame.count()
