"""Streams of `kraftwire`: offsets, limits, growth, loss, and going on after a `kill -9`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.columnar import RECORDS
from kraft_wire.model import TopicPartition
from kraft_wire.spark import PipelineError
from kraft_wire.spark.kraftwire.wire_offsets import prorated
from kraft_wire.spark.kraftwire.wire_options import parse_wire_options
from kraft_wire.spark.kraftwire.wire_stream import WireStreamReader
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from kraft_wire.wire.generated.metadata import MetadataResponse
from kraft_wire.wire.message import Message
from tests.process import end
from tests.server_process import ServerProcess
from tests.spark.topics_written import LiveTopics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS_MAX = 120
Readers = Callable[..., WireStreamReader]


@pytest.fixture(scope="module")
def topics(module_server: ServerProcess) -> LiveTopics:
    """Topics of our own node."""
    return LiveTopics(module_server.bootstrap)


@pytest.fixture
def reader_of(topics: LiveTopics) -> Iterator[Readers]:
    """What makes a reader of a topic as Spark makes one, and stops it in the end."""
    readers: list[WireStreamReader] = []

    def make(topic: str, **options: str) -> WireStreamReader:
        given = {**topics.options, "subscribe": topic, "startingOffsets": "earliest", **options}
        readers.append(WireStreamReader(parse_wire_options(given, streaming=True), RECORDS))
        return readers[-1]

    yield make
    for reader in readers:
        reader.stop()


def between(
    reader: WireStreamReader, start: dict[str, Any], stop: dict[str, Any]
) -> list[tuple[int, int]]:
    """Partition and offset of every record between two offsets."""
    found: list[tuple[int, int]] = []
    for task in reader.partitions(start=start, end=stop):
        for batch in reader.read(task):
            columns = batch["partition"].to_pylist(), batch["offset"].to_pylist()
            found += zip(*columns, strict=True)
    return sorted(found)


def test_each_trigger_reads_what_was_written_since(topics: LiveTopics, reader_of: Readers) -> None:
    topic = topics.create("since")
    reader = reader_of(topic)
    start = reader.initialOffset()
    assert start == {topic: {"0": 0, "1": 0}}
    topics.write(topic, 100)
    first = reader.latestOffset(start=start, limit=ReadAllAvailable())
    assert first == {topic: {"0": 50, "1": 50}}
    assert reader.latestOffset(start=first, limit=ReadAllAvailable()) == first
    assert reader.partitions(start=first, end=first) == []
    topics.write(topic, 10)
    second = reader.latestOffset(start=first, limit=ReadAllAvailable())
    assert reader.reportLatestOffset() == second
    fresh = reader_of(topic)
    assert between(fresh, first, second) == [(p, 50 + n) for p in (0, 1) for n in range(5)]
    assert len(between(fresh, start, first)) == 100


def test_stream_without_a_start_begins_at_the_end(topics: LiveTopics, reader_of: Readers) -> None:
    topic = topics.create("end")
    topics.write(topic, 10)
    reader = reader_of(topic, startingOffsets="latest")
    assert reader.initialOffset() == {topic: {"0": 5, "1": 5}}
    named = json.dumps({topic: {"0": 2, "1": -2}})
    reader = reader_of(topic, startingOffsets=named)
    assert reader.initialOffset() == {topic: {"0": 2, "1": 0}}


def test_stream_from_the_end_begins_where_its_first_micro_batch_ends(
    topics: LiveTopics, reader_of: Readers
) -> None:
    topic = topics.create("moving")
    topics.write(topic, 10)
    reader = reader_of(topic, startingOffsets="latest")
    start = reader.initialOffset()
    topics.write(topic, 10)
    first = reader.latestOffset(start=start, limit=ReadAllAvailable())
    assert first == start == reader.initialOffset()
    second = reader.latestOffset(start=first, limit=ReadAllAvailable())
    assert between(reader, first, second) == [(p, 5 + n) for p in (0, 1) for n in range(5)]

    killed_in_the_first = reader_of(topic, startingOffsets="latest")
    topics.grow(topic, 3)
    start = killed_in_the_first.initialOffset()
    third = {topic: {**second[topic], "2": 0}}
    assert start == third
    assert killed_in_the_first.partitions(start=start, end=first) == []
    assert killed_in_the_first.latestOffset(start=first, limit=ReadAllAvailable()) == third
    with pytest.raises(PipelineError, match=rf"{topic}-0 ended at 10 and now ends at 5"):
        killed_in_the_first.partitions(start=second, end=first)


def test_query_from_the_end_finds_nothing_available_now(
    topics: LiveTopics, reader_of: Readers
) -> None:
    topic = topics.create("nothing")
    reader = reader_of(topic, startingOffsets="latest")
    reader.prepareForTriggerAvailableNow()
    topics.write(topic, 10)
    start = reader.initialOffset()
    assert start == {topic: {"0": 5, "1": 5}}
    for _ in range(2):
        assert reader.latestOffset(start=start, limit=ReadAllAvailable()) == start


def test_partitions_that_appear_are_read_from_their_beginning(
    topics: LiveTopics, reader_of: Readers
) -> None:
    topic = topics.create("grown", 1)
    topics.write(topic, 10, partitions=1)
    reader = reader_of(topic)
    start = reader.latestOffset(start=reader.initialOffset(), limit=ReadAllAvailable())
    topics.grow(topic, 3)
    topics.write(topic, 9, partitions=3)
    stop = reader.latestOffset(start=start, limit=ReadAllAvailable())
    assert stop == {topic: {"0": 13, "1": 3, "2": 3}}
    assert len(between(reader, start, stop)) == 9
    limited = reader.latestOffset(start=start, limit=ReadMaxRows(3))
    assert limited == {topic: {"0": 11, "1": 1, "2": 1}}


def test_leader_that_is_gone_from_the_cluster_is_asked_for_anew(
    topics: LiveTopics, reader_of: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create("leader")
    topics.write(topic, 10)
    send, other = BrokerConnection.send, 99
    is_there = True

    def with_another(
        connection: BrokerConnection, request: Message, response: Any, *, version: int | None = None
    ) -> Any:
        answer = send(connection, request, response, version=version)
        if isinstance(answer, MetadataResponse) and is_there:
            twin = copy(answer.brokers[0])
            twin.node_id, twin.host = other, "localhost"
            answer.brokers.append(twin)
            for each in answer.topics:
                each.partitions[1].leader_id = other
        return answer

    monkeypatch.setattr(BrokerConnection, "send", with_another)
    reader = reader_of(topic)
    start = reader.initialOffset()
    is_there = False
    assert reader.latestOffset(start=start, limit=ReadAllAvailable()) == {topic: {"0": 5, "1": 5}}


def test_end_that_is_behind_for_a_moment_is_asked_for_again(
    topics: LiveTopics, reader_of: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new leader's high watermark may lie before the one that readers were told (KIP-207)."""
    topic = topics.create("behind", 1)
    topics.write(topic, 10, partitions=1)
    reader, answer, asked = reader_of(topic), BrokerConnection.answer, 0

    def behind_once(connection: BrokerConnection, response: type[Message]) -> Message:
        nonlocal asked
        given = answer(connection, response)
        if isinstance(given, ListOffsetsResponse):
            asked += 1
            given.topics[0].partitions[0].offset -= 4 if asked == 1 else 0
        return given

    monkeypatch.setattr(BrokerConnection, "answer", behind_once)
    start = {topic: {"0": 10}}
    assert reader.latestOffset(start=start, limit=ReadAllAvailable()) == start
    assert asked == 2


