"""Streams over growing directories: offsets, limits, what is open, what was deleted, restarts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from kraft_wire.columnar import RECORDS
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.spark import PipelineError, parse_log_options
from kraft_wire.spark.kraftlog.log_stream import LogStreamReader, limited
from tests.spark.log_directories import WrittenLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM_SECONDS_MAX = 120


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[WrittenLogs]:
    """A directory that a test appends to."""
    logs = WrittenLogs(tmp_path / "growing", 1)
    for _ in range(20):
        logs.append("plain", 0, 10)
    yield logs
    if logs.logs is not None:
        logs.close()


def reader_of(logs: WrittenLogs, **options: str) -> LogStreamReader:
    """A reader as Spark makes one."""
    return LogStreamReader(parse_log_options({"path": str(logs.path), **options}), RECORDS, 2)


def offsets_between(
    reader: LogStreamReader, start: dict[str, Any], end: dict[str, Any]
) -> list[tuple[str, int]]:
    """Topic and offset of every record that the tasks between two offsets read."""
    found: list[tuple[str, int]] = []
    for task in reader.partitions(start=start, end=end):
        for batch in reader.read(task):
            rows = zip(batch["topic"].to_pylist(), batch["offset"].to_pylist(), strict=True)
            found += rows
    return found


def test_each_trigger_reads_what_was_appended_since(growing: WrittenLogs) -> None:
    reader = reader_of(growing)
    start = reader.initialOffset()
    assert start == {"plain": {"0": 0}}
    first = reader.latestOffset(start=start, limit=ReadAllAvailable())
    assert first == {"plain": {"0": 200}}
    assert reader.latestOffset(start=first, limit=ReadAllAvailable()) == first
    assert reader.partitions(start=first, end=first) == []
    growing.append("plain", 0, 7)
    growing.append("late", 3, 5)
    second = reader.latestOffset(start=first, limit=ReadAllAvailable())
    assert second == {"late": {"3": 5}, "plain": {"0": 207}}
    read = offsets_between(reader_of(growing), start, first)
    assert read == [("plain", offset) for offset in range(200)]
    more = offsets_between(reader_of(growing), first, second)
    assert sorted(more) == [("late", each) for each in range(5)] + [
        ("plain", each) for each in range(200, 207)
    ]


def test_stream_from_the_end_begins_where_its_first_micro_batch_ends(
    growing: WrittenLogs,
) -> None:
    """Spark asks for the beginning twice, and again after a crash in the first micro-batch."""
    at_the_end = {"startingOffsets": '{"plain":{"0":-1}}'}
    reader = reader_of(growing, **at_the_end)
    start = reader.initialOffset()
    growing.append("plain", 0, 10)
    first = reader.latestOffset(start=start, limit=ReadAllAvailable())
    assert first == start == reader.initialOffset() == {"plain": {"0": 200}}
    second = reader.latestOffset(start=first, limit=ReadAllAvailable())
    assert offsets_between(reader, first, second) == [("plain", 200 + n) for n in range(10)]

    killed_in_the_first = reader_of(growing, **at_the_end)
    anew = killed_in_the_first.initialOffset()
    assert anew == {"plain": {"0": 210}}
    assert killed_in_the_first.partitions(start=anew, end=first) == []
    assert killed_in_the_first.latestOffset(start=first, limit=ReadAllAvailable()) == second


@pytest.mark.parametrize("late", [-2, -1, 3])
def test_partition_that_appears_later_is_read_from_its_beginning_whatever_a_restart_says(
    growing: WrittenLogs, late: int
) -> None:
    """As with Spark's own connector: where a query begins does not matter to one that goes on."""
    reader = reader_of(growing, startingOffsets='{"plain":{"0":-1}}')
    start = reader.latestOffset(start=reader.initialOffset(), limit=ReadAllAvailable())
    growing.append("late", 3, 5)
    end = reader.latestOffset(start=start, limit=ReadAllAvailable())
    growing.append("late", 3, 5)
    named = json.dumps({"plain": {"0": -1}, "late": {"3": late}})
    restarted = reader_of(growing, startingOffsets=named)
    for each in (reader, restarted):
        assert offsets_between(each, start, end) == [("late", n) for n in range(5)]
    assert restarted.latestOffset(start=start, limit=ReadMaxRows(2))["late"] == {"3": 2}


