"""Whole rows of `partition_changes` and `elections` of partitions that change in every field."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraft_wire.model import Uuid
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.views import metadata_log
from kraft_wire.spark.metadata.history_reading import AsOf, read_history
from kraft_wire.spark.metadata.metadata_tables import tables_of
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message
from tests.spark.metadata_logs import (
    BEGAN_MS,
    ORDERS,
    SECOND_MS,
    change,
    partition,
    write_metadata_log,
)

FS = OsFileSystem()
OTHER = Uuid(bytes([2] * 16))
IDS = {"orders": "AQEBAQEBAQEBAQEBAQEBAQ", "a": "AgICAgICAgICAgICAgICAg"}
UNCLEAN, CLEAN = 1, 0
NAMES = (
    *("topic", "partition", "leader", "leaderEpoch", "partitionEpoch", "isr", "elr"),
    *("lastKnownElr", "addingReplicas", "removingReplicas", "leaderRecoveryState"),
    *("fromOffset", "untilOffset"),
)


def tables(path: Path, batches: list[list[Message]]) -> dict[str, list[dict[str, Any]]]:
    write_metadata_log(path, "c", batches)
    part = metadata_log(FS, parse_log_options({"path": str(path), "view": "metadata"}))
    found = tables_of(read_history(FS, part, AsOf()), "c")
    return {name: table.to_pylist() for name, table in found.items()}


def at(second: int) -> datetime:
    return datetime.fromtimestamp((BEGAN_MS + second * SECOND_MS) / 1000, UTC)


def state(**fields: Any) -> dict[str, Any]:
    """A row with these fields, as partition 0 of orders begins."""
    row: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "leader": 1,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "isr": [1, 2, 3],
        "elr": [],
        "lastKnownElr": [],
        "addingReplicas": [],
        "removingReplicas": [],
        "leaderRecoveryState": CLEAN,
    }
    return row | fields


def test_each_change_is_a_state_until_the_next_one(tmp_path: Path) -> None:
    found = tables(
        tmp_path,
        [
            [TopicRecord(name="orders", topic_id=ORDERS), partition(ORDERS, 0)],
            [change(ORDERS, 0, isr=[1], leader=1)],
            [
                change(
                    ORDERS, 0, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[2]
                )
            ],
            [change(ORDERS, 0, replicas=[1, 2, 4], adding_replicas=[4], removing_replicas=[3])],
            [ClearElrRecord(topic_name="orders")],
            [change(ORDERS, 0, isr=[2], leader=2, leader_recovery_state=UNCLEAN)],
            [TopicRecord(name="a", topic_id=OTHER), partition(OTHER, 0)],
            [RemoveTopicRecord(topic_id=ORDERS)],
        ],
    )
    changes = found["partition_changes"]
    assert [{name: row[name] for name in NAMES} for row in changes] == [
        state(topic="a", fromOffset=9, untilOffset=None),
        state(fromOffset=2, untilOffset=3),
        state(isr=[1], leaderEpoch=1, partitionEpoch=1, fromOffset=3, untilOffset=4),
        *(
            state(
                isr=[],
                leader=-1,
                leaderEpoch=2,
                lastKnownElr=[2],
                elr=[1],
                partitionEpoch=number,
                fromOffset=offset,
                untilOffset=offset + 1,
                **moved,
            )
            for number, offset, moved in (
                (2, 4, {}),
                (3, 5, {"addingReplicas": [4], "removingReplicas": [3]}),
            )
        ),
        state(
            isr=[],
            leader=-1,
            leaderEpoch=2,
            partitionEpoch=4,
            fromOffset=6,
            addingReplicas=[4],
            removingReplicas=[3],
            untilOffset=7,
        ),
        state(
            isr=[2],
            leader=2,
            leaderEpoch=3,
            partitionEpoch=5,
            fromOffset=7,
            addingReplicas=[4],
            removingReplicas=[3],
            untilOffset=10,
            leaderRecoveryState=UNCLEAN,
        ),
    ]
    assert [(row["fromTimestamp"], row["untilTimestamp"]) for row in changes[1:]] == [
        (at(second), at(after))
        for second, after in ((1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 8))
    ]
    assert {row["topic"]: row["topicId"] for row in changes} == IDS
    assert [row["topic"] for row in found["partitions"]] == ["a"]
    assert [tuple(row["replicas"]) for row in changes[3:5]] == [(1, 2, 3), (1, 2, 4)]


def test_election_is_unclean_where_the_leader_was_not_in_sync(tmp_path: Path) -> None:
    """KIP-966: a leader from the eligible replicas is clean, though the ISR is empty."""
    leaderless = change(ORDERS, 0, isr=[], leader=-1, eligible_leader_replicas=[1])
    batches: list[list[Message]] = [
        [TopicRecord(name="orders", topic_id=ORDERS), partition(ORDERS, 0)],
        [change(ORDERS, 0, isr=[1, 2], leader=2)],
        [leaderless],
        [change(ORDERS, 0, isr=[1], leader=1, eligible_leader_replicas=[])],
        [leaderless],
        [change(ORDERS, 0, isr=[3], leader=3, leader_recovery_state=UNCLEAN)],
        [change(ORDERS, 0, isr=[3, 2])],
        [change(ORDERS, 0, leader=2)],
        [change(ORDERS, 0, leader=-1)],
        [ConfigRecord(resource_type=2, resource_name="orders", name="x", value="1")],
    ]
    election, *rows = tables(tmp_path, batches)["elections"]
    assert election["topic"] == "__cluster_metadata"
    names = ("leaderEpoch", "fromLeader", "toLeader", "isUnclean", "offset", "timestamp")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, 1, 2, False, 3, at(2)),
        (2, 2, -1, False, 4, at(3)),
        (3, -1, 1, False, 5, at(4)),
        (4, 1, -1, False, 6, at(5)),
        (5, -1, 3, True, 7, at(6)),
        (6, 3, 2, False, 9, at(8)),
        (7, 2, -1, False, 10, at(9)),
    ]
    assert {(row["clusterId"], row["topic"], row["topicId"], row["partition"]) for row in rows} == {
        ("c", "orders", IDS["orders"], 0)
    }
