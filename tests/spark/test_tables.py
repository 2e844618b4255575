"""The tables of a metadata log say at every offset what a sequential replay says there."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, uuid_to_text
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.planning import LogPart
from kraft_wire.spark.kraftlog.views import metadata_log, read_view
from kraft_wire.spark.metadata.history_reading import AsOf, parse_as_of, read_history
from kraft_wire.spark.metadata.metadata_tables import TABLE_SCHEMAS, tables_of
from kraft_wire.spark.metadata.metadata_views import image_at, partition_rows
from kraft_wire.spark.verbs.tables import write_tables
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from tests.spark.metadata_logs import (
    AGAIN,
    BEGAN_MS,
    GONE,
    SECOND_MS,
    batches,
    change,
    partition,
    write_metadata_log,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FS = OsFileSystem()
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    write_metadata_log(tmp_path / "node-1", CLUSTER_ID, batches())
    return tmp_path / "node-1"


def log_of(node: Path) -> LogPart:
    return metadata_log(FS, parse_log_options({"path": str(node), "view": "metadata"}))


def tables(node: Path, as_of: str | None = None) -> dict[str, pa.Table]:
    return tables_of(read_history(FS, log_of(node), parse_as_of(as_of)), CLUSTER_ID)


def at(changes: pa.Table, offset: int) -> list[dict[str, Any]]:
    """The states that are true before an offset, with the columns of the view `partitions`."""
    chosen = [
        row
        for row in changes.to_pylist()
        if row["fromOffset"] < offset
        and (row["untilOffset"] is None or row["untilOffset"] >= offset)
    ]
    names = [
        *("topic", "topicId", "partition", "replicas", "isr"),
        *("leader", "leaderEpoch", "partitionEpoch"),
    ]
    found = [{name: row[name] for name in names} for row in chosen]
    return sorted(found, key=lambda row: (row["topic"], row["partition"]))


def test_changes_at_every_offset_are_the_replayed_image_there(node: Path) -> None:
    part = log_of(node)
    changes = tables(node)["partition_changes"]
    end = read_history(FS, part, parse_as_of(None)).end.offset + 1
    assert end == 30
    for offset in range(1, end + 1):
        wanted = list(partition_rows(image_at(FS, part, as_of_offset=offset)))
        assert at(changes, offset) == wanted, offset


def test_tables_as_of_every_offset_are_the_replayed_image_there(node: Path) -> None:
    part = log_of(node)
    for offset in range(1, 31):
        read = read_history(FS, part, parse_as_of(str(offset)))
        image = read.history.image(read.end, read.epoch)
        wanted = image_at(FS, part, as_of_offset=offset)
        for name in ("topics_by_name", "topic_names", "configs", "finalized_features", "brokers"):
            assert getattr(image, name) == getattr(wanted, name), (offset, name)
        own = at(tables(node, str(offset))["partition_changes"], offset)
        assert own == list(partition_rows(wanted))


def test_removed_topic_ends_its_intervals_and_its_settings(node: Path) -> None:
    found = tables(node)
    configs = found["configs"].to_pylist()
    assert [(row["resource"], row["value"]) for row in configs] == [("orders", "5")]
    gone = [r for r in found["partition_changes"].to_pylist() if r["topic"] == "gone"]
    assert len({row["topicId"] for row in gone}) == 2
    assert [row["untilOffset"] is None for row in gone] == [False, True]
    assert not [row for row in found["topics"].to_pylist() if row["topic"] == "never"]


def test_topic_id_that_comes_again_is_another_topic_whose_partitions_begin_anew(
    tmp_path: Path,
) -> None:
    """No cluster draws an id twice; a log that was put together by hand may hold it."""
    lives = [
        [TopicRecord(name=name, topic_id=GONE), partition(GONE, 0), change(GONE, 0, leader=to)]
        for name, to in (("first", 2), ("second", 3))
    ]
    given = [batches()[0], lives[0], [RemoveTopicRecord(topic_id=GONE)], lives[1]]
    write_metadata_log(tmp_path, CLUSTER_ID, given)
    found = tables(tmp_path)
    changes = [
        (row["topic"], row["leader"], row["fromOffset"], row["untilOffset"])
        for row in found["partition_changes"].to_pylist()
    ]
    assert changes == [
        *(("first", 1, 3, 4), ("first", 2, 4, 5)),
        *(("second", 1, 7, 8), ("second", 3, 8, None)),
    ]
    elections = [(row["topic"], row["toLeader"]) for row in found["elections"].to_pylist()]
    assert elections == [("__cluster_metadata", 1), ("first", 2), ("second", 3)]


def test_time_that_no_clock_has_is_null(tmp_path: Path) -> None:
    """A producer of records, or damage under a right checksum, writes what it likes."""
    write_metadata_log(tmp_path, CLUSTER_ID, batches(), began_ms=1 << 61)
    found = tables(tmp_path)
    for name in ("topics", "partition_changes", "elections"):
        times = [column for column in found[name].column_names if "imestamp" in column]
        assert times
        assert all(found[name][column].null_count == found[name].num_rows for column in times)
    known = found["partition_changes"]["fromOffset"]
    assert known.null_count == 0


def test_states_stand_by_topic_partition_and_time(node: Path) -> None:
    found = tables(node)
    changes = [
        (row["topic"], row["partition"], row["fromOffset"])
        for row in found["partition_changes"].to_pylist()
        if row["topic"] == "orders"
    ]
    lives = [r["topicId"] for r in found["partition_changes"].to_pylist() if r["topic"] == "gone"]
    assert changes == sorted(changes)
    assert lives == [uuid_to_text(GONE), uuid_to_text(AGAIN)]
    assert [row["topic"] for row in found["partition_changes"].to_pylist()] == (
        ["gone"] * 2 + ["orders"] * len(changes)
    )
    lasting = [(row["topic"], row["partition"]) for row in found["partitions"].to_pylist()]
    assert lasting == [("gone", 0), *(("orders", number) for number in range(4))]


def test_elections_name_old_and_new_leader_and_the_unclean_one(node: Path) -> None:
    rows = tables(node)["elections"].to_pylist()
    told = [
        (row["topic"], row["partition"], row["fromLeader"], row["toLeader"], row["isUnclean"])
        for row in rows
    ]
    assert told == [
        ("__cluster_metadata", 0, -1, 1, False),
        ("orders", 3, 1, 2, False),
        ("orders", 1, 1, -1, False),
        ("orders", 1, -1, 3, True),
    ]
    assert rows[0]["offset"] == 0


def test_time_is_an_end_like_an_offset(node: Path) -> None:
    time = datetime.fromtimestamp((BEGAN_MS + 4 * SECOND_MS) // 1000, UTC).isoformat()
    found = tables(node, time)["elections"].to_pylist()
    assert [row["topic"] for row in found] == ["__cluster_metadata", "orders"]
    with pytest.raises(PipelineError, match="neither an offset nor a time"):
        parse_as_of("yesterday")


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-03-01T12:00:00", 12),
        ("2026-03-01T12:00:00Z", 12),
        ("2026-03-01T12:00:00+02:00", 10),
        ("2026-03-01 12:00:00-01:30", 13.5),
    ],
)
def test_time_without_a_zone_is_of_utc(text: str, hour: float) -> None:
    start_ms = 1_772_323_200_000  # 2026-03-01
    assert parse_as_of(text) == AsOf(timestamp_ms=round(start_ms + hour * 3_600_000))


@pytest.mark.parametrize(("kraft_version", "told"), [(0, {}), (1, {"kraft.version": 1})])
def test_features_are_those_that_clients_are_told(
    tmp_path: Path, kraft_version: int, told: dict[str, int]
) -> None:
    write_metadata_log(tmp_path / "node", CLUSTER_ID, batches()[:1], kraft_version)
    rows = tables(tmp_path / "node")["features"].to_pylist()
    assert {row["feature"]: row["level"] for row in rows} == told | {"metadata.version": 30}


def snapshot_alone(node: Path, last_ms: int) -> None:
    """Leave a node's snapshot at offset 7, whose last record has this time, and no log."""
    write_metadata_log(node, CLUSTER_ID, [])
    directory = node / "__cluster_metadata-0"
    (directory / f"{0:020d}.log").unlink()
    snapshot_id = OffsetAndEpoch(Offset(7), LeaderEpoch(1))
    head = SnapshotHead(last_ms, last_ms, (KRaftVersionRecord(kraft_version=1),))
    writer = SnapshotWriter(FS, str(directory), snapshot_id, attempt=0)
    for batch in snapshot_batches(snapshot_id, head, []):
        writer.append(batch)
    writer.freeze()


