"""Records through Spark are those that were written: every option that chooses among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.log_directories import WrittenLogs, WrittenRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java


def load(spark: SparkSession, written: WrittenLogs, **options: object) -> DataFrame:
    """The frame over a written directory."""
    return spark.read.format("kraftlog").options(**options).load(str(written.path))


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """What a frame holds, as sorted plain rows."""
    rows = [
        (
            row.topic,
            row.partition,
            row.offset,
            int(row.timestamp.timestamp() * 1000),
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
        )
        for row in frame.collect()
    ]
    return sorted(rows, key=lambda row: row[:3])


def expected(records: list[WrittenRecord]) -> list[tuple[Any, ...]]:
    """What was written, as plain rows."""
    return [(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value) for r in records]


def test_default_view_is_every_record_in_the_columns_of_the_kafka_source(
    spark: SparkSession, written: WrittenLogs
) -> None:
    frame = load(spark, written)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    assert rows_of(frame) == expected(written.visible())


def test_read_committed_hides_aborted_and_open_transactions(
    spark: SparkSession, written: WrittenLogs
) -> None:
    frame = load(spark, written, isolationLevel="read_committed")
    assert rows_of(frame) == expected(written.visible(committed=True))


def test_read_committed_from_the_middle_knows_what_was_open_before(
    spark: SparkSession, written: WrittenLogs
) -> None:
    start = json.dumps({"money": {"0": 101}})
    frame = load(
        spark, written, topics="money", isolationLevel="read_committed", startingOffsets=start
    )
    wanted = [r for r in written.visible(committed=True) if r.topic == "money" and r.offset >= 101]
    assert rows_of(frame) == expected(wanted)


def test_offsets_bound_what_is_read_inside_batches_too(
    spark: SparkSession, written: WrittenLogs
) -> None:
    frame = load(
        spark,
        written,
        TOPICS="plain",
        startingoffsets=json.dumps({"plain": {"0": 333, "1": -2}}),
        ENDINGOFFSETS=json.dumps({"plain": {"0": 777, "1": -1}}),
    )
    wanted = [
        r
        for r in written.visible()
        if r.topic == "plain" and (r.partition == 1 or 333 <= r.offset < 777)
    ]
    assert rows_of(frame) == expected(wanted)


def test_headers_are_pairs_and_null_where_there_are_none(
    spark: SparkSession, written: WrittenLogs
) -> None:
    frame = load(spark, written, includeHeaders="true", topicsPattern="pl.*")
    rows = frame.orderBy("partition", "offset").collect()
    wanted = [r for r in written.visible() if r.topic == "plain"]
    assert [
        None if row.headers is None else [(each.key, each.value) for each in row.headers]
        for row in rows
    ] == [r.headers or None for r in wanted]


def test_schema_of_the_user_prunes_and_small_tasks_change_nothing(
    spark: SparkSession, written: WrittenLogs
) -> None:
    options = {"maxPartitionBytes": "2000", "openCostInBytes": "1", "arrowBatchRows": "7"}
    reader = spark.read.format("kraftlog").options(**options).schema("offset long, value binary")
    frame = reader.option("assign", '{"plain":[1]}').load(str(written.path))
    assert frame.columns == ["offset", "value"]
    assert frame.rdd.getNumPartitions() > 10
    wanted = [r for r in written.visible() if (r.topic, r.partition) == ("plain", 1)]
    found = sorted((row.offset, row.value and bytes(row.value)) for row in frame.collect())
    assert found == [(r.offset, r.value) for r in wanted]


def test_fields_of_the_batch_stand_beside_each_record(
    spark: SparkSession, written: WrittenLogs
) -> None:
    frame = load(spark, written, includeBatchFields="true")
    counted = {
        row.compression: row["count"] for row in frame.groupBy("compression").count().collect()
    }
    assert set(counted) == {"none", "gzip", "snappy", "lz4", "zstd"}
    transactional = frame.where("isTransactional").select("producerId").distinct().collect()
    assert sorted(row.producerId for row in transactional) == [1, 2, 3]


def test_pushdown_gives_the_same_rows(spark: SparkSession, written: WrittenLogs) -> None:
    where = "topic = 'plain' and partition in (0) and offset >= 500 and offset < 510"
    frame = load(spark, written, pushdown="true").where(where)
    wanted = [
        r
        for r in written.visible()
        if (r.topic, r.partition) == ("plain", 0) and 500 <= r.offset < 510
    ]
    assert rows_of(frame) == expected(wanted)
    assert frame.rdd.getNumPartitions() == 1


def test_several_nodes_are_a_list_of_paths(
    spark: SparkSession, written: WrittenLogs, tmp_path: Path
) -> None:
    other = WrittenLogs(tmp_path / "node-2", 2)
    other.append("elsewhere", 0, 9)
    other.close()
    paths = [str(written.path), str(other.path)]
    rows = rows_of(spark.read.format("kraftlog").load(paths))
    assert rows == expected(sorted([*other.records, *written.records], key=place))


def place(record: WrittenRecord) -> tuple[str, int, int]:
    """What orders records."""
    return record.topic, record.partition, record.offset
