"""Spark's own Kafka connector on our node: reads and writes, batch and stream, go as on Apache's.

What comes out is compared with what was put in, record by record, and with what the same query
gives on a node of Apache's. Our node writes no transactions yet, but serves those that Apache's
left in a directory: these are read on both, one after the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.apache.node import ApacheNode
from tests.clients.cluster import REPLICAS, Cluster
from tests.server_process import ServerProcess
from tests.spark.connector_jars import connector_jars
from tests.spark.topics_written import CODECS, LiveTopics, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java

SECONDS_MAX = 120
PARTITIONS = 3
COLUMNS = "key binary, value binary, partition int, headers array<struct<key:string,value:binary>>"


@pytest.fixture(scope="module", autouse=True)
def jars() -> list[str]:
    """The connector, or an error that says why it is not here."""
    return connector_jars()


@pytest.fixture(scope="module")
def brokers(module_server: ServerProcess, apache_node: ApacheNode) -> list[LiveTopics]:
    """Ours, then Apache's."""
    return [LiveTopics(module_server.bootstrap), LiveTopics(apache_node.bootstrap)]


def read(spark: SparkSession, topics: LiveTopics, topic: str, **options: str) -> list[Row]:
    """What a batch query of the connector gives, by topic, partition and offset."""
    reader = spark.read.format("kafka").options(**topics.options, **options)
    return rows_of(reader.options(subscribe=topic, includeHeaders="true").load())


def rows_of(frame: DataFrame) -> list[Row]:
    """Rows of the connector in the form in which `LiveTopics` tells what it wrote."""
    return in_order(
        (
            row.topic,
            row.partition,
            row.offset,
            int(row.timestamp.timestamp() * 1000),
            octets(row.key),
            octets(row.value),
            row.headers and [(each.key, octets(each.value)) for each in row.headers],
        )
        for row in frame.collect()
    )


def octets(value: bytearray | None) -> bytes | None:
    """Bytes as they are compared."""
    return None if value is None else bytes(value)


def in_order(rows: Iterator[Row] | Sequence[Row]) -> list[Row]:
    """By topic, partition and offset."""
    return sorted(rows, key=lambda row: row[:3])


def contents(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Partition and content, without what is another on each topic: its name and the times."""
    return [(row[1], row[2], *row[4:]) for row in in_order(rows)]


def write_in_every_codec(topics: LiveTopics, topic: str, first: int = 0) -> list[Row]:
    """Some records in each codec: with and without keys, values and headers."""
    return [
        row
        for number, codec in enumerate(CODECS)
        for row in topics.write(
            topic, 60, partitions=PARTITIONS, codec=codec, first=first + 60 * number
        )
    ]


def stream_of(spark: SparkSession, topics: LiveTopics, topic: str, **options: str) -> DataFrame:
    """A stream of the connector from the topic's beginning."""
    stream = spark.readStream.format("kafka").options(**topics.options, **options)
    stream = stream.options(subscribe=topic, startingOffsets="earliest", includeHeaders="true")
    return stream.option("maxOffsetsPerTrigger", "90").load()


def run_to_the_end(frame: DataFrame, checkpoint: Path, format_name: str, **options: str) -> int:
    """Run a query until it has what is there now; return how many rows it took."""
    writer = frame.writeStream.format(format_name).options(**options)
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS_MAX)
    return sum(progress.numInputRows for progress in query.recentProgress)


def interrupt(frame: DataFrame, checkpoint: Path, sink: Path) -> None:
    """Run a query until it has taken something, and stop it where it is."""
    writer = frame.writeStream.format("parquet").option("path", str(sink))
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    deadline = time.monotonic() + SECONDS_MAX
    while not any(progress.numInputRows for progress in query.recentProgress):
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    query.stop()


def test_batch_reads_what_was_written(spark: SparkSession, brokers: list[LiveTopics]) -> None:
    found = []
    for topics in brokers:
        topic = topics.create("batch-read", PARTITIONS)
        written = write_in_every_codec(topics, topic)
        rows = read(spark, topics, topic)
        assert rows == in_order(written)
        found.append([row[1:] for row in rows])
    assert found[0] == found[1]


def test_stream_reads_on_from_its_checkpoint_behind_a_restart_of_the_node(
    spark: SparkSession,
    server_process: ServerProcess,
    apache_node: ApacheNode,
    tmp_path: Path,
) -> None:
    found = []
    for node in (server_process, apache_node):
        topics = LiveTopics(node.bootstrap)
        topic = topics.create("stream-read", PARTITIONS)
        written = write_in_every_codec(topics, topic)
        sink, checkpoint = tmp_path / topic, tmp_path / f"{topic}-checkpoint"
        interrupt(stream_of(spark, topics, topic), checkpoint, sink)
        if node is server_process:
            node.restart()
        written += write_in_every_codec(topics, topic, first=300)
        run_to_the_end(stream_of(spark, topics, topic), checkpoint, "parquet", path=str(sink))
        rows = rows_of(spark.read.parquet(str(sink)))
        assert rows == in_order(written)
        found.append([row[1:] for row in rows])
    assert found[0] == found[1]