def test_end_of_who_reads_what_is_committed_is_where_the_oldest_open_transaction_begins(
    growing: WrittenLogs,
) -> None:
    """As ListOffsets answers it (KIP-98): the transaction may be committed after the start."""
    growing.append("money", 0, 2)
    growing.append("money", 0, 4, producer_id=1, sequence=0, is_transactional=True)
    reader = reader_of(
        growing,
        topics="money",
        isolationLevel="read_committed",
        startingOffsets='{"money":{"0":-1}}',
    )
    start = reader.latestOffset(start=reader.initialOffset(), limit=ReadAllAvailable())
    growing.mark("money", 0, 1, abort=False)
    end = reader.latestOffset(start=start, limit=ReadAllAvailable())
    assert [offset for _, offset in offsets_between(reader, start, end)] == [2, 3, 4, 5]


def test_query_from_the_end_finds_nothing_available_now(growing: WrittenLogs) -> None:
    reader = reader_of(growing, startingOffsets='{"plain":{"0":-1}}')
    reader.prepareForTriggerAvailableNow()
    growing.append("plain", 0, 10)
    start = reader.initialOffset()
    for _ in range(2):
        assert reader.latestOffset(start=start, limit=ReadAllAvailable()) == start


def test_limit_is_shared_out_and_may_end_inside_a_batch(growing: WrittenLogs) -> None:
    growing.append("plain", 1, 40)
    reader = reader_of(growing, maxOffsetsPerTrigger="33")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(33)
    at, seen = reader.initialOffset(), []
    while (end := reader.latestOffset(start=at, limit=limit)) != at:
        read = offsets_between(reader, at, end)
        assert len(read) <= 33
        seen += read
        at = end
    assert len(seen) == 240
    assert at == {"plain": {"0": 200, "1": 40}}


def test_shares_of_a_limit_add_up_and_reach_every_partition_in_the_end() -> None:
    ends = {TopicPartition("a", n): 10**n for n in range(5)}
    at = dict.fromkeys(ends, 0)
    for _ in range(2000):
        reached = limited(at, ends, 7)
        moved = sum(reached[key] - at[key] for key in ends)
        assert moved == min(7, sum(ends[key] - at[key] for key in ends))
        at = reached
        if at == ends:
            break
    assert at == ends


def test_torn_end_waits_until_the_batch_is_whole(growing: WrittenLogs) -> None:
    reader = reader_of(growing)
    start = reader.latestOffset(start=reader.initialOffset(), limit=ReadAllAvailable())
    tail = max((growing.path / "plain-0").glob("*.log"))
    before = tail.read_bytes()
    growing.append("plain", 0, 9)
    after = max((growing.path / "plain-0").glob("*.log")).read_bytes()
    assert after[: len(before)] == before, "the same segment grew"
    tail.write_bytes(after[:-5])
    assert reader.latestOffset(start=start, limit=ReadAllAvailable()) == start
    tail.write_bytes(after)
    end = reader.latestOffset(start=start, limit=ReadAllAvailable())
    assert len(offsets_between(reader, start, end)) == 9


def test_read_committed_waits_for_what_is_open_and_drops_what_was_aborted(
    growing: WrittenLogs,
) -> None:
    growing.append("money", 0, 4, producer_id=1, sequence=0, is_transactional=True)
    growing.append("money", 0, 2)
    reader = reader_of(growing, topics="money", isolationLevel="read_committed")
    start = reader.initialOffset()
    assert reader.latestOffset(start=start, limit=ReadAllAvailable()) == start
    growing.mark("money", 0, 1, abort=True)
    growing.append("money", 0, 3)
    middle = reader.latestOffset(start=start, limit=ReadMaxRows(5))
    end = reader.latestOffset(start=middle, limit=ReadAllAvailable())
    assert end == {"money": {"0": 10}}
    for fresh in (reader, reader_of(growing, topics="money", isolationLevel="read_committed")):
        read = offsets_between(fresh, start, middle) + offsets_between(fresh, middle, end)
        assert [offset for _, offset in read] == [4, 5, 7, 8, 9]


def test_log_that_was_cut_and_went_on_otherwise_is_scanned_anew(growing: WrittenLogs) -> None:
    reader = reader_of(growing, topics="money", isolationLevel="read_committed")
    growing.append("money", 0, 4)
    start = reader.latestOffset(start={}, limit=ReadAllAvailable())
    log = growing.path / "money-0" / f"{0:020}.log"
    before = log.read_bytes()
    growing.append("money", 0, 4, producer_id=1, sequence=0, is_transactional=True)
    assert reader.latestOffset(start=start, limit=ReadAllAvailable()) == start
    log.write_bytes(before + before.replace(before[:8], (4).to_bytes(8, "big"), 1))
    end = reader.latestOffset(start=start, limit=ReadAllAvailable())
    assert (start, end) == ({"money": {"0": 4}}, {"money": {"0": 8}})


