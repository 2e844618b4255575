"""`kraftwire` stores once what it sends twice, puts keys where Kafka does, and names faults.

What arrived is read by librdkafka; where keys belong is decided by its `murmur2` partitioner.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.columnar.schemas import HEADERS_TYPE
from kraft_wire.spark import PipelineError
from kraft_wire.spark.kraftwire.wire_sink import parse_sink, write_batches
from kraft_wire.wire.generated.produce import ProduceRequest, ProduceResponse
from kraft_wire.wire.message import Message
from tests.server_process import ServerProcess
from tests.spark.topics_written import CODECS, LiveTopics

COLUMNS = "key binary, value binary"
SECONDS_MAX = 60
_PAIR = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES: dict[str, DataType] = {
    "binary": BinaryType(),
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "headers": ArrayType(_PAIR),
}


@pytest.fixture(scope="module")
def topics(module_server: ServerProcess) -> LiveTopics:
    """Topics of our own node."""
    return LiveTopics(module_server.bootstrap)


def schema(columns: str) -> StructType:
    """Columns as `name type, name type`, without a session that would parse them."""
    fields = [each.split() for each in columns.split(", ")]
    return StructType([StructField(name, _TYPES[kind]) for name, kind in fields])


def batch(**columns: list[Any]) -> pa.RecordBatch:
    """Rows as Spark hands them over."""
    types = {"topic": pa.string(), "partition": pa.int32(), "headers": HEADERS_TYPE}
    arrays = [pa.array(column, types.get(name, pa.binary())) for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def write(topics: LiveTopics, columns: str, *batches: pa.RecordBatch, **options: str) -> int:
    """Write rows as one task does."""
    sink = parse_sink({**topics.options, **options}, schema(columns))
    return write_batches(sink, iter(batches))


def arrived(topics: LiveTopics, topic: str, partitions: int, count: int) -> list[Any]:
    """The messages of a topic, as librdkafka reads them."""
    consumer = Consumer(
        {"bootstrap.servers": topics.bootstrap, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[Any] = []
    while len(found) < count:
        messages = consumer.consume(count, SECONDS_MAX if len(found) < count else 0)
        assert messages, f"{len(found)} of {count} came"
        assert not any(message.error() for message in messages)
        found += messages
    low_high = [
        consumer.get_watermark_offsets(TopicPartition(topic, number), SECONDS_MAX)
        for number in range(partitions)
    ]
    consumer.close()
    assert sum(high - low for low, high in low_high) == count, "nothing is there twice"
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_by_another_client(topics: LiveTopics, codec: str) -> None:
    topic = topics.create("codec", 1)
    rows = [(b"k%d" % n if n % 3 else None, b"v%d" % n * 20 if n % 5 else None) for n in range(500)]
    keys, values = map(list, zip(*rows, strict=True))
    options = {"topic": topic, "kafka.compression.type": codec, "kafka.batch.size": "2000"}
    assert write(topics, COLUMNS, batch(key=keys, value=values), **options) == 500
    found = arrived(topics, topic, 1, 500)
    assert [(each.key(), each.value()) for each in found] == rows


@pytest.mark.parametrize("acks", ["all", "1"])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_batches_that_a_topic_finds_too_large_are_written_in_smaller_ones(
    topics: LiveTopics, codec: str, acks: str
) -> None:
    """As Apache's producer splits them; by size of batches the defaults of both differ."""
    topic = topics.create("small", 1, max_message_bytes="3000")
    random_source = random.Random(3)
    rows = [
        (b"k%d" % n, random_source.randbytes(random_source.randrange(500))) for n in range(2000)
    ]
    keys, values = map(list, zip(*rows, strict=True))
    options = {"topic": topic, "kafka.compression.type": codec, "kafka.acks": acks}
    headers = [[{"key": "h", "value": b"%d" % n}] for n in range(2000)]
    columns = f"{COLUMNS}, headers headers"
    several = batch(key=keys, value=values, headers=headers)
    assert write(topics, columns, several, **options) == 2000
    found = arrived(topics, topic, 1, 2000)
    assert [(each.key(), each.value()) for each in found] == rows
    assert [each.headers() for each in found] == [[("h", b"%d" % n)] for n in range(2000)]