def test_batch_writes_are_stored_in_the_codec_that_is_asked_for(
    spark: SparkSession, brokers: list[LiveTopics], module_server: ServerProcess
) -> None:
    source = brokers[0].create("source", PARTITIONS)
    rows = in_order(write_in_every_codec(brokers[0], source))
    put_in = [(row[4], row[5], row[1], row[6]) for row in rows]
    frame = spark.createDataFrame(put_in, COLUMNS).coalesce(1)
    for topics in brokers:
        sinks = {topics.create(f"sink-{codec}", PARTITIONS): codec for codec in CODECS}
        for sink, codec in sinks.items():
            writer = frame.write.format("kafka").options(**topics.options, topic=sink)
            writer.options(includeHeaders="true", **{"kafka.compression.type": codec}).save()
        found = read(spark, topics, ",".join(sinks))
        for sink in sinks:
            assert contents([row for row in found if row[0] == sink]) == contents(rows)
        if topics is brokers[0]:
            files = spark.read.format("kraftlog").options(view="batches", topics=",".join(sinks))
            stored = files.load(str(module_server.data)).select("topic", "compression", "status")
            wanted = {(sink, codec, "ok") for sink, codec in sinks.items()}
            assert {tuple(row) for row in stored.collect()} == wanted


def test_stream_writes_on_from_its_checkpoint(
    spark: SparkSession, brokers: list[LiveTopics], tmp_path: Path
) -> None:
    for topics in brokers:
        source = topics.create("stream-source", PARTITIONS)
        sink = topics.create("stream-sink", PARTITIONS)
        options = {**topics.options, "topic": sink, "includeHeaders": "true"}
        frame = stream_of(spark, topics, source).select("key", "value", "partition", "headers")
        written: list[Row] = []
        for first in (0, 300):
            written += write_in_every_codec(topics, source, first=first)
            taken = run_to_the_end(frame, tmp_path / sink, "kafka", **options)
            assert taken == 300
            assert contents(read(spark, topics, sink)) == contents(written)


def test_transactions_that_apache_left_are_read_as_on_apache(
    spark: SparkSession, tmp_path: Path
) -> None:
    apache = ApacheNode(tmp_path)
    apache.format()
    apache.start()
    try:
        topics = LiveTopics(apache.bootstrap)
        topic = topics.create("money", PARTITIONS)
        for number, codec in enumerate(CODECS):
            topics.transact(topic, abort=number % 2 == 1)
            topics.write(topic, 30, partitions=PARTITIONS, codec=codec, first=30 * number)
        waiting = topics.open_transaction(topic)
        topics.write(topic, 30, partitions=PARTITIONS, first=150)
        theirs = read_everyhow(spark, topics, topic, tmp_path / "theirs")
    finally:
        apache.stop()
    values = {name: [row[5] for row in rows] for name, rows in theirs.items()}
    assert (values["uncommitted"].count(b"aborted"), values["uncommitted"].count(b"open")) == (
        40,
        1,
    )
    assert values["committed"].count(b"committed") == 60
    assert not {b"aborted", b"open"} & set(values["committed"])
    assert theirs["stream"] == theirs["committed"]
    assert len(theirs["committed"]) == len(theirs["uncommitted"]) - 41 - 10
    with ServerProcess(tmp_path) as server:
        ours = read_everyhow(spark, LiveTopics(server.bootstrap), topic, tmp_path / "ours")
    assert ours == theirs
    del waiting


def read_everyhow(
    spark: SparkSession, topics: LiveTopics, topic: str, scratch: Path
) -> dict[str, list[Row]]:
    """The rows at both isolation levels, the committed ones by a stream too."""
    committed = {"kafka.isolation.level": "read_committed"}
    stream = stream_of(spark, topics, topic, **committed)
    run_to_the_end(stream, scratch / "checkpoint", "parquet", path=str(scratch / "rows"))
    return {
        "uncommitted": read(spark, topics, topic),
        "committed": read(spark, topics, topic, **committed),
        "stream": rows_of(spark.read.parquet(str(scratch / "rows"))),
    }


@pytest.mark.slow
def test_three_brokers_of_ours_are_read_and_written(spark: SparkSession, tmp_path: Path) -> None:
    with Cluster(tmp_path, "ours") as cluster:
        topics = LiveTopics(cluster.bootstrap)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for made in admin.create_topics(
            [NewTopic(name, PARTITIONS, REPLICAS) for name in ("source", "sink")]
        ).values():
            made.result(SECONDS_MAX)
        options = {**topics.options, "topic": "sink", "includeHeaders": "true"}
        frame = stream_of(spark, topics, "source").select("key", "value", "partition", "headers")
        written: list[Row] = []
        for first in (0, 300):
            written += write_in_every_codec(topics, "source", first=first)
            run_to_the_end(frame, tmp_path / "checkpoint", "kafka", **options)
        assert read(spark, topics, "source") == in_order(written)
        assert contents(read(spark, topics, "sink")) == contents(written)