def test_limit_is_shared_out_by_backlog_and_never_starves() -> None:
    ends = {TopicPartition("a", n): 10 ** (n + 1) for n in range(4)}
    reached = prorated(dict.fromkeys(ends, 0), ends, 100, lambda keys: dict.fromkeys(keys, 0))
    assert list(reached.values()) == [1, 1, 9, 90]
    new = prorated({}, ends, 100, lambda keys: dict.fromkeys(keys, 5))
    assert new[TopicPartition("a", 0)] == 6
    assert prorated(ends, ends, 100, dict.fromkeys) == ends


def test_too_little_waits_for_more_or_for_the_delay(topics: LiveTopics, reader_of: Readers) -> None:
    topic = topics.create("little", 1)
    topics.write(topic, 5, partitions=1)
    options = {"minOffsetsPerTrigger": "20", "maxTriggerDelay": "1h"}
    reader = reader_of(topic, **options)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(20)
    start = reader.latestOffset(start=reader.initialOffset(), limit=limit)
    assert start == {topic: {"0": 5}}, "the first trigger waits for nothing"
    topics.write(topic, 19, partitions=1)
    assert reader.latestOffset(start=start, limit=limit) == start
    topics.write(topic, 1, partitions=1)
    assert reader.latestOffset(start=start, limit=limit) == {topic: {"0": 25}}
    both = reader_of(topic, maxOffsetsPerTrigger="30", **options)
    assert both.getDefaultReadLimit() == ReadMaxRows(30)
    assert both.latestOffset(start=start, limit=ReadMaxRows(30)) == {topic: {"0": 25}}
    assert both.latestOffset(start=start | {topic: {"0": 20}}, limit=ReadMaxRows(30)) == {
        topic: {"0": 20}
    }