def test_headers_partition_and_topic_come_from_their_columns(topics: LiveTopics) -> None:
    first, second = topics.create("first"), topics.create("second")
    rows = batch(
        value=[b"a", b"b", b"c"],
        topic=[first, second, second],
        partition=[1, 0, 1],
        headers=[[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, []],
    )
    columns = "value binary, topic string, partition int, headers headers"
    assert write(topics, columns, rows) == 3
    [message] = arrived(topics, first, 2, 1)
    assert (message.partition(), message.headers()) == (1, [("h", b"1"), ("h", None)])
    found = {(each.partition(), each.value()) for each in arrived(topics, second, 2, 2)}
    assert found == {(0, b"b"), (1, b"c")}


def test_topic_that_comes_behind_many_rows_of_another_is_written(topics: LiveTopics) -> None:
    first, second = topics.create("many", 1), topics.create("late", 1)
    rows = batch(value=[b"v" * 1000] * 2000 + [b"x"], topic=[first] * 2000 + [second])
    assert write(topics, "value binary, topic string", rows) == 2001
    assert len(arrived(topics, first, 1, 2000)) == 2000
    assert [each.value() for each in arrived(topics, second, 1, 1)] == [b"x"]


def test_keys_go_where_the_default_partitioner_puts_them(topics: LiveTopics) -> None:
    ours, theirs = topics.create("ours", 7), topics.create("theirs", 7)
    random_source = random.Random(7)
    keys = [random_source.randbytes(random_source.randrange(40)) for _ in range(300)]
    write(topics, COLUMNS, batch(key=keys, value=[b""] * 300).slice(1), topic=ours)
    write(topics, COLUMNS, batch(key=keys[:1], value=[b""]), topic=ours)
    producer = topics.producer(partitioner="murmur2")
    for key in keys:
        producer.produce(theirs, b"", key)
    producer.flush(SECONDS_MAX)
    places = [
        {each.key(): each.partition() for each in arrived(topics, topic, 7, 300) if each.key()}
        for topic in (ours, theirs)
    ]
    assert places[0] == places[1]


def test_records_without_a_key_are_spread_batch_by_batch(topics: LiveTopics) -> None:
    topic = topics.create("spread", 3)
    rows = batch(value=[b"v" * 100] * 600)
    write(topics, "value binary", rows, topic=topic, **{"kafka.batch.size": "5000"})
    found = arrived(topics, topic, 3, 600)
    assert {each.partition() for each in found} == {0, 1, 2}


def test_broker_that_restarts_meanwhile_stores_every_record_once(
    server_process: ServerProcess,
) -> None:
    topics = LiveTopics(server_process.bootstrap)
    topic = topics.create("once", 2)

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(30):
            if number in (10, 20):
                server_process.kill()
                server_process.start()
            yield batch(key=[b"%d" % n for n in range(100)], value=[b"%d" % number] * 100)

    sink = parse_sink(
        {**topics.options, "topic": topic, "kafka.batch.size": "1000"}, schema(COLUMNS)
    )
    assert write_batches(sink, batches()) == 3000
    found = [(each.key(), each.value()) for each in arrived(topics, topic, 2, 3000)]
    assert len(set(found)) == 3000


def test_batch_that_was_refused_for_now_is_sent_again_as_it_was(
    topics: LiveTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker refuses the first of them: it is sent under the name of a topic that is not."""
    post, answer = BrokerConnection.post, BrokerConnection.answer
    topic, sent = topics.create("refused", 1), []

    def astray(self: BrokerConnection, request: Message, *, version: int | None = None) -> None:
        if isinstance(request, ProduceRequest):
            sent.append(bytes(request.topic_data[0].partition_data[0].records or b""))
            request.topic_data[0].name = topic if len(sent) > 1 else "nowhere"
        post(self, request, version=version)

    def named(self: BrokerConnection, response: type[Message]) -> Message:
        given = answer(self, response)
        if isinstance(given, ProduceResponse):
            given.responses[0].name = topic
        return given

    monkeypatch.setattr(BrokerConnection, "post", astray)
    monkeypatch.setattr(BrokerConnection, "answer", named)
    rows = batch(value=[b"%d" % number for number in range(500)])
    options = {"topic": topic, "kafka.batch.size": "1000"}
    assert write(topics, "value binary", rows, **options) == 500
    assert sent[0] == sent[1]
    found = arrived(topics, topic, 1, 500)
    assert [each.value() for each in found] == [b"%d" % number for number in range(500)]


@pytest.mark.parametrize("acks", ["all", "1"])
def test_answer_that_names_a_partition_twice_acknowledges_one_batch(
    topics: LiveTopics, monkeypatch: pytest.MonkeyPatch, acks: str
) -> None:
    """Or the next batch would count as stored, which nobody has."""
    real = BrokerConnection.answer

    def doubled(self: BrokerConnection, response: type[Message]) -> Message:
        answer = real(self, response)
        if isinstance(answer, ProduceResponse):
            return ProduceResponse(responses=answer.responses * 2)
        return answer

    monkeypatch.setattr(BrokerConnection, "answer", doubled)
    topic = topics.create("doubled", 1)
    rows = batch(value=[b"%d" % n for n in range(500)])
    options = {"topic": topic, "kafka.batch.size": "1000", "kafka.acks": acks}
    assert write(topics, "value binary", rows, **options) == 500
    found = arrived(topics, topic, 1, 500)
    assert [each.value() for each in found] == [b"%d" % n for n in range(500)]


def test_answer_that_leaves_a_partition_out_is_a_problem_that_may_pass(
    topics: LiveTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, answers = BrokerConnection.answer, 0

    def silent(self: BrokerConnection, response: type[Message]) -> Message:
        nonlocal answers
        answer = real(self, response)
        if isinstance(answer, ProduceResponse):
            answers += 1
            assert answers < 100, "it asks again without a pause"
            return ProduceResponse(responses=[])
        return answer

    monkeypatch.setattr(BrokerConnection, "answer", silent)
    topic = topics.create("silent", 1)
    options = {"topic": topic, "kafka.delivery.timeout.ms": "1000"}
    with pytest.raises(PipelineError, match=f"answered without {topic}-0; nothing was written for"):
        write(topics, "value binary", batch(value=[b"x"]), **options)
    assert answers > 2


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("key binary", {"topic": "t"}, "column value is missing; there are key"),
        ("value binary", {}, "option topic is missing"),
        ("value int", {"topic": "t"}, "column value is int, not string or binary"),
        ("value string, partition bigint", {"topic": "t"}, "column partition is bigint, not int"),
        ("value string", {"topic": "t", "kafka.acks": "0"}, "kafka.acks: '0'"),
        ("value string", {"topic": "t", "kafka.compression.type": "zip"}, "'zip' is none of"),
        ("value string", {"topic": "t", "kafka.value.serializer": "x"}, "is not supported"),
        ("value string", {"topic": "t", "kafka.transactional.id": "x"}, "without transactions"),
        ("value string", {"topic": "t", "kafka.lingers": "5"}, "did you mean kafka.linger.ms"),
        ("value string", {"topics": "t"}, "option 'topics' does not exist"),
    ],
)
def test_wrong_column_or_option_is_refused_in_one_line(
    columns: str, options: dict[str, str], message: str
) -> None:
    given = {"kafka.bootstrap.servers": "h:1", **options}
    with pytest.raises(PipelineError, match=message):
        parse_sink(given, schema(columns))


def test_what_cannot_be_written_is_named(server_process: ServerProcess) -> None:
    topics = LiveTopics(server_process.bootstrap)
    topic = topics.create("named", 2)
    large = batch(value=[bytes(2_000_000)])
    limit = "max.request.size, 1048576"
    message = rf"^{topic}-\d: a record of 20000\d\d bytes is larger than {limit}$"
    with pytest.raises(PipelineError, match=message):
        write(topics, "value binary", large, topic=topic)
    several = batch(value=[b"small"] * 20 + [bytes(2_000_000)])
    for rows in (large, several):
        with pytest.raises(
            PipelineError,
            match=rf"^{topic}-\d at .*: MESSAGE_TOO_LARGE: one record makes a batch of 20000\d\d"
            " bytes, more than the topic's max.message.bytes$",
        ):
            write(
                topics, "value binary", rows, topic=topic, **{"kafka.max.request.size": "9000000"}
            )
    with pytest.raises(PipelineError, match="a row has no topic"):
        write(topics, "value binary, topic string", batch(value=[b""], topic=[None]))
    beyond = batch(value=[b""], partition=[2])
    with pytest.raises(PipelineError, match=f"{topic}-2 does not exist, {topic} has 2 partitions"):
        write(topics, "value binary, partition int", beyond, topic=topic)
    for nameless in ({"key": None, "value": b"x"}, None):
        rows = batch(value=[b""], headers=[[nameless]])
        with pytest.raises(PipelineError, match=f"a row for {topic} has a header without a key"):
            write(topics, "value binary, headers headers", rows, topic=topic)
