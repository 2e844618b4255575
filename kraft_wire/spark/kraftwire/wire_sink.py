"""Writes frames and streams to topics, at least once, as Spark's own sink does.

Every attempt of a task has its own producer: batches that it sends again are stored once, but
records of an earlier or repeated attempt stay, as with Spark's sink. Columns are those of the
connector: `value`, and optionally `key`, `topic`, `partition` and `headers`; the option `topic`
takes precedence over the column. Brokers that allow it create missing topics.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from kraft_wire.client.cluster import ClusterClient, ClusterRefused, ClusterSettings
from kraft_wire.client.producing import IdempotentProducer, ProduceSettings
from kraft_wire.model import TopicPartition
from kraft_wire.spark.failure import PipelineError, line_first
from kraft_wire.spark.kraftwire.partitioner import key_hashes
from kraft_wire.spark.kraftwire.wire_keys import KafkaKeys
from kraft_wire.spark.kraftwire.wire_offsets import asking
from kraft_wire.spark.option_reader import OptionReader, parse_positive
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.record import Header

__all__ = ["Sink", "WireStreamWriter", "WireWriter", "parse_sink", "write_batches"]

_NAMES: Final = (
    "kafka.bootstrap.servers",
    "topic",
    "includeHeaders",
    "checkpointLocation",
    "queryName",
    "path",
)
_BYTES: Final = ("string", "binary")
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "key": _BYTES,
    "value": _BYTES,
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_RECORD_BYTES_MAX: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Sink:
    """Where and how a frame is written; a value that can be pickled."""

    cluster: ClusterSettings
    produce: ProduceSettings
    topic: str | None
    """For all rows; None if a column has it."""


@dataclass(frozen=True)
class _Written(WriterCommitMessage):
    """The output of a task."""

    records: int


class WireWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; they are stored when this returns."""
        with line_first():
            return _Written(write_batches(self.sink, iterator))


class WireStreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a stream's micro-batches."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; they are stored when this returns."""
        with line_first():
            return _Written(write_batches(self.sink, iterator))


def parse_sink(raw_options: Mapping[str, str], schema: StructType) -> Sink:
    """Return the target of a frame. Errors: PipelineError for a wrong option or column."""
    found = OptionReader(raw_options, "the sink of kraftwire")
    found.refuse_unknown(_NAMES, but="kafka.")
    keys = KafkaKeys(found.beginning("kafka."))
    topic = found.get("topic", str.strip)
    columns = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in columns:
        raise PipelineError(f"column value is missing; there are {', '.join(columns) or 'none'}")
    if topic is None and "topic" not in columns:
        raise PipelineError("option topic is missing, and there is no column topic")
    for name, allowed in _TYPES.items():
        if name in columns and columns[name] not in allowed:
            wanted = " or ".join(allowed)
            raise PipelineError(f"column {name} is {columns[name]}, not {wanted}: cast it before")
    return Sink(keys.cluster(), _producing(keys), topic)


def _producing(keys: KafkaKeys) -> ProduceSettings:
    codec = keys.text("compression.type", "none")
    codecs = {each.name.lower(): each for each in Compression}
    if codec not in codecs:
        names = ", ".join(codecs)
        raise PipelineError(f"option kafka.compression.type: {codec!r} is none of {names}")
    acks = keys.text("acks", "all")
    idempotence = keys.text("enable.idempotence", "" if acks != "all" else "true")
    if acks not in ("all", "-1", "1"):
        raise PipelineError(f"option kafka.acks: {acks!r} is none of all, -1, 1")
    if acks == "1" and idempotence == "true":
        raise PipelineError("option kafka.acks: '1' and enable.idempotence exclude one another")
    defaults = ProduceSettings()
    milliseconds = keys.number(
        "delivery.timeout.ms", round(defaults.delivery_seconds * 1000), parse_positive
    )
    return ProduceSettings(
        compression=codecs[codec],
        batch_bytes=keys.number("batch.size", defaults.batch_bytes, parse_positive),
        record_bytes_max=keys.number("max.request.size", _RECORD_BYTES_MAX, parse_positive),
        is_idempotent=acks != "1" and idempotence != "false",
        acks=1 if acks == "1" else -1,
        delivery_seconds=milliseconds / 1000,
    )


def write_batches(sink: Sink, batches: Iterator[pa.RecordBatch]) -> int:
    """Write rows, and return how many once all are stored."""
    settings = replace(sink.cluster, deadline_seconds=sink.produce.delivery_seconds)
    with asking(), ClusterClient(settings) as cluster:
        task: _Task | None = None
        for batch in batches:
            if batch.num_rows:
                task = task or _Task(sink, cluster)
                task.write(batch)
        if task is None:
            return 0
        task.producer.flush()
        return task.records


class _Task:
    """The rows of one attempt of a task."""

    def __init__(self, sink: Sink, cluster: ClusterClient) -> None:
        self.records = 0
        self.producer = IdempotentProducer(cluster, sink.produce)
        self._sink = sink
        self._cluster = cluster
        self._counts: dict[str, int] = {}
        self._sticky: dict[str, int] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of one Arrow batch, with the time of now as Kafka's producer has it."""
        wall_ms = time.time_ns() // 1_000_000
        key_column = _bytes_column(batch, "key")
        hashes = key_hashes(key_column).tolist()
        columns = zip(
            self._topics(batch),
            _column(batch, "partition").to_pylist(),
            key_column.to_pylist(),
            _bytes_column(batch, "value").to_pylist(),
            _column(batch, "headers").to_pylist(),
            hashes,
            strict=True,
        )
        for topic, partition, key, value, pairs, key_hash in columns:
            count = self._counts.get(topic) or self._count_of(topic)
            if partition is not None:
                number = self._checked(topic, partition, count)
            elif key is not None:
                number = key_hash % count
            else:
                number = self._sticky.setdefault(topic, self.producer.producer_id % count)
            if any(each is None or each["key"] is None for each in pairs or ()):
                raise PipelineError(f"a row for {topic} has a header without a key")
            headers: list[Header] = [(each["key"], each["value"]) for each in pairs or ()]
            place = TopicPartition(topic, number)
            is_next = self.producer.append(place, wall_ms, key, value, headers)
            if is_next and number == self._sticky.get(topic):
                self._sticky[topic] = (number + 1) % count
        self.records += batch.num_rows

    def _topics(self, batch: pa.RecordBatch) -> list[str]:
        if self._sink.topic is not None:
            return [self._sink.topic] * batch.num_rows
        column = batch.column("topic")
        if column.null_count:
            raise PipelineError("a row has no topic; set the option topic for all rows")
        topics: list[str] = column.to_pylist()
        return topics

    def _count_of(self, topic: str) -> int:
        self.producer.settle()
        counts = self._cluster.partitions_of([topic], create=True)
        self._counts |= counts
        return counts[topic]

    def _checked(self, topic: str, partition: int, count: int) -> int:
        if not 0 <= partition < count:
            raise ClusterRefused(
                f"{topic}-{partition} does not exist, {topic} has {count} partitions"
            )
        return partition


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column, nulls if it is absent."""
    index = batch.schema.get_field_index(name)
    return batch.column(index) if index >= 0 else pa.nulls(batch.num_rows)


def _bytes_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return _column(batch, name).cast(pa.binary())
