"""Both formats as Spark calls them, without a session: schemas, readers, writers and refusals."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from kraft_wire.columnar import records_schema
from kraft_wire.model import TopicPartition
from kraft_wire.spark import PipelineError
from kraft_wire.spark.kraftlog.filters import PushdownReader
from kraft_wire.spark.kraftlog.log_source import KraftLogSource
from kraft_wire.spark.kraftlog.log_stream import LogStreamReader
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.refused_stream import RefusedStream
from kraft_wire.spark.kraftlog.tasks import LogReader
from kraft_wire.spark.kraftlog.views import ViewTask
from kraft_wire.spark.kraftwire import wire_sink as sink_module
from kraft_wire.spark.kraftwire.wire_offsets import PartitionRange
from kraft_wire.spark.kraftwire.wire_options import parse_wire_options
from kraft_wire.spark.kraftwire.wire_sink import (
    Sink,
    WireStreamWriter,
    WireWriter,
    parse_sink,
    write_batches,
)
from kraft_wire.spark.kraftwire.wire_source import KraftWireSource
from kraft_wire.spark.kraftwire.wire_stream import WireStreamReader
from kraft_wire.spark.kraftwire.wire_tasks import WirePartition, WireReader
from tests.spark.log_directories import WrittenLogs

ASKED = StructType().add("offset", LongType()).add("topic", StringType(), False)
CHOSEN = pa.schema([("offset", pa.int64()), pa.field("topic", pa.string(), nullable=False)])
VALUES = StructType().add("value", BinaryType())
WIRE = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
SINK = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
RECORD = (
    "`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint,"
    " `timestamp` timestamp, `timestampType` int"
)
HEADERS = ", `headers` array<struct<key:string,value:binary>>"


def line_of(call: Callable[[], object]) -> str:
    """The one line with which a call is refused."""
    with pytest.raises(PipelineError) as refused:
        call()
    return str(refused.value)


def test_names_and_columns_are_those_of_the_formats() -> None:
    assert (KraftLogSource.name(), KraftWireSource.name()) == ("kraftlog", "kraftwire")
    assert KraftLogSource({"path": "/a"}).schema() == RECORD
    assert KraftWireSource(dict(WIRE)).schema() == RECORD
    assert KraftWireSource({**WIRE, "INCLUDEHEADERS": " True "}).schema() == RECORD + HEADERS


@pytest.mark.parametrize(
    ("pushdown", "kind"), [({}, LogReader), ({"pushdown": "true"}, PushdownReader)]
)
def test_reader_of_a_log_has_options_columns_and_parallelism(
    pushdown: dict[str, str], kind: type
) -> None:
    given = {"path": "/a", **pushdown}
    source = type("Known", (KraftLogSource,), {"parallelism": 5})(given)
    reader = pickle.loads(pickle.dumps(source.reader(ASKED)))
    assert type(reader) is kind
    assert (reader.options, reader.schema) == (parse_log_options(given), CHOSEN)
    assert reader.parallelism == 5


def test_stream_of_a_log_has_options_columns_and_parallelism() -> None:
    source = type("Known", (KraftLogSource,), {"parallelism": 5})({"path": "/a"})
    reader = source.streamReader(ASKED)
    assert isinstance(reader, LogStreamReader)
    assert (reader.options, reader.schema) == (parse_log_options({"path": "/a"}), CHOSEN)
    assert reader.parallelism == 5


@pytest.mark.parametrize(
    ("options", "schema", "line"),
    [
        ({"view": "batches"}, ASKED, "view batches is not a stream: use spark.read"),
        (
            {},
            StructType().add("offset", IntegerType()),
            "column offset of view records is bigint, not int: cast it after",
        ),
    ],
)
def test_stream_that_cannot_be_read_says_so_at_every_call(
    options: dict[str, str], schema: StructType, line: str
) -> None:
    reader: Any = KraftLogSource({"path": "/a", **options}).streamReader(schema)
    assert isinstance(reader, RefusedStream)
    assert line_of(reader.initialOffset) == line
    assert line_of(lambda: reader.latestOffset({}, None)) == line
    assert line_of(lambda: reader.read(InputPartition(0))) == line


def test_log_reader_plans_and_reads_each_row_once(written: WrittenLogs, tmp_path: Path) -> None:
    given = {"path": str(written.path), "topics": "plain", "maxPartitionBytes": "20000"}
    reader = KraftLogSource({**given, "openCostInBytes": "0"}).reader(ASKED)
    tasks = reader.partitions()
    assert len(tasks) > 2
    assert [each.value for each in tasks] == [each.task for each in tasks]
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    wanted = [each for each in written.visible() if each.topic == "plain"]
    assert rows == [{"offset": each.offset, "topic": "plain"} for each in wanted]
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    empty = KraftLogSource({"path": str(tmp_path)}).reader(ASKED)
    (task,) = empty.partitions()
    assert task.task == ViewTask()
    assert list(empty.read(task)) == []


def test_readers_of_topics_have_options_and_columns() -> None:
    source = KraftWireSource({**WIRE, "minPartitions": "3"})
    for reader, streaming in ((source.reader(ASKED), False), (source.streamReader(ASKED), True)):
        kind = WireStreamReader if streaming else WireReader
        assert type(reader) is kind
        assert reader.options == parse_wire_options(source.options, streaming=streaming)
        assert reader.options.partitions_min == 3
        assert reader.schema == CHOSEN
    assert list(source.reader(ASKED).read(WirePartition(None))) == []
    part = PartitionRange(TopicPartition("t", 0), 1, 2)
    assert (WirePartition(part).value, WirePartition(part).part) == (part, part)
    whole = source.reader(VALUES)
    assert whole.schema == pa.schema([records_schema(headers=True).field("value")])
    wrong = StructType().add("leaderEpoch", IntegerType())
    assert line_of(lambda: source.reader(wrong)) == (
        "kraftwire has no column 'leaderEpoch'; it has key, value, topic, partition, offset,"
        " timestamp, timestampType, headers"
    )


def test_writers_have_the_sink_and_a_batch_is_not_overwritten() -> None:
    source, sink = KraftWireSource(dict(SINK)), parse_sink(SINK, VALUES)
    assert isinstance(source.writer(VALUES, overwrite=False), WireWriter)
    assert source.writer(VALUES, overwrite=False).sink == sink
    for overwrite in (False, True):
        writer = source.streamWriter(VALUES, overwrite=overwrite)
        assert isinstance(writer, WireStreamWriter)
        assert writer.sink == sink
    assert line_of(lambda: source.writer(VALUES, overwrite=True)) == (
        "mode overwrite is not for topics, which only grow: use append"
    )


@pytest.mark.parametrize("kind", [WireWriter, WireStreamWriter])
def test_writer_says_how_many_rows_are_stored(
    monkeypatch: pytest.MonkeyPatch, kind: type[WireWriter | WireStreamWriter]
) -> None:
    def write(sink: Sink, batches: Any) -> int:
        assert sink is expected
        return sum(batch.num_rows for batch in batches)

    monkeypatch.setattr(sink_module, "write_batches", write)
    expected = parse_sink(SINK, VALUES)
    batch = pa.RecordBatch.from_pydict({"value": [b"a", b"b"]})
    message: Any = kind(expected).write(iter([batch, batch]))
    assert pickle.loads(pickle.dumps(message)).records == 4


def test_rows_of_nothing_need_no_broker() -> None:
    empty = pa.RecordBatch.from_pydict({"value": pa.array([], pa.binary())})
    assert write_batches(parse_sink(SINK, VALUES), iter([empty, empty])) == 0
    assert write_batches(parse_sink(SINK, VALUES), iter([])) == 0
