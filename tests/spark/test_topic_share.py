"""Several tasks replay one metadata log, each for some topics: together they say what one says."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kraft_wire.metadata.records import (
    PARTITION_HEADS,
    TOPIC_ID,
    VersionedRecord,
    decode_record,
    encode_record,
)
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.planning import LogPart
from kraft_wire.spark.kraftlog.views import metadata_log
from kraft_wire.spark.metadata.history_reading import parse_as_of, read_history
from kraft_wire.spark.metadata.metadata_tables import TABLE_SCHEMAS, tables_of
from kraft_wire.spark.metadata.topic_share import TopicShare
from kraft_wire.spark.verbs import tables as verb
from kraft_wire.spark.verbs.tables import WrittenTables, write_tables
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message
from tests.spark.metadata_logs import (
    AGAIN,
    BEGAN_MS,
    GONE,
    ORDERS,
    batches,
    change,
    partition,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FS = OsFileSystem()
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
LOG = f"__cluster_metadata-0/{0:020d}.log"


def log_of(node: Path) -> LogPart:
    return metadata_log(FS, parse_log_options({"path": str(node), "view": "metadata"}))


def rows_of(node: Path, share: TopicShare, as_of: str | None = None) -> dict[str, list[Any]]:
    """The tables of one share, each row as text."""
    read = read_history(FS, log_of(node), parse_as_of(as_of), share)
    found = tables_of(read, CLUSTER_ID)
    return {name: list(map(str, found[name].to_pylist())) for name in TABLE_SCHEMAS}


def assert_shares_make_the_whole(node: Path, tasks: int, as_of: str | None = None) -> None:
    whole = rows_of(node, TopicShare(), as_of)
    shares = [rows_of(node, TopicShare(number, tasks), as_of) for number in range(tasks)]
    for name in TABLE_SCHEMAS:
        together = [row for share in shares for row in share[name]]
        assert sorted(together) == sorted(whole[name]), (name, as_of)


@pytest.mark.parametrize("tasks", [1, 2, 3, 5])
def test_tables_of_all_shares_are_those_of_one_reader_at_every_offset(
    tmp_path: Path, tasks: int
) -> None:
    end = write_metadata_log(tmp_path, CLUSTER_ID, batches())
    for offset in range(1, end + 1):
        assert_shares_make_the_whole(tmp_path, tasks, str(offset))
    assert_shares_make_the_whole(tmp_path, tasks)


@pytest.mark.parametrize("tasks", [2, 3])
def test_tables_of_all_shares_are_those_of_one_reader_behind_a_snapshot(
    tmp_path: Path, tasks: int
) -> None:
    image = [message for batch in batches()[:3] for message in batch]
    image += [TopicRecord(name="gone", topic_id=GONE), partition(GONE, 0)]
    write_metadata_log(tmp_path, CLUSTER_ID, [])
    directory = tmp_path / "__cluster_metadata-0"
    (directory / f"{0:020d}.log").unlink()
    snapshot_id = OffsetAndEpoch(Offset(70), LeaderEpoch(1))
    writer = SnapshotWriter(FS, str(directory), snapshot_id, attempt=0)
    values = [encode_record(VersionedRecord(each, each.MAX_VERSION)) for each in image]
    for batch in snapshot_batches(snapshot_id, SnapshotHead(BEGAN_MS, BEGAN_MS, ()), values):
        writer.append(batch)
    writer.freeze()
    assert len(rows_of(tmp_path, TopicShare())["partitions"]) == 5
    assert_shares_make_the_whole(tmp_path, tasks)


def test_topic_id_stands_where_it_is_looked_for_in_every_version() -> None:
    heads = set()
    for made in (partition(ORDERS, 3), change(GONE, 3, leader=2)):
        for version in range(made.MIN_VERSION, made.MAX_VERSION + 1):
            sent = type(made)(partition_id=3, topic_id=made.topic_id)
            value = encode_record(VersionedRecord(sent, version))
            assert value[TOPIC_ID] == made.topic_id
            heads.add(value[:3])
    assert heads == PARTITION_HEADS


def test_record_whose_head_wastes_bytes_is_in_one_share() -> None:
    """Its topic's id is not where it mostly is."""
    entries = [
        (0, BEGAN_MS, value)
        for message in (
            TopicRecord(name="a", topic_id=ORDERS),
            TopicRecord(name="b", topic_id=AGAIN),
            partition(ORDERS, 0),
            partition(AGAIN, 0),
        )
        for value in [encode_record(VersionedRecord(message, message.MAX_VERSION))]
    ]
    wasteful = [(at, time, b"\x81\x00" + value[1:]) for at, time, value in entries]
    assert decode_record(wasteful[2][2]) == decode_record(entries[2][2])
    for number, topic_id in enumerate((ORDERS, AGAIN)):
        for given in (entries, wasteful):
            found = [message for _, _, message in TopicShare(number, 2).messages(given)]
            assert found[2:] == [partition(topic_id, 0)]


