"""Whole rows of a metadata log: brokers, controllers, topics, settings, elections, snapshots.

The rows are written down from the records' fields (KIP-631), the JSON in the form of Apache's
converters.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, Uuid
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.views import metadata_log, read_view
from kraft_wire.spark.metadata.history_reading import parse_as_of, read_history
from kraft_wire.spark.metadata.metadata_tables import TABLE_SCHEMAS, tables_of
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage
from kraft_wire.wire.generated.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraft_wire.wire.generated.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.generated.voters_record import VotersRecord
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType, control_record
from kraft_wire.wire.records.record import Record
from tests.spark.metadata_logs import (
    BEGAN_MS,
    ORDERS,
    SECOND_MS,
    encoded,
    partition,
    retention,
    write_metadata_log,
)

FS = OsFileSystem()
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
FIRST, SECOND = Uuid(bytes([2] * 16)), Uuid(bytes([3] * 16))
FIRST_TEXT, SECOND_TEXT = "AgICAgICAgICAgICAgICAg", "AwMDAwMDAwMDAwMDAwMDAw"
ORDERS_TEXT = "AQEBAQEBAQEBAQEBAQEBAQ"
BROKER = RegisterBrokerRecord(
    broker_id=4,
    incarnation_id=FIRST,
    broker_epoch=9,
    end_points=[
        BrokerEndpoint(name="TLS", host="b.example", port=9093, security_protocol=1),
        BrokerEndpoint(name="PLAIN", host="a.example", port=9092, security_protocol=0),
    ],
    features=[
        BrokerFeature(name="z", min_supported_version=1, max_supported_version=2),
        BrokerFeature(name="a", min_supported_version=3, max_supported_version=4),
    ],
    rack="r1",
    fenced=False,
    in_controlled_shutdown=True,
    log_dirs=[FIRST, SECOND],
    cordoned_log_dirs=[SECOND],
)
BARE_BROKER = RegisterBrokerRecord(
    broker_id=2, incarnation_id=SECOND, broker_epoch=5, rack=None, fenced=True
)
CONTROLLER = RegisterControllerRecord(
    controller_id=7,
    incarnation_id=SECOND,
    end_points=[ControllerEndpoint(name="C", host="c.example", port=9, security_protocol=3)],
    features=[ControllerFeature(name="f", min_supported_version=5, max_supported_version=6)],
)
RECORDS: list[list[Message]] = [
    [FeatureLevelRecord(name="metadata.version", feature_level=30), BROKER, BARE_BROKER],
    [CONTROLLER, TopicRecord(name="orders", topic_id=ORDERS), partition(ORDERS, 0)],
    [
        retention("orders"),
        ConfigRecord(resource_type=4, resource_name="4", name="b", value="2"),
        ConfigRecord(resource_type=4, resource_name="4", name="a", value="1"),
        ConfigRecord(resource_type=16, resource_name="m", name="metrics", value="*"),
        ConfigRecord(resource_type=32, resource_name="g", name="x", value="3"),
    ],
]


def written(path: Path, records: Sequence[Sequence[Message]] = RECORDS) -> Path:
    write_metadata_log(path, CLUSTER_ID, records)
    return path


def tables(node: Path, as_of: str | None = None) -> dict[str, list[dict[str, Any]]]:
    log = metadata_log(FS, parse_log_options({"path": str(node), "view": "metadata"}))
    found = tables_of(read_history(FS, log, parse_as_of(as_of)), CLUSTER_ID)
    return {name: table.to_pylist() for name, table in found.items()}


def at(second: int) -> datetime:
    """The time of the batch with this number."""
    return datetime.fromtimestamp((BEGAN_MS + second * SECOND_MS) / 1000, UTC)


def test_rows_of_nodes_are_their_registrations(tmp_path: Path) -> None:
    found = tables(written(tmp_path))
    assert list(found) == list(TABLE_SCHEMAS)
    bare = {"endpoints": [], "features": [], "logDirs": [], "cordonedLogDirs": []}
    assert found["brokers"] == [
        {
            "clusterId": CLUSTER_ID,
            "broker": 2,
            "brokerEpoch": 5,
            "incarnationId": SECOND_TEXT,
            "fenced": True,
            "inControlledShutdown": False,
            "rack": None,
            **bare,
        },
        {
            "clusterId": CLUSTER_ID,
            "broker": 4,
            "brokerEpoch": 9,
            "incarnationId": FIRST_TEXT,
            "fenced": False,
            "inControlledShutdown": True,
            "rack": "r1",
            "endpoints": [
                {"name": "PLAIN", "host": "a.example", "port": 9092, "securityProtocol": 0},
                {"name": "TLS", "host": "b.example", "port": 9093, "securityProtocol": 1},
            ],
            "features": [
                {"name": "a", "minLevel": 3, "maxLevel": 4},
                {"name": "z", "minLevel": 1, "maxLevel": 2},
            ],
            "logDirs": [FIRST_TEXT, SECOND_TEXT],
            "cordonedLogDirs": [SECOND_TEXT],
        },
    ]
    assert found["controllers"] == [
        {
            "clusterId": CLUSTER_ID,
            "controller": 7,
            "incarnationId": SECOND_TEXT,
            "endpoints": [{"name": "C", "host": "c.example", "port": 9, "securityProtocol": 3}],
            "features": [{"name": "f", "minLevel": 5, "maxLevel": 6}],
        }
    ]


def test_rows_of_topics_settings_features_and_elections(tmp_path: Path) -> None:
    found = tables(written(tmp_path))
    orders = {"clusterId": CLUSTER_ID, "topic": "orders", "topicId": ORDERS_TEXT}
    assert found["topics"] == [
        orders | {"partitions": 1, "createdOffset": 5, "createdTimestamp": at(2)}
    ]
    state = orders | {
        "partition": 0,
        "leader": 1,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "elr": [],
        "lastKnownElr": [],
        "addingReplicas": [],
        "removingReplicas": [],
        "leaderRecoveryState": 0,
    }
    nine = "CQkJCQkJCQkJCQkJCQkJCQ"
    assert found["partitions"] == [state | {"directories": [nine, nine, nine]}]
    interval = {"fromOffset": 6, "untilOffset": None, "untilTimestamp": None}
    assert found["partition_changes"] == [state | interval | {"fromTimestamp": at(2)}]
    settings = [
        ("topic", "orders", "retention.ms", "5"),
        ("broker", "4", "a", "1"),
        ("broker", "4", "b", "2"),
        ("client-metrics", "m", "metrics", "*"),
        ("group", "g", "x", "3"),
    ]
    names = ("resourceType", "resource", "name", "value")
    assert found["configs"] == [
        {"clusterId": CLUSTER_ID, **dict(zip(names, each, strict=True))} for each in settings
    ]
    assert found["features"] == [
        {"clusterId": CLUSTER_ID, "feature": "metadata.version", "level": 30}
    ]
    assert found["elections"] == [
        {
            "clusterId": CLUSTER_ID,
            "topic": "__cluster_metadata",
            "topicId": None,
            "partition": 0,
            "leaderEpoch": 1,
            "fromLeader": -1,
            "toLeader": 1,
            "isUnclean": False,
            "offset": 0,
            "timestamp": at(0),
        }
    ]
    for name in ("transactions", "groups", "members", "group_offsets"):
        assert found[name] == []


VOTERS = VotersRecord(version=0, voters=[])
DYNAMIC = (KRaftVersionRecord(kraft_version=1), VOTERS)


def add_snapshot(node: Path, offset: int, epoch: int, *controls: Message) -> Path:
    """Write a snapshot with the first two batches of records."""
    directory = node / "__cluster_metadata-0"
    snapshot_id = OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))
    head = SnapshotHead(BEGAN_MS + 2 * SECOND_MS, BEGAN_MS, controls)
    values = [encoded(each) for batch in RECORDS[:2] for each in batch]
    writer = SnapshotWriter(FS, str(directory), snapshot_id, attempt=0)
    for batch in snapshot_batches(snapshot_id, head, values):
        writer.append(batch)
    writer.freeze()
    return directory / f"{offset:020d}-{epoch:010d}.checkpoint"


def snapshots(node: Path, **options: str) -> list[dict[str, Any]]:
    given = {"path": str(node), "view": "snapshots", **options}
    return [row for batch in read_view(given) for row in batch.to_pylist()]


def test_row_of_a_snapshot_has_its_header_voters_and_footer(tmp_path: Path) -> None:
    plain, dynamic = add_both(tmp_path)
    common = {"records": 6, "headerVersion": 0, "footerVersion": 0, "node": "1", "status": "ok"}
    common |= {"lastContainedLogTimestamp": BEGAN_MS + 2 * SECOND_MS}
    assert snapshots(tmp_path) == [
        common
        | {
            "endOffset": 7,
            "epoch": 1,
            "file": plain.name,
            "kraftVersion": None,
            "voters": None,
            "sizeInBytes": plain.stat().st_size,
        },
        common
        | {
            "endOffset": 9,
            "epoch": 2,
            "file": dynamic.name,
            "kraftVersion": 1,
            "voters": '{"version":0,"voters":[]}',
            "sizeInBytes": dynamic.stat().st_size,
        },
    ]


def add_both(node: Path) -> tuple[Path, Path]:
    written(node)
    return add_snapshot(node, 7, 1), add_snapshot(node, 9, 2, *DYNAMIC)


def test_damaged_snapshot_is_refused_left_out_or_shown(tmp_path: Path) -> None:
    damaged, good = add_both(tmp_path)
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1  # in the footer's batch: all records were counted before
    damaged.write_bytes(content)
    (_, whole) = snapshots(tmp_path, onCorrupt="report")
    assert snapshots(tmp_path, onCorrupt="skip") == [whole]
    assert (whole["file"], whole["status"]) == (good.name, "ok")
    (row, _) = snapshots(tmp_path, onCorrupt="report")
    assert (row["records"], row["sizeInBytes"]) == (6, len(content))
    assert (row["headerVersion"], row["footerVersion"]) == (0, None)
    reason = row["status"]
    assert reason.endswith(": the CRC does not match")
    with pytest.raises(PipelineError) as refused:
        snapshots(tmp_path)
    assert str(refused.value) == (
        f"snapshot {damaged}: {reason}; set onCorrupt to report to see it in column status"
    )


def metadata(node: Path, **options: str) -> list[tuple[object, ...]]:
    given = {"path": str(node), "view": "metadata", **options}
    return [tuple(row.values()) for batch in read_view(given) for row in batch.to_pylist()]


def test_rows_of_the_view_metadata_are_records_as_json(tmp_path: Path) -> None:
    topic = f'{{"name":"orders","topicId":"{ORDERS_TEXT}"}}'
    config = '{"resourceType":2,"resourceName":"orders","name":"retention.ms","value":"5"}'
    leader = '{"version":0,"leaderId":1,"voters":[],"grantingVoters":[]}'
    records: list[list[Message]] = [
        [TopicRecord(name="orders", topic_id=ORDERS), retention("orders")]
    ]
    written(tmp_path, records)
    whole = [
        (0, 1, True, "LEADER_CHANGE", 0, leader),
        (1, 1, False, "TOPIC_RECORD", 0, topic),
        (2, 1, False, "CONFIG_RECORD", 0, config),
    ]
    assert metadata(tmp_path) == whole
    bounds = '{"__cluster_metadata":{"0":%d}}'
    inner = {"startingOffsets": bounds % 1, "endingOffsets": bounds % 2}
    assert metadata(tmp_path, **inner) == whole[1:2]


@pytest.mark.parametrize("leads", [False, True], ids=["begins with data", "begins with a leader"])
def test_history_goes_on_in_the_next_segment(tmp_path: Path, leads: bool) -> None:
    """A segment is a window of its own: its first row may be one of records or of a leader."""
    written(tmp_path / "whole")
    written(tmp_path / "cut", RECORDS[:2])
    second = bytearray()
    offset = 7
    if leads:
        told = LeaderChangeMessage(version=0, leader_id=3)
        record = control_record(ControlRecordType.LEADER_CHANGE, told, BEGAN_MS + 1)
        second += build_batch(
            [record], base_offset=offset, partition_leader_epoch=2, is_control=True
        )
        offset += 1
    second += data_batch(RECORDS[2], offset, 3)
    directory = tmp_path / "cut" / "__cluster_metadata-0"
    (directory / f"{7:020d}.log").write_bytes(second)
    found, wanted = tables(tmp_path / "cut"), tables(tmp_path / "whole")
    elections = found.pop("elections")
    assert found == {name: rows for name, rows in wanted.items() if name != "elections"}
    told_of = [(row["leaderEpoch"], row["fromLeader"], row["toLeader"]) for row in elections]
    assert told_of == [(1, -1, 1), (2, 1, 3)][: 1 + leads]
    assert [row["offset"] for row in elections] == [0, 7][: 1 + leads]


def data_batch(records: Sequence[Message], offset: int, second: int) -> bytes:
    """A batch of records as the controller writes it."""
    stamp = BEGAN_MS + second * SECOND_MS
    values = [Record(None, encoded(each), timestamp=stamp) for each in records]
    return bytes(build_batch(values, base_offset=offset, partition_leader_epoch=2))


@pytest.mark.parametrize(
    ("as_of", "count"),
    [("7", 0), ("8", 1), ("10", 3), ("12", 5), ("99", 5), ("2023-11-14T22:13:22.999Z", 0)],
)
def test_history_behind_a_snapshot_has_its_records_and_those_of_the_log(
    tmp_path: Path, as_of: str, count: int
) -> None:
    """Offsets 0 to 6 are only in the snapshot, and the log begins with 4, in the middle of it."""
    written(tmp_path)
    add_snapshot(tmp_path, 7, 1)
    directory = tmp_path / "__cluster_metadata-0"
    (directory / f"{0:020d}.log").unlink()
    log = data_batch(RECORDS[1], 4, 2) + data_batch(RECORDS[2], 7, 3)
    (directory / f"{4:020d}.log").write_bytes(log)
    found = tables(tmp_path, as_of)
    assert len(found["configs"]) == count
    assert [row["broker"] for row in found["brokers"]] == [2, 4]
    assert [(row["createdOffset"], row["createdTimestamp"]) for row in found["topics"]] == [
        (None, None)
    ]
    assert found["elections"] == []


@pytest.mark.parametrize(
    ("begins", "as_of", "line"),
    [
        (
            9,
            None,
            "{}: offsets 7 to 8 of the metadata log are missing: give the directory of another"
            " node",
        ),
        (7, "6", "{} goes back to offset 7, not to 6"),
        (7, "2023-11-14T22:13:21.999Z", "{} goes back to 2023-11-14T22:13:22Z: ask for a later"),
    ],
)
def test_history_that_is_not_all_there_is_refused(
    tmp_path: Path, begins: int, as_of: str | None, line: str
) -> None:
    written(tmp_path)
    add_snapshot(tmp_path, 7, 1)
    directory = tmp_path / "__cluster_metadata-0"
    (directory / f"{0:020d}.log").unlink()
    log = data_batch(RECORDS[1], 4, 2) + data_batch(RECORDS[2], begins, 3)
    (directory / f"{4:020d}.log").write_bytes(log)
    with pytest.raises(PipelineError) as refused:
        tables(tmp_path, as_of)
    assert str(refused.value).removesuffix(" time") == line.format(directory)


def test_history_ends_with_the_first_batch_of_a_later_time(tmp_path: Path) -> None:
    """A clock may go back; the records behind a later one depend on it."""
    written(tmp_path, RECORDS[:1])
    log = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    later = data_batch(RECORDS[1], 4, 9) + data_batch(RECORDS[2], 7, 2)
    log.write_bytes(log.read_bytes() + later)
    found = tables(tmp_path, "2023-11-14T22:13:22Z")
    assert (len(found["brokers"]), found["topics"], found["configs"]) == (2, [], [])
