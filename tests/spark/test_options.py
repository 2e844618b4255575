"""Options and paths of the format, in any case of letters; every mistake is one line naming it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from kraft_wire.columnar import records_schema
from kraft_wire.model import TopicPartition
from kraft_wire.spark import PipelineError, parse_log_options, read_view
from kraft_wire.spark.kraftlog.log_source import KraftLogSource
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.schemas import chosen_schema, ddl_of, view_schema
from kraft_wire.spark.kraftlog.views import plan_view
from kraft_wire.storage.os_files import OsFileSystem
from tests.spark.log_directories import WrittenLogs

WRONG = [
    ({}, "option path is missing"),
    ({"path": " , "}, "option path is missing"),
    ({"path": "/logs", "paths": "[]"}, "option path is missing"),
    ({"path": "/logs", "paths": "[" * 9999}, "maximum recursion depth"),
    ({"path": "/logs", "paths": "[1]"}, "option paths: '[1]' is not a list of paths"),
    ({"path": "s3://bucket/logs"}, "option path: 's3://bucket/logs' is not a path of this machine"),
    ({"view": "record"}, "option view: 'record' is none of records, batches"),
    ({"startingOfsets": "earliest"}, "did you mean startingOffsets?"),
    ({"topics": "a", "assign": '{"a":[0]}'}, "options topics and assign exclude one another"),
    ({"topics": " , "}, "option topics: ' , ' names no topic"),
    ({"topicsPattern": "a{99999999999}"}, "is not a regular expression: the repetition number"),
    ({"topicsPattern": "("}, "option topicsPattern: '(' is not a regular expression"),
    ({"assign": '{"a":{"0":1}}'}, "option assign: 'a' needs a list of partitions"),
    ({"assign": '{"a":1}'}, "option assign: 'a' needs a list of partitions"),
    ({"assign": '{"a":[-1]}'}, "option assign: 'a' needs a list of partitions"),
    ({"assign": '{"a":["0"]}'}, "option assign: 'a' needs a list of partitions"),
    ({"startingOffsets": "newest"}, "option startingOffsets: 'newest' is neither earliest nor"),
    ({"startingOffsets": '{"a":{"0":-3}}'}, "option startingOffsets: a-0 at -3"),
    ({"startingOffsets": '{"a":{"0":1,"0":2}}'}, "stands there twice"),
    ({"startingOffsets": '{"a":' * 9999 + "1" + "}" * 9999}, "maximum recursion depth"),
    ({"endingOffsets": '{"a":[1]}'}, "option endingOffsets: topic 'a' has no partitions"),
    ({"isolationLevel": "serializable"}, "option isolationLevel: 'serializable' is none of"),
    ({"includeHeaders": "yes"}, "option includeHeaders: 'yes' is none of true, false"),
    ({"maxPartitionBytes": "lots"}, "option maxPartitionBytes: 'lots' is not a size such as 128MB"),
    ({"arrowBatchRows": "0"}, "option arrowBatchRows: '0' is not a number of 1 or more"),
    ({"asOfOffset": "-1"}, "option asOfOffset: '-1' is not a number of 0 or more"),
]


@pytest.mark.parametrize(("given", "line"), WRONG, ids=[line for _, line in WRONG])
def test_wrong_option_is_one_line_that_names_it(given: dict[str, str], line: str) -> None:
    given = given if "path" in given or not given else {"path": "/logs", **given}
    with pytest.raises(PipelineError) as refused:
        parse_log_options(given)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_and_words_are_case_insensitive() -> None:
    options = parse_log_options(
        {
            "PATH": "/a, file:///b%20c/,/a",
            "VIEW": "Batches",
            "STARTINGOFFSETS": "Physical",
            "oncorrupt": "REPORT",
            "maxpartitionbytes": "64m",
            "assign": '{"t":[0,2]}',
        }
    )
    assert options.paths == ("/a", "/b c")
    assert (options.view, options.starting, options.on_corrupt) == ("batches", "physical", "report")
    assert options.partition_bytes_max == 64 << 20
    assert options.assign == {TopicPartition("t", 0), TopicPartition("t", 2)}


def test_several_paths_of_load_are_a_list() -> None:
    assert parse_log_options({"paths": '["/a","/b"]'}).paths == ("/a", "/b")


def test_opening_a_file_may_cost_nothing(written: WrittenLogs) -> None:
    assert read(written.path, openCostInBytes="0") == read(written.path)


def test_no_more_places_are_looked_at_than_an_index_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tasks are asked for: one for each byte is hours of work for the driver."""
    logs = WrittenLogs(tmp_path / "node-1", 1)
    logs.log("t", 0, segment_bytes=1 << 20)
    for _ in range(200):
        logs.append("t", 0, 3)
    logs.close()
    segment = logs.path / "t-0" / f"{0:020d}.log"
    entries = segment.with_suffix(".index").stat().st_size // 8
    assert 10 < entries < segment.stat().st_size // 100
    searched, real = [0], np.searchsorted

    def counted(*given: Any, **named: Any) -> Any:
        searched[0] += 1
        return real(*given, **named)

    monkeypatch.setattr(np, "searchsorted", counted)
    given = {"path": str(logs.path), "minPartitions": str(10**12), "openCostInBytes": "0"}
    tasks = plan_view(OsFileSystem(), parse_log_options(given), 1)
    assert len(tasks) == entries + 1
    assert searched[0] <= entries + 10