def test_query_that_reads_what_is_available_now_ends_there(growing: WrittenLogs) -> None:
    reader = reader_of(growing)
    reader.prepareForTriggerAvailableNow()
    growing.append("plain", 0, 10)
    growing.append("late", 0, 10)
    end = reader.latestOffset(start=reader.initialOffset(), limit=ReadAllAvailable())
    assert end["plain"] == {"0": 200}
    assert end.get("late", {"0": 0}) == {"0": 0}
    assert reader.reportLatestOffset()["plain"] == {"0": 210}


def test_what_was_deleted_before_it_was_read_is_data_loss(growing: WrittenLogs) -> None:
    start, end = {"plain": {"0": 0}}, {"plain": {"0": 200}}
    growing.close()
    first, second, *_ = sorted((growing.path / "plain-0").glob("*.log"))
    first.unlink()
    with pytest.raises(PipelineError, match=r"plain-0: offsets from 0 were deleted"):
        reader_of(growing).partitions(start=start, end=end)
    read = offsets_between(reader_of(growing, failOnDataLoss="false"), start, end)
    assert read[0] == ("plain", int(second.stem))
    shutil.rmtree(growing.path / "plain-0")
    with pytest.raises(PipelineError, match=r"plain-0 is no longer in "):
        reader_of(growing).partitions(start=start, end=end)
    assert offsets_between(reader_of(growing, failOnDataLoss="false"), start, end) == []


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows(3)])
def test_log_whose_end_went_back_is_data_loss(growing: WrittenLogs, limit: ReadLimit) -> None:
    """As with Spark's own connector: what a topic that was made anew holds would never be read."""
    start = reader_of(growing).latestOffset(start={}, limit=ReadAllAvailable())
    growing.close()
    for segment in sorted((growing.path / "plain-0").glob("*.log"))[1:]:
        segment.unlink()
    reader = reader_of(growing)
    end = reader.latestOffset(start=start, limit=limit)
    stop = end["plain"]["0"]
    assert stop < start["plain"]["0"]
    with pytest.raises(PipelineError, match=f"plain-0 ended at 200 and now ends at {stop}; set"):
        reader.partitions(start=start, end=end)
    lenient = reader_of(growing, failOnDataLoss="false")
    assert offsets_between(lenient, start, end) == []
    assert lenient.latestOffset(start=end, limit=limit) == end


@pytest.mark.java
def test_restarted_query_writes_every_offset_exactly_once(
    spark: SparkSession, growing: WrittenLogs, tmp_path: Path
) -> None:
    def run() -> None:
        stream = spark.readStream.format("kraftlog").option("maxOffsetsPerTrigger", "120")
        frame = stream.load(str(growing.path)).select("topic", "partition", "offset")
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "sink"))
        )
        assert query.awaitTermination(STREAM_SECONDS_MAX)

    run()
    growing.append("plain", 0, 30)
    growing.append("late", 0, 3)
    run()
    rows = spark.read.parquet(str(tmp_path / "sink")).collect()
    found = sorted((row.topic, row.partition, row.offset) for row in rows)
    assert found == sorted((r.topic, r.partition, r.offset) for r in growing.records)


@pytest.mark.java
def test_view_that_does_not_grow_is_refused_in_one_line(
    spark: SparkSession, growing: WrittenLogs
) -> None:
    stream = spark.readStream.format("kraftlog").option("view", "segments")
    writer = stream.load(str(growing.path)).writeStream.format("noop")
    with pytest.raises(Exception, match="PipelineError: view segments") as failed:
        writer.start().awaitTermination(STREAM_SECONDS_MAX)
    assert "view segments is not a stream: use spark.read" in str(failed.value).splitlines()[0]


@pytest.mark.parametrize(("starting", "first"), [("earliest", 4), ("physical", 0)])
def test_partition_that_comes_later_is_read_from_its_earliest_record(
    growing: WrittenLogs, starting: str, first: int
) -> None:
    reader = reader_of(growing, startingOffsets=starting)
    start = reader.initialOffset()
    growing.append("late", 0, 10)
    growing.log("late", 0).advance_log_start_offset(Offset(4))
    assert growing.logs is not None
    growing.logs.checkpoint()
    end = reader.latestOffset(start=start, limit=ReadAllAvailable())
    found = offsets_between(reader, start, end)
    assert [offset for topic, offset in found if topic == "late"] == list(range(first, 10))