def test_kraft_version_is_the_snapshots_where_the_log_is_gone(tmp_path: Path) -> None:
    snapshot_alone(tmp_path, BEGAN_MS)
    rows = tables(tmp_path)["features"].to_pylist()
    assert [(row["feature"], row["level"]) for row in rows] == [("kraft.version", 1)]


@pytest.mark.parametrize(
    ("last_ms", "told"),
    [
        (BEGAN_MS + 1, "2023-11-14T22:13:21Z"),
        ((1 << 62) + 1, "146140482-04-24T15:36:28Z"),
    ],
)
def test_time_before_all_that_is_left_is_refused_with_the_first_that_is_not(
    tmp_path: Path, last_ms: int, told: str
) -> None:
    snapshot_alone(tmp_path, last_ms)
    with pytest.raises(PipelineError, match=f"goes back to {told}: ask for a later time"):
        tables(tmp_path, "2023-11-14T22:13:20Z")
    if last_ms < 1 << 62:
        assert tables(tmp_path, told)["features"].num_rows == 1


def test_snapshot_that_a_running_node_removes_meanwhile_has_no_row(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = OffsetAndEpoch(Offset(3), LeaderEpoch(1))
    monkeypatch.setattr(
        "kraft_wire.spark.metadata.snapshot_files.list_snapshots", lambda *_: [gone]
    )
    assert list(read_view({"path": str(node), "view": "snapshots"})) == []


def test_log_that_begins_behind_its_snapshots_is_refused(node: Path) -> None:
    log = node / "__cluster_metadata-0" / f"{0:020d}.log"
    log.rename(log.with_name(f"{7:020d}.log"))
    data = bytearray(log.with_name(f"{7:020d}.log").read_bytes())
    data[:8] = (7).to_bytes(8, "big")
    log.with_name(f"{7:020d}.log").write_bytes(data)
    with pytest.raises(PipelineError, match="neither the begin of its log nor a snapshot"):
        tables(node)


@pytest.mark.java
def test_two_clusters_are_written_together_or_not_at_all(
    spark: SparkSession, node: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    write_metadata_log(other, "AAAAAAAAAAAAAAAAAAAAAA", batches()[:4])
    output = tmp_path / "tables"
    written = write_tables(spark, [str(node), str(other)], str(output))
    assert {each.cluster_id for each in written} == {CLUSTER_ID, "AAAAAAAAAAAAAAAAAAAAAA"}
    assert sorted(path.name for path in output.iterdir()) == sorted(TABLE_SCHEMAS)
    for name, schema in TABLE_SCHEMAS.items():
        frame = spark.read.parquet(str(output / name))
        assert frame.columns == schema.names
        assert frame.count() == sum(each.rows[name] for each in written)
    with pytest.raises(PipelineError, match="already exists"):
        write_tables(spark, [str(node)], str(output))
    before = sorted(output.rglob("*.parquet"))
    log = other / "__cluster_metadata-0" / f"{0:020d}.log"
    damaged = bytearray(log.read_bytes())
    damaged[100] ^= 1
    log.write_bytes(damaged)
    with pytest.raises(PipelineError, match="wrong checksum"):
        write_tables(spark, [str(node), str(other)], str(output), overwrite=True)
    assert sorted(output.rglob("*.parquet")) == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