def test_defaults_are_those_of_the_format() -> None:
    assert parse_log_options({"path": "/a"}) == LogOptions(("/a",))


@pytest.mark.parametrize(
    "view", ["records", "batches", "segments", "metadata", "snapshots", "partitions"]
)
def test_schema_in_sparks_words_means_the_arrow_schema(view: str) -> None:
    source = KraftLogSource({"path": "/a", "view": view, "includeHeaders": "true"})
    assert source.schema() == ddl_of(view_schema(source.log_options))
    assert all(field.nullable for field in view_schema(source.log_options))


def test_schema_of_the_user_chooses_and_orders_columns() -> None:
    options = parse_log_options({"path": "/a"})
    asked = StructType().add("offset", LongType()).add("topic", StringType())
    chosen = chosen_schema(options, asked)
    assert chosen == pa.schema([("offset", pa.int64()), ("topic", pa.string())])
    headers = pa.schema([records_schema(headers=True).field("headers")])
    assert chosen_schema(options, headers) == headers


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (StructType().add("ofset", LongType()), "view records has no column 'ofset'"),
        (StructType().add("offset", IntegerType()), "column offset of view records is bigint, not"),
    ],
)
def test_schema_of_the_user_that_does_not_fit_is_refused(asked: StructType, line: str) -> None:
    with pytest.raises(PipelineError, match=line):
        chosen_schema(parse_log_options({"path": "/a"}), asked)


def read(path: Path, **options: str) -> int:
    """How many rows a view has."""
    return sum(batch.num_rows for batch in read_view({"path": str(path), **options}))


def test_paths_and_topics_that_are_not_there_are_named(
    tmp_path: Path, written: WrittenLogs
) -> None:
    with pytest.raises(PipelineError, match=f"path {tmp_path}/no does not exist"):
        read(tmp_path / "no")
    with pytest.raises(PipelineError, match=f"path {tmp_path} is not a log directory"):
        read(tmp_path)
    with pytest.raises(PipelineError, match=r"option topics: monney is not in .* there is empty, "):
        read(written.path, topics="money,monney")
    with pytest.raises(PipelineError, match="option assign: plain-7 is not in"):
        read(written.path, assign='{"plain":[0,7]}')
    with pytest.raises(PipelineError, match="option startingOffsets: plain-9 is not in"):
        read(written.path, startingOffsets='{"plain":{"9":1}}')
    with pytest.raises(PipelineError, match="no __cluster_metadata-0 in"):
        read(written.path, view="metadata")
    assert read(written.path, topicsPattern="nothing.*") == 0
    assert read(written.path, topics="empty") == 0


def test_partition_without_a_file_has_no_rows(tmp_path: Path, written: WrittenLogs) -> None:
    copy = Path(shutil.copytree(written.path, tmp_path / "node-1"))
    (copy / "new-0").mkdir()
    for view in ("records", "batches", "segments"):
        assert read(copy, view=view) == read(written.path, view=view)


def test_partition_on_several_nodes_is_read_once_from_the_longest_log(
    tmp_path: Path, written: WrittenLogs
) -> None:
    behind = WrittenLogs(tmp_path / "node-2", 2)
    behind.append("plain", 0, 10)
    behind.append("other", 0, 3)
    behind.close()
    both = f"{behind.path},{written.path}"
    assert read(Path(both)) == len(written.records) + 3
    nodes = {
        row["node"]
        for batch in read_view({"path": both, "view": "batches", "assign": '{"plain":[0]}'})
        for row in batch.to_pylist()
    }
    assert nodes == {"1", "2"}


def test_directory_without_identity_is_a_replica_of_the_cluster_that_the_others_name(
    tmp_path: Path, written: WrittenLogs
) -> None:
    copy = Path(shutil.copytree(written.path, tmp_path / "node-2"))
    (copy / "meta.properties").unlink()
    assert read(Path(f"{written.path},{copy}")) == len(written.records)


@pytest.mark.parametrize("view", ["records", "batches", "segments"])
def test_file_that_cannot_be_read_is_named_in_one_line(
    tmp_path: Path, written: WrittenLogs, view: str
) -> None:
    copies = [Path(shutil.copytree(written.path, tmp_path / name)) for name in ("one", "other")]
    unreadable = copies[0] / "plain-0" / f"{1 << 40:020d}.log"
    unreadable.mkdir()
    with pytest.raises(PipelineError, match=f"{unreadable}: Is a directory"):
        read(Path(f"{copies[0]},{copies[1]}"), view=view)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("1", 1), ("7b", 7), ("2k", 2 << 10), ("2KB", 2 << 10), ("3m", 3 << 20)),
        *(("3 mb", 3 << 20), ("4G", 4 << 30), ("4gb", 4 << 30), ("5t", 5 << 40), ("5TB", 5 << 40)),
    ],
)
def test_size_has_the_units_of_spark(text: str, size: int) -> None:
    options = parse_log_options({"path": "/logs", "maxPartitionBytes": text})
    assert options.partition_bytes_max == size