# -- the verb ------------------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Has three tasks a cluster run in this process; returns who may do something after each."""
    after: list[Callable[[], None]] = []

    def run(
        _spark: object, tasks: Sequence[Any], work: Callable[[Any], Any], **_: object
    ) -> list[Any]:
        results = []
        for number, task in enumerate(tasks):
            monkeypatch.setattr(verb, "attempt_name", lambda number=number: str(number))
            results.append(work(task))
            for each in after:
                each()
        return results

    monkeypatch.setattr(verb, "run_on_workers", run)
    monkeypatch.setattr(verb, "parallelism_of", lambda _: 3)
    monkeypatch.setattr(verb, "_SHARE_BYTES", 1)
    return after.append


def written(nodes: Sequence[Path], output: Path) -> WrittenTables:
    nobody: Any = None
    (found,) = write_tables(nobody, list(map(str, nodes)), str(output))
    return found


def read_back(output: Path) -> dict[str, list[str]]:
    found: dict[str, pa.Table] = {name: parquet.read_table(output / name) for name in TABLE_SCHEMAS}
    return {name: sorted(map(str, table.to_pylist())) for name, table in found.items()}


def whole(node: Path, as_of: str | None = None) -> dict[str, list[str]]:
    return {name: sorted(rows) for name, rows in rows_of(node, TopicShare(), as_of).items()}


def fault(node: Path) -> None:
    """A log of which one share alone has something that cannot be."""
    given: list[list[Message]] = [*batches()[:13], [change(AGAIN, 7, leader=2)]]
    write_metadata_log(node, CLUSTER_ID, given)


@pytest.mark.usefixtures("here")
def test_files_of_three_tasks_hold_the_tables_of_one(tmp_path: Path) -> None:
    write_metadata_log(tmp_path / "node", CLUSTER_ID, batches())
    found = written([tmp_path / "node"], tmp_path / "out")
    assert read_back(tmp_path / "out") == whole(tmp_path / "node")
    assert found.rows == {name: len(rows) for name, rows in whole(tmp_path / "node").items()}
    assert (found.records, found.end_offset) == (29, 30)
    there = {str(path.relative_to(tmp_path / "out")) for path in tmp_path.glob("out/*/*")}
    assert there == set(found.files)


@pytest.mark.usefixtures("here")
def test_log_that_one_task_refuses_is_read_by_none(tmp_path: Path) -> None:
    fault(tmp_path / "node-1")
    write_metadata_log(tmp_path / "node-2", CLUSTER_ID, batches()[:13])
    found = written([tmp_path / "node-1", tmp_path / "node-2"], tmp_path / "out")
    assert found.directory.startswith(str(tmp_path / "node-2"))
    assert read_back(tmp_path / "out") == whole(tmp_path / "node-2")


@pytest.mark.usefixtures("here")
def test_logs_that_are_all_refused_leave_the_first_one_s_reason_and_nothing_else(
    tmp_path: Path,
) -> None:
    fault(tmp_path / "node-1")
    fault(tmp_path / "node-2")
    with pytest.raises(PipelineError, match=r"node-1.*unknown partition gone-7"):
        written([tmp_path / "node-1", tmp_path / "node-2"], tmp_path / "out")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["node-1", "node-2"]


def test_log_that_grows_between_two_tasks_is_read_to_where_the_first_came(
    tmp_path: Path, here: Callable[[Callable[[], None]], None]
) -> None:
    """As where a node fills space that it had preallocated."""
    end = write_metadata_log(tmp_path / "short", CLUSTER_ID, batches()[:9])
    write_metadata_log(tmp_path / "node", CLUSTER_ID, batches())
    log = tmp_path / "node" / LOG
    longer = log.read_bytes()
    shorter = (tmp_path / "short" / LOG).read_bytes()
    log.write_bytes(shorter.ljust(len(longer), b"\0"))

    def grow() -> None:
        log.write_bytes(longer)

    here(grow)
    found = written([tmp_path / "node"], tmp_path / "out")
    assert found.end_offset == end
    assert read_back(tmp_path / "out") == whole(tmp_path / "short")


def test_log_that_never_stays_the_same_is_refused(
    tmp_path: Path, here: Callable[[Callable[[], None]], None]
) -> None:
    """As where leaders with other epochs write it anew again and again."""
    write_metadata_log(tmp_path / "node", CLUSTER_ID, batches()[:4])
    log = tmp_path / "node" / LOG
    other = bytearray(log.read_bytes())
    last = other.rindex(struct.pack(">qi", 9, len(other) - other.rindex(struct.pack(">q", 9)) - 12))
    struct.pack_into(">i", other, last + 12, 2)  # its leader epoch, which is under no checksum
    both = [log.read_bytes(), bytes(other)]

    def swap() -> None:
        both.reverse()
        log.write_bytes(both[0])

    here(swap)
    with pytest.raises(PipelineError, match="changes while it is read"):
        written([tmp_path / "node"], tmp_path / "out")


@pytest.mark.java
def test_spark_s_tasks_write_the_tables_of_one_reader(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verb, "_SHARE_BYTES", 1)
    write_metadata_log(tmp_path / "node", CLUSTER_ID, batches())
    (found,) = write_tables(spark, [str(tmp_path / "node")], str(tmp_path / "out"))
    assert read_back(tmp_path / "out") == whole(tmp_path / "node")
    assert len({name.rpartition("/")[2] for name in found.files}) > 1
