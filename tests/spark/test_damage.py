"""Damaged logs without Spark: `fail` names the place, `skip` and `report` read what is whole."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from kraft_wire.columnar import BATCHES, RECORDS
from kraft_wire.spark import PipelineError, parse_log_options, plan_view, read_task, read_view
from kraft_wire.storage.os_files import OsFileSystem
from tests.spark.log_directories import WrittenLogs

SMALL_TASKS = {"maxPartitionBytes": "3000", "openCostInBytes": "1"}
FAULTS = 20


@pytest.fixture
def damaged(tmp_path: Path, written: WrittenLogs) -> Path:
    """A copy that may be damaged."""
    return Path(shutil.copytree(written.path, tmp_path / "damaged"))


def table_of(path: Path, columns: tuple[str, ...] = (), **options: str) -> pa.Table:
    """A view as one table."""
    schema = BATCHES if options.get("view") == "batches" else RECORDS
    batches = list(read_view({"path": str(path), **options}, columns))
    if columns:
        schema = pa.schema([schema.field(name) for name in columns])
    return pa.Table.from_batches(batches, schema)


def places(table: pa.Table) -> list[tuple[str, int, int]]:
    """Topic, partition and offset of every row."""
    names = ("topic", "partition", "offset")
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))


def segment(path: Path, partition: str, index: int) -> Path:
    """One of the segments of a partition."""
    return sorted((path / partition).glob("*.log"))[index]


def flip(file: Path, position: int) -> None:
    """Change one bit."""
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(("index", "at"), [(1, 0), (-1, 0), (-1, -1)])
def test_flipped_bit_is_named_skipped_and_reported(
    damaged: Path, written: WrittenLogs, capsys: pytest.CaptureFixture[str], index: int, at: int
) -> None:
    """The end of a log is no better than the rest of it, where it is whole and wrong."""
    whole = table_of(damaged, view="batches")
    file = segment(damaged, "plain-0", index)
    row = [
        row
        for row in whole.to_pylist()
        if (row["topic"], row["partition"], row["segment"]) == ("plain", 0, file.name)
    ][at]
    flip(file, row["position"] + row["sizeInBytes"] - 1)
    with pytest.raises(
        PipelineError, match=r"plain-0/\d+\.log position \d+ \(node 1\): .*checksum"
    ):
        table_of(damaged)
    lost = range(row["baseOffset"], row["lastOffset"] + 1)
    wanted = [
        place
        for place in sorted((r.topic, r.partition, r.offset) for r in written.records)
        if place[:2] != ("plain", 0) or place[2] not in lost
    ]
    assert places(table_of(damaged, onCorrupt="skip")) == wanted
    assert capsys.readouterr().err == ""
    assert places(table_of(damaged, onCorrupt="report")) == wanted
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kraftlog: {file} position {row['position']} (node 1): ")
    first, last = row["baseOffset"], row["lastOffset"]
    said = f"offsets from {first} on" if at == -1 else f"offsets {first} to {last}"
    assert f"(node 1): {said if first < last or at == -1 else f'offset {first}'}: " in line
    statuses = table_of(damaged, view="batches")["status"].to_pylist()
    assert statuses.count("crc") == 1
    assert statuses.count("ok") == len(whole) - 1


def test_damage_outside_of_the_offsets_that_are_asked_for_does_no_harm(damaged: Path) -> None:
    flip(segment(damaged, "plain-0", 0), 200)
    first = int(segment(damaged, "plain-0", 1).stem)
    start = f'{{"plain":{{"0":{first}}}}}'
    table = table_of(damaged, assign='{"plain":[0]}', startingOffsets=start)
    assert table["offset"][0].as_py() == first
    flip(segment(damaged, "plain-1", -1), 100)
    last = int(segment(damaged, "plain-1", -1).stem)
    end = f'{{"plain":{{"1":{last}}}}}'
    assert len(table_of(damaged, assign='{"plain":[1]}', endingOffsets=end)) == last


def test_torn_end_of_a_log_is_no_damage_but_that_of_an_older_segment_is(damaged: Path) -> None:
    whole = len(table_of(damaged))
    tail = segment(damaged, "plain-0", -1)
    with tail.open("ab") as file:
        file.write(bytes(5000))
    assert len(table_of(damaged)) == whole
    assert table_of(damaged, view="batches")["status"].to_pylist().count("torn") == 1
    older = segment(damaged, "plain-0", 0)
    older.write_bytes(older.read_bytes()[:-7])
    with pytest.raises(PipelineError, match="are no batch"):
        table_of(damaged)


def test_division_into_small_tasks_shows_the_same_batches_whatever_is_damaged(
    damaged: Path,
) -> None:
    random_source = random.Random(5)
    files = sorted(damaged.glob("*/*.log"))
    for _ in range(FAULTS):
        file = random_source.choice([each for each in files if each.stat().st_size])
        position = random_source.randrange(file.stat().st_size)
        flip(file, position)
        divided = table_of(damaged, view="batches", **SMALL_TASKS)
        whole = table_of(damaged, view="batches")
        assert divided.equals(whole), (file, position)
        records = [table_of(damaged, onCorrupt="skip", **more) for more in ({}, SMALL_TASKS)]
        assert records[0].equals(records[1]), (file, position)
        flip(file, position)


def test_index_that_lies_divides_nothing_wrongly(damaged: Path, written: WrittenLogs) -> None:
    random_source = random.Random(6)
    for index in sorted(damaged.glob("*/*.index")):
        data = bytearray(index.read_bytes())
        for at in range(3, len(data), 8):
            data[at + random_source.choice((0, 4))] ^= 1 << random_source.randrange(8)
        index.write_bytes(data)
    found = places(table_of(damaged, **SMALL_TASKS))
    assert found == sorted((r.topic, r.partition, r.offset) for r in written.records)


def test_file_that_is_gone_is_data_loss(damaged: Path) -> None:
    fs = OsFileSystem()
    for fails in ("true", "false"):
        copy = damaged.parent / fails
        shutil.copytree(damaged, copy)
        options = parse_log_options({"path": str(copy), "topics": "plain", "failOnDataLoss": fails})
        tasks = plan_view(fs, options, 2)
        gone = segment(copy, "plain-1", 1)
        gone.unlink()

        def rows(tasks=tasks, options=options) -> int:  # type: ignore[no-untyped-def]  # bound here
            found = (read_task(fs, task, options, RECORDS) for task in tasks)
            return sum(batch.num_rows for task in found for batch in task)

        if fails == "true":
            with pytest.raises(PipelineError, match=f"{gone} was deleted"):
                rows()
        else:
            assert rows() > 0


def test_offset_that_is_damaged_ends_no_read(damaged: Path, written: WrittenLogs) -> None:
    row = table_of(damaged, view="batches", assign='{"plain":[0]}').to_pylist()[5]
    file = damaged / "plain-0" / row["segment"]
    for byte in (0, 1, 5):  # under no checksum; the first makes the offset negative
        copy = Path(shutil.copytree(damaged, damaged.parent / f"byte-{byte}"))
        data = bytearray(file.read_bytes())
        data[row["position"] + byte] ^= 0x80
        (copy / "plain-0" / file.name).write_bytes(data)
        end = '{"plain":{"0":600}}'
        for options in ({}, {"endingOffsets": end}, SMALL_TASKS | {"endingOffsets": end}):
            found = {offset for _, _, offset in places(table_of(copy, topics="plain", **options))}
            lost = set(range(row["baseOffset"], row["lastOffset"] + 1))
            assert found >= set(range(600)) - lost
        shown = table_of(copy, view="batches", assign='{"plain":[0]}').to_pylist()
        assert len(shown) == 60


def test_marker_that_is_damaged_decides_nothing_even_behind_what_is_asked_for(
    damaged: Path,
) -> None:
    rows = table_of(damaged, view="batches", topics="money").to_pylist()
    marker = next(row for row in rows if row["isControl"])
    flip(damaged / "money-0" / marker["segment"], marker["position"] + 61)
    before = {"topics": "money", "endingOffsets": '{"money":{"0":5}}'}
    assert len(table_of(damaged, **before)) == 5
    with pytest.raises(PipelineError, match=f"position {marker['position']} "):
        table_of(damaged, isolationLevel="read_committed", **before)