def test_query_that_reads_what_is_available_now_ends_there(
    topics: LiveTopics, reader_of: Readers
) -> None:
    topic = topics.create("now", 1)
    topics.write(topic, 10, partitions=1)
    reader = reader_of(topic, minOffsetsPerTrigger="1000")
    reader.prepareForTriggerAvailableNow()
    topics.write(topic, 10, partitions=1)
    start = reader.initialOffset()
    for _ in range(2):
        assert reader.latestOffset(start=start, limit=ReadMinRows(1000)) == {topic: {"0": 10}}
    assert reader.reportLatestOffset() == {topic: {"0": 20}}


def test_what_was_lost_is_named_or_passed_over(
    topics: LiveTopics, reader_of: Readers, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = topics.create("lost", 2)
    topics.write(topic, 10)
    start, stop = {topic: {"0": 9, "1": 0}}, {topic: {"0": 5, "1": 5}}
    reader = reader_of(topic)
    with pytest.raises(PipelineError, match=rf"{topic}-0 ended at 9 and now ends at 5; set fail"):
        reader.partitions(start=start, end=stop)
    with pytest.raises(PipelineError, match=rf"{topic}-2 does not exist any more"):
        reader.partitions(start={topic: {"2": 1}}, end=stop)
    forgiving = reader_of(topic, failOnDataLoss="false")
    assert len(between(forgiving, start, stop)) == 5
    assert f"kraftwire: {topic}-0 ended at 9" in capfd.readouterr().err


@pytest.mark.java
def test_query_that_was_killed_reads_every_offset_once(
    topics: LiveTopics, spark: SparkSession, tmp_path: Path
) -> None:
    topic = topics.create("killed")
    topics.write(topic, 3000)
    work = [topics.bootstrap, topic, str(tmp_path / "sink"), str(tmp_path / "checkpoint")]
    command = [sys.executable, "-m", "tests.spark.wire_query", *work]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + SECONDS_MAX
    commits = tmp_path / "checkpoint" / "commits"
    while not commits.exists() or len(list(commits.glob("[0-9]*"))) < 2:
        assert process.poll() is None, "the query ended before it was killed"
        assert time.monotonic() < deadline, "no micro-batch came"
        time.sleep(0.05)
    end(process, signal.SIGKILL, SECONDS_MAX)
    topics.grow(topic, 3)
    topics.write(topic, 300, partitions=3)
    from tests.spark.wire_query import start_query

    query = start_query(spark, *work, per_trigger=1000)
    assert query.awaitTermination(SECONDS_MAX)
    rows = spark.read.parquet(str(tmp_path / "sink")).select("partition", "offset").collect()
    found = sorted((row.partition, row.offset) for row in rows)
    ends = {0: 1600, 1: 1600, 2: 100}
    assert found == [(number, n) for number, count in ends.items() for n in range(count)]


@pytest.mark.java
def test_topic_becomes_another_topic_through_both_formats(
    topics: LiveTopics, spark: SparkSession, tmp_path: Path
) -> None:
    source, sink = topics.create("source"), topics.create("sink", 3)
    written = topics.write(source, 300)
    stream = spark.readStream.format("kraftwire").options(**topics.options)
    frame = stream.option("subscribe", source).option("startingOffsets", "earliest").load()
    writer = frame.select("key", "value").writeStream.format("kraftwire")
    query = (
        writer.options(**topics.options)
        .option("topic", sink)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(SECONDS_MAX)
    batch = spark.read.format("kraftwire").options(**topics.options).option("subscribe", sink)
    batch.load().select("key", "value").write.format("kraftwire").mode("append").options(
        **topics.options, topic=sink
    ).save()
    rows = [(row.key, row.value) for row in batch.load().collect()]
    wanted = [(row[4], row[5]) for row in written for _ in range(2)]

    def order(row: tuple[bytes | None, bytes | None]) -> tuple[bytes, bytes]:
        return (bytes(row[0] or b""), bytes(row[1] or b""))

    assert sorted(map(order, rows)) == sorted(map(order, wanted))
