"""`kraftwire` reads what was written: codecs, nulls, headers, transactions, kinds of offsets."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from kraft_wire.client.cluster import ClusterRefused, ClusterSettings
from kraft_wire.client.connection import BrokerConnection, BrokerConnectionError
from kraft_wire.columnar import records_schema
from kraft_wire.model import TopicPartition
from kraft_wire.spark import PipelineError
from kraft_wire.spark.kraftwire.wire_offsets import PartitionRange, split_ranges
from kraft_wire.spark.kraftwire.wire_options import parse_wire_options
from kraft_wire.spark.kraftwire.wire_sink import parse_sink
from kraft_wire.spark.kraftwire.wire_tasks import (
    WirePartition,
    WireReader,
    input_partitions,
    read_range,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest, FetchResponse
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from kraft_wire.wire.generated.metadata import MetadataResponse
from kraft_wire.wire.message import Message
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess
from tests.spark.topics_written import CODECS, FIRST_MS, LiveTopics, Row


@pytest.fixture(scope="module")
def topics(module_server: ServerProcess) -> LiveTopics:
    """Topics of our own node."""
    return LiveTopics(module_server.bootstrap)


def read(topics: LiveTopics, **options: str) -> list[Row]:
    """All rows of a batch query, without Spark, in the order of topic, partition and offset."""
    parsed = parse_wire_options({**topics.options, **options}, streaming=False)
    reader = WireReader(parsed, records_schema(headers=True))
    rows: list[Row] = []
    for partition in reader.partitions():
        for batch in reader.read(partition):
            rows += rows_of(batch.to_pylist())
    return sorted(rows, key=lambda row: row[:3])


def rows_of(found: list[dict[str, Any]]) -> list[Row]:
    """Rows as they were written."""
    return [
        (
            row["topic"],
            row["partition"],
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            row["headers"] and [(each["key"], each["value"]) for each in row["headers"]],
        )
        for row in found
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_reads_as_it_was_written(topics: LiveTopics, codec: str) -> None:
    topic = topics.create("codec")
    written = topics.write(topic, 500, codec=codec)
    assert read(topics, subscribe=topic) == sorted(written, key=lambda row: row[:3])


def test_partition_larger_than_an_answer_is_read_in_many(topics: LiveTopics) -> None:
    topic = topics.create("large")
    written = topics.write(topic, 3000)
    found = read(topics, subscribe=topic, **{"kafka.max.partition.fetch.bytes": "5000"})
    assert found == sorted(written, key=lambda row: row[:3])


@pytest.mark.java
def test_read_committed_hides_aborted_and_open_transactions(apache_node: ApacheNode) -> None:
    topics = LiveTopics(apache_node.bootstrap)
    topic = topics.create("money", 1)
    for number in range(6):
        topics.transact(topic, abort=number % 2 == 1)
        topics.write(topic, 5, partitions=1)
    waiting = topics.open_transaction(topic)
    topics.write(topic, 3, partitions=1)
    everything = read(topics, subscribe=topic)
    committed = read(topics, subscribe=topic, **{"kafka.isolation.level": "read_committed"})
    opened = next(row[2] for row in everything if row[5] == b"open")
    wanted = [row for row in everything if row[5] != b"aborted" and row[2] < opened]
    assert committed == wanted
    assert sum(row[5] == b"aborted" for row in everything) == 60
    middle = json.dumps({topic: {"0": wanted[30][2]}})
    isolation = {"kafka.isolation.level": "read_committed"}
    assert read(topics, subscribe=topic, startingOffsets=middle, **isolation) == wanted[30:]
    waiting.abort_transaction()


def test_offsets_bound_what_is_read_inside_batches(topics: LiveTopics) -> None:
    topic = topics.create("bounds")
    topics.write(topic, 200)
    starting = json.dumps({topic: {"0": 33, "1": -2}})
    ending = json.dumps({topic: {"0": 77, "1": -1}})
    found = read(topics, subscribe=topic, startingOffsets=starting, endingOffsets=ending)
    assert [row[2] for row in found if row[1] == 0] == list(range(33, 77))
    assert [row[2] for row in found if row[1] == 1] == list(range(100))


def test_times_bound_what_is_read(topics: LiveTopics) -> None:
    topic = topics.create("times", 1)
    topics.write(topic, 50, partitions=1)
    begin, end = str(FIRST_MS + 10), str(FIRST_MS + 20)
    found = read(topics, subscribe=topic, startingTimestamp=begin, endingTimestamp=end)
    assert [row[2] for row in found] == list(range(10, 20))
    named = json.dumps({topic: {"0": FIRST_MS + 45}})
    found = read(topics, subscribe=topic, startingOffsetsByTimestamp=named)
    assert [row[2] for row in found] == list(range(45, 50))
    found = read(topics, subscribe=topic, endingOffsetsByTimestamp=named)
    assert [row[2] for row in found] == list(range(45))


def test_time_after_the_last_record_is_an_error_or_the_end(topics: LiveTopics) -> None:
    topic = topics.create("late", 1)
    topics.write(topic, 5, partitions=1)
    late = {"subscribe": topic, "startingTimestamp": str(FIRST_MS + 10**9)}
    with pytest.raises(PipelineError, match=f"startingTimestamp: {topic}-0 has no record at"):
        read(topics, **late)
    assert read(topics, **late, startingOffsetsByTimestampStrategy="latest") == []
    assert len(read(topics, subscribe=topic, endingTimestamp=str(FIRST_MS + 10**9))) == 5


def test_topics_are_chosen_by_list_pattern_and_partition(topics: LiveTopics) -> None:
    first, second = topics.create("chosen-a"), topics.create("chosen-b")
    for topic in (first, second):
        topics.write(topic, 20)
    assert len(read(topics, subscribe=f"{first}, {second}")) == 40
    assert {row[0] for row in read(topics, subscribePattern=f"{first[:-2]}.*")} == {first}
    assert read(topics, subscribePattern="chosen") == [], "the pattern is about the whole name"
    found = read(topics, assign=json.dumps({first: [1]}))
    assert {row[:2] for row in found} == {(first, 1)}


@pytest.mark.parametrize(("start", "gone"), [(12, 12), (0, 10)])
def test_offset_that_is_gone_is_data_loss(topics: LiveTopics, start: int, gone: int) -> None:
    topic = topics.create("gone", 1)
    topics.write(topic, 10, partitions=1)
    part = PartitionRange(TopicPartition(topic, 0), start, 15)
    for flag in ("true", "false"):
        given = {**topics.options, "subscribe": topic, "failOnDataLoss": flag}
        given["kafkaConsumer.pollTimeoutMs"] = "300"
        options = parse_wire_options(given, streaming=False)
        if flag == "true":
            with pytest.raises(PipelineError, match=rf"{topic}-0: offset {gone} does not exist"):
                list(read_range(part, options, records_schema()))
        else:
            batches = read_range(part, options, records_schema())
            assert sum(batch.num_rows for batch in batches) == max(10 - start, 0)


def test_what_follows_deleted_offsets_is_read(topics: LiveTopics) -> None:
    topic = topics.create("deleted", 1)
    topics.write(topic, 10, partitions=1)
    topics.delete_before(topic, 4)
    part = PartitionRange(TopicPartition(topic, 0), 0, 10)
    given = {**topics.options, "subscribe": topic, "failOnDataLoss": "false"}
    options = parse_wire_options(given, streaming=False)
    batches = read_range(part, options, records_schema())
    offsets = [offset for batch in batches for offset in batch["offset"].to_pylist()]
    assert offsets == list(range(4, 10)), "though the batch that they stand in has those before too"


@pytest.mark.parametrize("read_committed", ["read_uncommitted", "read_committed"])
def test_byte_that_changed_on_the_way_is_named_with_its_offset(
    topics: LiveTopics, monkeypatch: pytest.MonkeyPatch, read_committed: str
) -> None:
    topic, answer = topics.create("changed", 1), BrokerConnection.answer
    topics.write(topic, 10, partitions=1)

    def changed(self: BrokerConnection, response: type[Message]) -> Message:
        given = answer(self, response)
        if isinstance(given, FetchResponse):
            data = given.responses[0].partitions[0]
            spoilt = bytearray(data.records or b"")
            spoilt[-1] ^= 1
            data.records = memoryview(spoilt)
        return given

    monkeypatch.setattr(BrokerConnection, "answer", changed)
    options = {"subscribe": topic, "kafka.isolation.level": read_committed}
    with pytest.raises(PipelineError, match=rf"{topic}-0 offset \d+: .* has a wrong checksum"):
        read(topics, **options)


def test_log_that_has_an_offset_after_all_is_asked_again(
    topics: LiveTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create("after-all", 1)
    topics.write(topic, 10, partitions=1)
    answer, fetches = BrokerConnection.answer, 0

    def out_of_range_once(connection: BrokerConnection, response: Any) -> Any:
        nonlocal fetches
        found = answer(connection, response)
        if isinstance(found, FetchResponse):
            fetches += 1
            if fetches == 1:
                found.responses[0].partitions[0].error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        return found

    monkeypatch.setattr(BrokerConnection, "answer", out_of_range_once)
    assert len(read(topics, subscribe=topic, failOnDataLoss="false")) == 10
    assert fetches > 1


def test_tasks_are_split_as_the_connector_splits_them() -> None:
    keys = [TopicPartition("t", n) for n in range(3)]
    ranges = [PartitionRange(keys[0], 0, 0), PartitionRange(keys[1], 10, 20)]
    ranges.append(PartitionRange(keys[2], 0, 100))
    assert split_ranges(ranges, None, None) == ranges[1:]
    assert split_ranges(ranges, 2, None) == ranges[1:]
    parts = split_ranges(ranges, 5, None)
    assert parts == [
        ranges[1],
        *(PartitionRange(keys[2], start, start + 25) for start in range(0, 100, 25)),
    ]
    by_size = split_ranges(ranges, None, 33)
    assert by_size[0] == ranges[1]
    assert [each.end - each.start for each in by_size[1:]] == [25, 25, 25, 25]


@pytest.mark.parametrize(("seconds", "planned"), [("1000", 1.0), ("60000", 15.0)])
def test_planning_waits_a_quarter_of_a_minute_at_most(
    monkeypatch: pytest.MonkeyPatch, seconds: str, planned: float
) -> None:
    """A query that waits for long shows no progress; the tasks may wait as long as is said."""
    asked: list[ClusterSettings] = []

    def client(settings: ClusterSettings) -> NoReturn:
        asked.append(settings)
        raise ClusterRefused("enough")

    monkeypatch.setattr("kraft_wire.spark.kraftwire.wire_tasks.ClusterClient", client)
    options = parse_wire_options(
        {
            "kafka.bootstrap.servers": "a:1",
            "subscribe": "t",
            "kafka.default.api.timeout.ms": seconds,
        },
        streaming=False,
    )
    assert options.cluster.deadline_seconds == int(seconds) / 1000
    with pytest.raises(PipelineError, match="enough"):
        WireReader(options, records_schema(headers=True)).partitions()
    assert [each.deadline_seconds for each in asked] == [planned]


@pytest.mark.parametrize(
    ("option", "value", "sizes"),
    [
        ("minPartitions", "5", [20, 20, 20, 20, 20]),
        ("maxRecordsPerPartition", "40", [33, 33, 34]),
    ],
)
def test_options_say_how_tasks_are_split(option: str, value: str, sizes: list[int]) -> None:
    options = parse_wire_options(
        {"kafka.bootstrap.servers": "a:1", "subscribe": "t", option: value}, streaming=False
    )
    tasks = input_partitions([PartitionRange(TopicPartition("t", 0), 0, 100)], options)
    parts = [task.part for task in tasks if isinstance(task, WirePartition) and task.part]
    assert sorted(part.end - part.start for part in parts) == sizes


def test_no_more_tasks_are_made_than_there_are_records() -> None:
    wanted = [PartitionRange(TopicPartition("t", 0), at, at + 1) for at in range(5, 12)]
    whole = PartitionRange(TopicPartition("t", 0), 5, 12)
    assert split_ranges([whole], 10**12, None) == wanted
    assert split_ranges([whole], None, 1) == wanted


@pytest.mark.parametrize(
    ("given", "option"),
    [((10**12, None), "minPartitions: 1000000000000"), ((None, 1), "maxRecordsPerPartition: 1")],
)
def test_more_tasks_than_anybody_can_run_are_refused_in_one_line(
    given: tuple[int | None, int | None], option: str
) -> None:
    """They would be made on the driver, one by one."""
    large = [PartitionRange(TopicPartition("t", n), 0, 10**9) for n in range(3)]
    message = f"^option {option} makes 3000000000 tasks of what is read, at most 1000000 are made$"
    with pytest.raises(PipelineError, match=message):
        split_ranges(large, *given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of the options subscribe, subscribePattern, assign"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "exclude one another"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribe": "a", "startingOffsets": "latest"}, "batch query cannot begin at latest"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":-1}}'}, "latest for a-0"),
        ({"subscribe": "a", "endingOffsets": "earliest"}, "cannot end at earliest"),
        ({"subscribe": "a", "endingOffsets": '{"a":{"0":-2}}'}, "earliest for a-0"),
        ({"subscribe": "a", "startingOffsets": "7"}, "neither earliest nor latest nor JSON"),
        ({"subscribe": "a", "minPartitions": "0"}, "is not a number of 1 or more"),
        ({"subscribe": "a", "subscribed": "b"}, "option 'subscribed' does not exist"),
        ({"subscribe": "a", "kafka.auto.offset.reset": "earliest"}, "is not supported"),
        ({"subscribe": "a", "kafka.enable.auto.commit": "true"}, "is not supported"),
        ({"subscribe": "a", "kafka.security.protocol": "TLS"}, "use PLAINTEXT, SSL, "),
        ({"subscribe": "a", "kafka.isolation.level": "dirty"}, "kafka.isolation.level: 'dirty'"),
        ({"subscribe": "a", "kafka.fetch.max.byte": "1"}, "'kafka.fetch.max.byte' does not exist"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"}, "more than"),
        ({"subscribe": "a", "maxTriggerDelay": "soon"}, "not a duration"),
        ({"subscribe": "a", "kafka.fetch.max.bytes": str(1 << 31)}, "bytes: '2147483648' is"),
        ({"subscribe": "a", "startingTimestamp": str(1 << 63)}, "is more than 9223372036854775807"),
        ({"subscribe": "a", "startingOffsets": f'{{"a":{{"0":{1 << 63}}}}}'}, "a-0 at 922"),
    ],
)
def test_wrong_option_is_refused_in_one_line_that_names_it(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(PipelineError, match=message) as caught:
        parse_wire_options({"kafka.bootstrap.servers": "h:1", **options}, streaming=False)
    assert "\n" not in str(caught.value)


def test_least_and_most_of_a_trigger_may_be_the_same() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    limits = {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "5"}
    parse_wire_options(given | limits, streaming=True)
    with pytest.raises(PipelineError, match="5 is more than maxOffsetsPerTrigger 4"):
        parse_wire_options(given | limits | {"maxOffsetsPerTrigger": "4"}, streaming=True)


WRONG_ADDRESSES = ["h:", "h:none", "h:0", "h:65536", "h:1;i:2", "h:1 i:2", "x://h:1", "[::1"]


@pytest.mark.parametrize("address", WRONG_ADDRESSES)
@pytest.mark.parametrize("others", ["{}", "good:9092,{}", "{} , good:9092"])
def test_malformed_broker_is_refused_at_once_by_who_reads_and_who_writes(
    address: str, others: str
) -> None:
    """It was asked for until a deadline of a minute, and that of a write of two."""
    given = {"kafka.bootstrap.servers": others.format(address)}
    message = (
        rf"^option kafka.bootstrap.servers: '{re.escape(address)}' is not an address host:port$"
    )
    with pytest.raises(PipelineError, match=message):
        parse_wire_options({**given, "subscribe": "a"}, streaming=False)
    with pytest.raises(PipelineError, match=message):
        parse_sink({**given, "topic": "a"}, StructType([StructField("value", BinaryType())]))


def test_every_form_of_address_is_taken() -> None:
    text = "h, a-b.example:1,my_host:9092,127.0.0.1:65535,[::1]:9092,[fe80::1%eth0]:1"
    given = {"kafka.bootstrap.servers": text, "subscribe": "a"}
    parsed = parse_wire_options(given, streaming=False)
    assert parsed.cluster.bootstrap == tuple(each.strip() for each in text.split(","))


def test_what_the_connector_refuses_for_streams_is_refused() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a"}
    assert parse_wire_options(given, streaming=True).starting.word == "latest"
    with pytest.raises(PipelineError, match="endingOffsets is not for streams"):
        parse_wire_options(given | {"endingOffsets": "latest"}, streaming=True)
    with pytest.raises(PipelineError, match=r"kafka\.bootstrap\.servers is missing"):
        parse_wire_options({"subscribe": "a"}, streaming=True)


def test_trigger_may_wait_for_nothing() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a"}
    assert parse_wire_options(given, streaming=True).trigger_delay_ms == 900_000
    at_once = given | {"maxTriggerDelay": "0s"}
    assert parse_wire_options(at_once, streaming=True).trigger_delay_ms == 0


def test_what_does_not_exist_is_named(topics: LiveTopics) -> None:
    with pytest.raises(PipelineError, match=r"^topic 'nowhere' does not exist at 127\.0\.0\.1:"):
        read(topics, subscribe="nowhere")
    topic = topics.create("named")
    with pytest.raises(PipelineError, match=f"assign: {topic}-7 does not exist"):
        read(topics, assign=json.dumps({topic: [0, 7]}))
    with pytest.raises(PipelineError, match=f"startingOffsets: {topic}-1 is read too"):
        read(topics, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 1}}))
    nobody = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "300"}
    with pytest.raises(PipelineError, match=r"cannot connect to 127\.0\.0\.1:1"):
        read(topics, subscribe=topic, **nobody)


def test_answer_counts_although_the_next_request_cannot_go_out(
    topics: LiveTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create("ahead", 1)
    for first in range(0, 100, 10):
        topics.write(topic, 10, partitions=1, first=first)
    post, fetches = BrokerConnection.post, 0

    def lost_now_and_then(
        connection: BrokerConnection, request: Message, *, version: int | None = None
    ) -> None:
        nonlocal fetches
        fetches += isinstance(request, FetchRequest)
        if isinstance(request, FetchRequest) and fetches % 3 == 2:
            raise BrokerConnectionError("lost")
        post(connection, request, version=version)

    monkeypatch.setattr(BrokerConnection, "post", lost_now_and_then)
    found = read(topics, subscribe=topic, **{"kafka.max.partition.fetch.bytes": "100"})
    assert fetches > 10
    assert [row[2] for row in found] == list(range(100))


def test_what_was_not_asked_for_is_no_answer_and_what_is_left_out_is_asked_for_again(
    topics: LiveTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, answer = topics.create("strange", 1), BrokerConnection.answer
    topics.write(topic, 10, partitions=1)
    lacking = {ListOffsetsResponse: 2, MetadataResponse: 2}

    def strange(self: BrokerConnection, response: type[Message]) -> Message:
        given = answer(self, response)
        if isinstance(given, (ListOffsetsResponse, MetadataResponse)) and given.topics:
            lacking[response] -= 1
            kept = given.topics if lacking[response] < 0 else []
            twin = copy.copy(given.topics[0])
            twin.name = "other"
            given.topics = [twin, *kept]
        return given

    monkeypatch.setattr(BrokerConnection, "answer", strange)
    assert len(read(topics, subscribe=topic)) == 10
    lacking[MetadataResponse] = 10_000
    with pytest.raises(PipelineError, match=f"^topic '{topic}' does not exist at"):
        read(topics, subscribe=topic)


def test_leader_that_moved_is_found(topics: LiveTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node stands for two brokers: by its other name it says that it leads no more."""
    topic, other, has_moved = topics.create("moved", 1), 99, False
    topics.write(topic, 10, partitions=1)
    answer = BrokerConnection.answer

    def of_two(self: BrokerConnection, response: type[Message]) -> Message:
        nonlocal has_moved
        given = answer(self, response)
        if isinstance(given, MetadataResponse):
            twin = copy.copy(given.brokers[0])
            twin.node_id, twin.host = other, "localhost"
            given.brokers.append(twin)
            if not has_moved and given.topics:
                given.topics[0].partitions[0].leader_id = other
        elif isinstance(given, FetchResponse) and self._address.startswith("localhost"):
            has_moved = True
            data = given.responses[0].partitions[0]
            data.error_code, data.records = ErrorCode.NOT_LEADER_OR_FOLLOWER, None
        return given

    monkeypatch.setattr(BrokerConnection, "answer", of_two)
    assert len(read(topics, subscribe=topic, **{"kafkaConsumer.pollTimeoutMs": "3000"})) == 10
    assert has_moved


def test_broker_that_restarts_while_it_is_read_costs_nothing(
    server_process: ServerProcess, tmp_path: Path
) -> None:
    topics = LiveTopics(server_process.bootstrap)
    topic = topics.create("restart", 1)
    written = topics.write(topic, 2000, partitions=1)
    given = {**topics.options, "subscribe": topic, "kafka.max.partition.fetch.bytes": "4000"}
    options = parse_wire_options(given, streaming=False)
    part = PartitionRange(TopicPartition(topic, 0), 0, 2000)
    batches: Iterator[Any] = read_range(part, options, records_schema())
    offsets = next(batches)["offset"].to_pylist()
    server_process.kill()
    server_process.start()
    for batch in batches:
        offsets += batch["offset"].to_pylist()
    assert offsets == [row[2] for row in written]
