"""The view `partitions` at offsets of a log with a snapshot, and faults of metadata logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, Uuid
from kraft_wire.spark import PipelineError, read_view
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.views import metadata_log
from kraft_wire.spark.metadata.history_reading import AsOf, read_history
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.spark.metadata_logs import BEGAN_MS, ORDERS, encoded, partition, write_metadata_log
from tests.storage.making import marker_bytes

FS = OsFileSystem()
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
OTHER = Uuid(bytes([2] * 16))
ORDERS_TEXT, OTHER_TEXT = "AQEBAQEBAQEBAQEBAQEBAQ", "AgICAgICAgICAgICAgICAg"
FIRST: list[Message] = [TopicRecord(name="orders", topic_id=ORDERS), partition(ORDERS, 0)]
SECOND: list[Message] = [partition(ORDERS, 1), TopicRecord(name="a", topic_id=OTHER)]
THIRD: list[Message] = [partition(OTHER, 0)]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A log with records at offsets 1 to 5, the election at 0."""
    write_metadata_log(tmp_path, CLUSTER_ID, [FIRST, SECOND, THIRD])
    return tmp_path


def place(node: Path) -> Path:
    return node / "__cluster_metadata-0"


def add_snapshot(node: Path, offset: int, records: Sequence[Message]) -> None:
    snapshot_id = OffsetAndEpoch(Offset(offset), LeaderEpoch(1))
    writer = SnapshotWriter(FS, str(place(node)), snapshot_id, attempt=0)
    values = [encoded(each) for each in records]
    for batch in snapshot_batches(snapshot_id, SnapshotHead(BEGAN_MS, BEGAN_MS), values):
        writer.append(batch)
    writer.freeze()


def begin_log_at(node: Path, offset: int, *batches: tuple[int, Sequence[Message]]) -> None:
    """Replace the log by one that begins later."""
    for old in place(node).glob("*.log"):
        old.unlink()
    data = b"".join(data_batch(base, records) for base, records in batches)
    (place(node) / f"{offset:020d}.log").write_bytes(data)


def data_batch(base: int, records: Sequence[Message]) -> bytes:
    values = [Record(None, encoded(each), timestamp=BEGAN_MS) for each in records]
    return bytes(build_batch(values, base_offset=base, partition_leader_epoch=1))


def rows(node: Path, view: str = "partitions", **options: str) -> list[dict[str, Any]]:
    given = {"path": str(node), "view": view, **options}
    return [row for batch in read_view(given) for row in batch.to_pylist()]


def row(topic: str, topic_id: str, number: int) -> dict[str, Any]:
    return {
        "topic": topic,
        "topicId": topic_id,
        "partition": number,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "leader": 1,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
    }


A0 = row("a", OTHER_TEXT, 0)
ORDERS_0, ORDERS_1 = row("orders", ORDERS_TEXT, 0), row("orders", ORDERS_TEXT, 1)
AT_OFFSETS = [
    *((0, []), (2, []), (3, [ORDERS_0]), (4, [ORDERS_0, ORDERS_1])),
    *((5, [ORDERS_0, ORDERS_1]), (6, [A0, ORDERS_0, ORDERS_1]), (99, [A0, ORDERS_0, ORDERS_1])),
]


@pytest.mark.parametrize(("offset", "found"), AT_OFFSETS)
def test_partitions_are_those_before_an_offset(
    node: Path, offset: int, found: list[dict[str, Any]]
) -> None:
    assert rows(node, asOfOffset=str(offset)) == found
    assert rows(node, arrowBatchRows="1") == AT_OFFSETS[-1][1]


@pytest.mark.parametrize(("offset", "found"), AT_OFFSETS[2:])
def test_partitions_behind_a_snapshot_are_its_own_and_those_of_the_log(
    node: Path, offset: int, found: list[dict[str, Any]]
) -> None:
    """The log begins with a batch that the snapshot ends inside of."""
    add_snapshot(node, 3, FIRST)
    begin_log_at(node, 1, (1, [*FIRST, *SECOND]), (5, THIRD))
    assert rows(node, asOfOffset=str(offset)) == found
    assert rows(node) == AT_OFFSETS[-1][1]
    assert rows(node, image="snapshot") == [ORDERS_0]
    assert rows(node, image="snapshot", asOfOffset=str(offset)) == [ORDERS_0]


def line_of(node: Path, view: str = "partitions", **options: str) -> str:
    with pytest.raises(PipelineError) as refused:
        rows(node, view, **options)
    return str(refused.value)


