"""read_committed in many tasks: the rows of one, whatever a node left beside the segments."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.schemas import view_schema
from kraft_wire.spark.kraftlog.views import ViewTask, plan_view, read_task
from kraft_wire.storage.files import File
from kraft_wire.storage.os_files import OsFileSystem
from tests.spark.log_directories import WrittenLogs

SEGMENT_BYTES = 3_000
BATCHES = 400
PRODUCERS = 5
STAYS_OPEN = 9
DIVIDED = {"maxPartitionBytes": "1", "openCostInBytes": "1"}


class Opened(OsFileSystem):
    """Notes which segments a task reads."""

    def __init__(self) -> None:
        super().__init__()
        self.segments: set[str] = set()

    def open_for_reading(self, path: str) -> File:
        """Note the name."""
        self.segments.add(Path(path).name)
        return super().open_for_reading(path)


def write(path: Path, seed: int, *, open_from: int | None = None) -> WrittenLogs:
    """Transactions of several producers at a time, of one batch or over many segments."""
    random_source = random.Random(seed)
    written = WrittenLogs(path, 1)
    written.log("money", 0, SEGMENT_BYTES)
    sequence = dict.fromkeys(range(PRODUCERS), 0)
    fates: dict[int, tuple[bool, int]] = {}  # whether it aborts, and after how many batches
    for at in range(BATCHES):
        if at == open_from:
            written.append(
                "money",
                0,
                2,
                producer_id=STAYS_OPEN,
                sequence=0,
                is_transactional=True,
                is_open=True,
            )
        producer = random_source.randrange(PRODUCERS + 1)
        if producer == PRODUCERS:
            written.append("money", 0, random_source.randint(1, 4))
            continue
        if producer not in fates:
            fates[producer] = (random_source.random() < 0.4, random_source.choice((1, 2, 40)))
        is_aborted, left = fates[producer]
        count = random_source.randint(1, 4)
        written.append(
            "money",
            0,
            count,
            producer_id=producer,
            sequence=sequence[producer],
            is_transactional=True,
            is_aborted=is_aborted,
        )
        sequence[producer] += count
        fates[producer] = (is_aborted, left - 1)
        if left == 1:
            written.mark("money", 0, producer, abort=is_aborted)
            del fates[producer]
    for producer, (is_aborted, _) in fates.items():
        written.mark("money", 0, producer, abort=is_aborted)
    written.close()
    return written


def tasks_of(written: WrittenLogs, **options: str) -> list[ViewTask]:
    """The tasks of a query for what is committed."""
    return plan_view(OsFileSystem(), parse_log_options(given(written) | options), 64)


def given(written: WrittenLogs) -> dict[str, str]:
    return {"path": str(written.path), "isolationLevel": "read_committed", **DIVIDED}


def offsets_of(written: WrittenLogs, task: ViewTask, **options: str) -> tuple[list[int], set[str]]:
    """What one task reads, and which segments it opens for that."""
    fs = Opened()
    parsed = parse_log_options(given(written) | options)
    batches = list(read_task(fs, task, parsed, view_schema(parsed)))
    table = pa.Table.from_batches(batches, view_schema(parsed))
    return table["offset"].to_pylist(), fs.segments


def all_offsets(written: WrittenLogs, **options: str) -> list[int]:
    return [
        offset
        for task in tasks_of(written, **options)
        for offset in offsets_of(written, task, **options)[0]
    ]


def committed(written: WrittenLogs) -> list[int]:
    return [record.offset for record in written.visible(committed=True)]


def segments(written: WrittenLogs) -> list[Path]:
    return sorted((written.path / "money-0").glob("*.log"))


@pytest.mark.parametrize("seed", range(4))
def test_each_segment_is_a_task_and_together_they_show_what_is_committed(
    tmp_path: Path, seed: int
) -> None:
    written = write(tmp_path / "node", seed)
    assert len(tasks_of(written)) == len(segments(written)) > 10
    assert all_offsets(written) == committed(written)


@pytest.mark.parametrize("open_from", [0, 150, BATCHES - 3])
def test_transaction_that_never_ends_hides_what_is_behind_it_in_every_task(
    tmp_path: Path, open_from: int
) -> None:
    written = write(tmp_path / "node", 7, open_from=open_from)
    assert all_offsets(written) == committed(written)


def test_task_behind_a_transaction_that_never_ends_does_not_read_all_that_follows(
    tmp_path: Path,
) -> None:
    written = WrittenLogs(tmp_path / "node", 1)
    written.log("money", 0, SEGMENT_BYTES)
    written.append("money", 0, 2, producer_id=7, sequence=0, is_transactional=True, is_open=True)
    for _ in range(80):
        written.append("money", 0, 3)
    written.close()
    names = [path.name for path in segments(written)]
    tasks = tasks_of(written)
    assert len(tasks) == len(names) > 5
    for task, own in zip(tasks, names, strict=True):
        assert offsets_of(written, task) == ([], {own, names[-1]})


def test_without_producer_snapshots_a_log_is_one_task(tmp_path: Path) -> None:
    written = write(tmp_path / "node", 1, open_from=300)
    for path in (written.path / "money-0").glob("*.snapshot"):
        path.unlink()
    assert len(tasks_of(written)) == 1
    assert all_offsets(written) == committed(written)


def test_producer_snapshot_of_the_newest_segment_says_nothing_of_the_first(tmp_path: Path) -> None:
    written = write(tmp_path / "node", 1, open_from=300)
    newest = segments(written)[-1].with_suffix(".snapshot")
    for path in (written.path / "money-0").glob("*.snapshot"):
        if path != newest:
            path.unlink()
    assert len(tasks_of(written)) == 2
    assert all_offsets(written) == committed(written)


def test_transaction_open_in_the_newest_segment_hides_no_older_end_of_its_producer(
    tmp_path: Path,
) -> None:
    """The first segment begins with nothing open, whatever is open at the end."""
    written = WrittenLogs(tmp_path / "node", 1)
    written.log("money", 0, SEGMENT_BYTES)
    written.append("money", 0, 2, producer_id=7, sequence=0, is_transactional=True, is_aborted=True)
    written.mark("money", 0, 7, abort=True)
    written.append("money", 0, 2, producer_id=7, sequence=2, is_transactional=True, is_open=True)
    for _ in range(30):
        written.append("money", 0, 4)
    written.close()
    newest = segments(written)[-1].with_suffix(".snapshot")
    assert newest.exists()
    assert all_offsets(written) == committed(written)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_producer_snapshots_are_done_without(tmp_path: Path, seed: int) -> None:
    written = write(tmp_path / "node", seed, open_from=350)
    random_source = random.Random(seed)
    snapshots = sorted((written.path / "money-0").glob("*.snapshot"))
    for path in random_source.sample(snapshots, len(snapshots) // 2):
        data = bytearray(path.read_bytes())
        data[random_source.randrange(len(data))] ^= 1
        path.write_bytes(data[: random_source.choice((len(data), len(data) // 2))])
    assert all_offsets(written) == committed(written)


def test_offsets_asked_for_begin_and_end_inside_of_transactions(tmp_path: Path) -> None:
    written = write(tmp_path / "node", 3)
    for start, end in ((0, 50), (120, 121), (200, 480), (333, 700)):
        bounds = {
            "startingOffsets": f'{{"money":{{"0":{start}}}}}',
            "endingOffsets": f'{{"money":{{"0":{end}}}}}',
        }
        wanted = [offset for offset in committed(written) if start <= offset < end]
        assert all_offsets(written, **bounds) == wanted


def test_transaction_that_compaction_removed_with_its_marker_hides_nothing(tmp_path: Path) -> None:
    written = WrittenLogs(tmp_path / "node", 1)
    written.log("money", 0, SEGMENT_BYTES)
    written.append("money", 0, 2, producer_id=7, sequence=0, is_transactional=True, is_aborted=True)
    for _ in range(40):
        written.append("money", 0, 3)
    written.mark("money", 0, 7, abort=True)
    for _ in range(40):
        written.append("money", 0, 3)
    written.close()
    options = parse_log_options({"path": str(written.path), "view": "batches"})
    for task in plan_view(OsFileSystem(), options, 1):
        for batch in read_task(OsFileSystem(), task, options, view_schema(options)):
            for row in reversed(batch.to_pylist()):
                if row["producerId"] == 7:
                    path = written.path / "money-0" / row["segment"]
                    data, at = path.read_bytes(), row["position"]
                    path.write_bytes(data[:at] + data[at + row["sizeInBytes"] :])
    assert len(tasks_of(written)) > 4
    assert all_offsets(written) == committed(written)
