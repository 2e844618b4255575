"""Plans of streams over a directory: limits, tasks with their aborted transactions, and losses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kraft_wire.columnar import RECORDS
from kraft_wire.model import Offset
from kraft_wire.spark import PipelineError, parse_log_options
from kraft_wire.spark.kraftlog.log_stream import LogStreamReader, limited
from kraft_wire.spark.kraftlog.planning import LogPart, OffsetRange
from kraft_wire.spark.kraftlog.tasks import ViewPartition
from tests.spark.log_directories import WrittenLogs

GO_ON = "; set failOnDataLoss to false to continue without the lost records"
COMMITTED = {"isolationLevel": "read_committed"}


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[WrittenLogs]:
    """Offsets 0 to 19 of plain-0, and money-0: 0-1 plain, 2-3 aborted at 4, 5-6 open."""
    written = WrittenLogs(tmp_path / "node-1", 1)
    for _ in range(2):
        written.append("plain", 0, 10)
    written.append("money", 0, 2)
    written.append("money", 0, 2, producer_id=1, sequence=0, is_transactional=True)
    written.mark("money", 0, 1, abort=True)
    written.append("money", 0, 2, producer_id=2, sequence=0, is_transactional=True)
    yield written
    if written.logs is not None:
        written.close()


def reader_of(logs: WrittenLogs, **options: str) -> LogStreamReader:
    given = {"path": str(logs.path), **options}
    return LogStreamReader(parse_log_options(given), RECORDS, 2)


def parts(reader: LogStreamReader, start: Any, end: Any) -> list[LogPart]:
    tasks = [cast(ViewPartition, each).task for each in reader.partitions(start, end)]
    return [part for task in tasks for part in task.parts]


def offsets(reader: LogStreamReader, start: Any, end: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for task in reader.partitions(start, end):
        for batch in reader.read(task):
            for row in batch.select(["topic", "offset"]).to_pylist():
                found.setdefault(row["topic"], []).append(row["offset"])
    return found


BEGIN = {"money": {"0": 0}, "plain": {"0": 0}}
END = {"money": {"0": 7}, "plain": {"0": 20}}
STABLE = {"money": {"0": 5}, "plain": {"0": 20}}


def test_limit_of_a_trigger_is_that_of_the_options(logs: WrittenLogs) -> None:
    assert type(reader_of(logs).getDefaultReadLimit()) is ReadAllAvailable
    limit = reader_of(logs, maxOffsetsPerTrigger="7").getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    assert limit.max_rows == 7


@pytest.mark.parametrize(("options", "end"), [({}, END), (COMMITTED, STABLE)])
def test_stream_ends_where_its_records_are_decided(
    logs: WrittenLogs, options: dict[str, str], end: Any
) -> None:
    reader = reader_of(logs, **options)
    assert reader.initialOffset() == BEGIN
    assert reader.latestOffset(BEGIN, ReadAllAvailable()) == end
    assert reader.reportLatestOffset() == end
    assert reader.latestOffset({}, ReadAllAvailable()) == end, "new partitions begin at 0"
    reader.prepareForTriggerAvailableNow()
    logs.append("plain", 0, 5)
    logs.append("late", 1, 5)
    assert reader.latestOffset(BEGIN, ReadAllAvailable()) == end
    assert reader.reportLatestOffset() == end | {"late": {"1": 5}, "plain": {"0": 25}}


def test_tasks_have_the_aborted_transactions_that_concern_them(logs: WrittenLogs) -> None:
    reader = reader_of(logs, **COMMITTED)
    found = parts(reader, BEGIN, STABLE)
    assert {(each.topic, each.offsets.end, each.history) for each in found} == {
        ("money", 5, ()),
        ("plain", 20, ()),
    }
    aborted = {each.topic: each.aborted for each in found}
    assert aborted["plain"] == ()
    ((transaction,),) = [aborted["money"]]
    assert (transaction.producer_id, transaction.first_offset, transaction.last_offset) == (1, 2, 4)
    late = parts(reader, {"money": {"0": 5}, "plain": {"0": 0}}, END)
    assert all(each.aborted == () for each in late), "it ended before"
    early = parts(reader, BEGIN, {"money": {"0": 2}})
    assert [each.aborted for each in early] == [()], "it begins behind"
    assert all(each.aborted is None for each in parts(reader_of(logs), BEGIN, END))
    assert offsets(reader, BEGIN, STABLE) == {"money": [0, 1], "plain": [*range(20)]}
    assert offsets(reader_of(logs), BEGIN, END)["money"] == [0, 1, 2, 3, 5, 6]


def test_tasks_have_the_offsets_between_two_ends(logs: WrittenLogs) -> None:
    reader = reader_of(logs, topics="plain")
    found = parts(reader, {"plain": {"0": 5}}, {"plain": {"0": 12}})
    assert [each.offsets for each in found] == [OffsetRange(5, 12)]
    assert parts(reader, {"plain": {"0": 5}}, {"plain": {"0": 5}}) == []
    assert [each.offsets for each in parts(reader, {}, {"plain": {"0": 12}})] == [
        OffsetRange(0, 12)
    ]


def line_of(reader: LogStreamReader, start: Any, end: Any) -> str:
    with pytest.raises(PipelineError) as refused:
        reader.partitions(start, end)
    return str(refused.value)


def test_loss_ends_a_stream_or_is_passed_over(logs: WrittenLogs) -> None:
    strict, loose = reader_of(logs), reader_of(logs, failOnDataLoss="false")
    gone = {"plain": {"0": 20, "7": 3}}
    assert line_of(strict, BEGIN, gone) == f"plain-7 is no longer in {logs.path}{GO_ON}"
    assert [each.offsets for each in parts(loose, BEGIN, gone)] == [OffsetRange(0, 20)]
    back = {"plain": {"0": 30}}
    assert line_of(strict, back, {"plain": {"0": 20}}) == (
        f"plain-0 ended at 30 and now ends at 20{GO_ON}"
    )
    assert parts(loose, back, {"plain": {"0": 20}}) == []
    log = logs.log("plain", 0)
    log.advance_log_start_offset(Offset(12))
    logs.close()
    deleted = line_of(reader_of(logs), BEGIN, {"plain": {"0": 20}})
    assert deleted == f"plain-0: offsets from 0 were deleted, it begins at 12{GO_ON}"
    found = parts(reader_of(logs, failOnDataLoss="false"), BEGIN, {"plain": {"0": 20}})
    assert [each.offsets for each in found] == [OffsetRange(12, 20)]
    physical = reader_of(logs, startingOffsets="physical")
    assert [each.offsets for each in parts(physical, BEGIN, {"plain": {"0": 20}})] == [
        OffsetRange(0, 20)
    ]
    assert reader_of(logs, topics="plain").initialOffset() == {"plain": {"0": 12}}
    later = reader_of(logs, topics="plain", startingOffsets='{"plain":{"0":15}}')
    assert later.initialOffset() == {"plain": {"0": 15}}


@pytest.mark.parametrize(
    ("began", "ends", "most", "reached"),
    [
        ((0, 0), (10, 30), 40, (10, 30)),
        ((0, 0), (10, 30), 39, (10, 29)),
        ((0, 0), (10, 30), 4, (1, 3)),
        ((5, 0), (5, 30), 4, (5, 4)),
        ((9, 0), (5, 30), 4, (5, 4)),
        ((0, 0), (1, 99), 10, (1, 9)),
    ],
)
def test_limit_is_shared_by_backlog(
    began: tuple[int, int], ends: tuple[int, int], most: int, reached: tuple[int, int]
) -> None:
    keys: list[Any] = [("a", 0), ("b", 0)]
    found = limited(dict(zip(keys, began, strict=True)), dict(zip(keys, ends, strict=True)), most)
    assert found == dict(zip(keys, reached, strict=True))