def test_partitions_that_cannot_be_known_are_refused(node: Path) -> None:
    directory = place(node)
    none = f"{directory} has no snapshot"
    assert line_of(node, image="snapshot") == f"{none}: set image to replay"
    assert line_of(node, image="snapshot", asOfOffset="4") == (
        f"{none} that ends at or before offset 4: set image to replay"
    )
    begin_log_at(node, 3, (3, SECOND))
    assert line_of(node) == (
        f"{directory}: the log continues at offset 3, and what comes before it from 0 on is in no"
        " snapshot: ask for a later offset"
    )
    add_snapshot(node, 2, FIRST)
    assert "continues at offset 3, and what comes before it from 2 on" in line_of(node)
    begin_log_at(node, 2, (2, [partition(OTHER, 0)]))
    assert line_of(node).startswith(f"metadata log in {directory}: ")


def test_transaction_marker_without_its_counterpart_is_refused(tmp_path: Path) -> None:
    begin, end = BeginTransactionRecord(name="x"), EndTransactionRecord()
    for name, records in (("end", [end]), ("twice", [begin, begin])):
        node = tmp_path / name
        write_metadata_log(node, CLUSTER_ID, [records])
        part = metadata_log(FS, parse_log_options({"path": str(node), "view": "metadata"}))
        with pytest.raises(PipelineError) as refused:
            read_history(FS, part, AsOf())
        assert str(refused.value) == (
            f"metadata log in {place(node)}: the transaction marker at offset"
            f" {len(records)} has no counterpart"
        )


def test_markers_and_unreadable_records_of_a_metadata_log(
    node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = place(node) / f"{0:020d}.log"
    marker = marker_bytes(6, producer_id=3, abort=True)
    log.write_bytes(log.read_bytes() + marker)
    last = rows(node, "metadata")[-1]
    assert (last["offset"], last["isControl"], last["type"]) == (6, True, "ABORT")
    assert (last["version"], last["json"]) == (-1, "null")
    unreadable = build_batch(
        [Record(None, b"\x01\x7f\x00", timestamp=1)], base_offset=7, partition_leader_epoch=1
    )
    log.write_bytes(log.read_bytes() + unreadable)
    line = line_of(node, "metadata")
    assert line.startswith(f"{log} position ")
    assert ": offset 7: " in line
    assert [each["offset"] for each in rows(node, "metadata", onCorrupt="skip")] == list(range(7))
    assert capsys.readouterr().err == ""
    assert len(rows(node, "metadata", onCorrupt="report")) == 7
    assert ": offset 7: " in capsys.readouterr().err


@pytest.mark.parametrize("as_of", ["3", "4"])
def test_topic_whose_partitions_have_gaps_is_one_line(tmp_path: Path, as_of: str) -> None:
    """Only the end of a log, or of what is read of it, shows that a partition is not there."""
    records = [[FIRST[0], partition(ORDERS, 1)], [partition(ORDERS, 0)]]
    write_metadata_log(tmp_path, CLUSTER_ID, records)
    part = metadata_log(FS, parse_log_options({"path": str(tmp_path), "view": "metadata"}))
    wrong = f"metadata log in {place(tmp_path)}: partitions of orders have gaps: [1]"
    if as_of == "3":
        assert line_of(tmp_path, asOfOffset=as_of) == wrong
        with pytest.raises(PipelineError) as refused:
            read_history(FS, part, AsOf(offset=3))
        assert str(refused.value) == wrong
    else:
        assert rows(tmp_path, asOfOffset=as_of) == [ORDERS_0, ORDERS_1]
        assert read_history(FS, part, AsOf(offset=4)).records == 3


def test_history_of_nothing_is_before_the_log(node: Path) -> None:
    part = metadata_log(FS, parse_log_options({"path": str(node), "view": "metadata"}))
    found = read_history(FS, part, AsOf(offset=0))
    assert (found.records, found.end, found.epoch, found.kraft_version) == (0, (-1, -1), -1, 0)
    whole = read_history(FS, part, AsOf())
    assert (whole.records, whole.end, whole.epoch) == (5, (5, BEGAN_MS + 3000), 1)
    assert (whole.share.number, whole.share.tasks) == (0, 1)


def test_record_of_a_snapshot_without_a_value_is_one_line(node: Path) -> None:
    """Every metadata record has a value: its type and version are in it (KIP-631)."""
    snapshot_id = OffsetAndEpoch(Offset(3), LeaderEpoch(1))
    head, footer = (
        [*snapshot_batches(snapshot_id, SnapshotHead(BEGAN_MS, BEGAN_MS), [])][at] for at in (0, -1)
    )
    empty = build_batch(
        [Record(None, None, timestamp=BEGAN_MS)], base_offset=1, partition_leader_epoch=1
    )
    footer[:8] = (2).to_bytes(8, "big")
    path = place(node) / f"{3:020d}-{1:010d}.checkpoint"
    path.write_bytes(bytes(head) + bytes(empty) + bytes(footer))
    begin_log_at(node, 3, (3, SECOND))
    assert line_of(node).startswith(f"metadata log in {place(node)}: ")
    part = metadata_log(FS, parse_log_options({"path": str(node), "view": "metadata"}))
    with pytest.raises(PipelineError, match=f"^metadata log in {place(node)}: "):
        read_history(FS, part, AsOf())
