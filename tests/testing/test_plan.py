"""Whole plans of clusters for tests: roles, properties and formatted directories of each node."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.storage.directory.meta_properties import MetaProperties, read_meta_properties
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotReader
from kraft_wire.storage.snapshots.store import FORMATTED_ID
from kraft_wire.testing.memory_files import MemoryFileSystem
from kraft_wire.testing.plan import (
    ClusterPlan,
    Identity,
    format_node,
    node_config,
    node_properties,
)
from kraft_wire.testing.seeded_random import SeededRandom
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.records.control_records import parse_control_key, parse_control_value

COMBINED = "broker,controller"
PORTS = {
    1: {"PLAINTEXT": 11, "CONTROLLER": 12},
    2: {"PLAINTEXT": 21},
    3: {"CONTROLLER": 32},
}
PLAN = ClusterPlan.of(9, [" controller , broker", "broker", "controller"], None)
FOR_TESTS = {
    "storage.ballast.bytes": "0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "controller.quorum.election.timeout.ms": "200",
    "controller.quorum.election.backoff.max.ms": "100",
    "controller.quorum.retry.backoff.ms": "10",
    "controlled.shutdown.enable": "false",
    "group.min.session.timeout.ms": "1",
    "max.connections.per.ip": "10000",
}


def replication(copies: int) -> dict[str, str]:
    """The numbers of copies of the topics that a broker creates by itself."""
    text = str(copies)
    return {
        "default.replication.factor": text,
        "offsets.topic.replication.factor": text,
        "transaction.state.log.replication.factor": text,
        "share.coordinator.state.topic.replication.factor": text,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def test_plan_has_the_roles_that_are_asked_for() -> None:
    assert PLAN.roles == (COMBINED, "broker", "controller")
    assert list(PLAN.node_ids) == [1, 2, 3]
    assert [PLAN.listeners(each) for each in PLAN.node_ids] == [
        ["PLAINTEXT", "CONTROLLER"],
        ["PLAINTEXT"],
        ["CONTROLLER"],
    ]
    assert not PLAN.is_embedded
    single = ClusterPlan.of(1, None, {"a": True, "b": False, "c": 7, "d": "Text"})
    assert (single.roles, single.is_embedded) == ((COMBINED,), True)
    assert single.configs == {"a": "true", "b": "false", "c": "7", "d": "Text"}
    assert ClusterPlan.of(3, None, None) == ClusterPlan((COMBINED,) * 3)


@pytest.mark.parametrize(
    ("roles", "line"),
    [
        (
            ["broker,controller", "brokers"],
            "no node has the roles 'brokers': 'broker', 'controller', 'broker,controller'",
        ),
        (
            ["broker,broker"],
            "no node has the roles 'broker,broker': 'broker', 'controller', 'broker,controller'",
        ),
        (["broker", "broker"], "a cluster needs a controller"),
        ([], "a cluster needs a controller"),
    ],
)
def test_plan_that_no_cluster_can_have_is_refused(roles: list[str], line: str) -> None:
    with pytest.raises(ValueError, match="a") as refused:
        ClusterPlan.of(1, roles, None)
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("node_id", "listeners"),
    [
        (1, "PLAINTEXT://127.0.0.1:11,CONTROLLER://127.0.0.1:12"),
        (2, "PLAINTEXT://127.0.0.1:21"),
        (3, "CONTROLLER://127.0.0.1:32"),
    ],
)
def test_properties_of_each_node_are_written_down(node_id: int, listeners: str) -> None:
    assert node_properties(PLAN, node_id, "/data", PORTS) == {
        "process.roles": PLAN.roles[node_id - 1],
        "node.id": str(node_id),
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "log.dirs": "/data",
        **FOR_TESTS,
        **replication(2),
        "controller.quorum.bootstrap.servers": "127.0.0.1:12,127.0.0.1:32",
    }
    own = {"log.dirs": "/other", "controlled.shutdown.enable": "true", "x": "y"}
    plan = ClusterPlan(PLAN.roles, own)
    found = node_properties(plan, node_id, "/data", PORTS)
    assert found == node_properties(PLAN, node_id, "/data", PORTS) | own


@pytest.mark.parametrize(("brokers", "copies"), [(0, 1), (1, 1), (2, 2), (3, 3), (4, 3)])
def test_topics_have_as_many_copies_as_there_are_brokers_up_to_3(brokers: int, copies: int) -> None:
    plan = ClusterPlan(("controller", *["broker"] * brokers))
    ports = {node_id: dict.fromkeys(plan.listeners(node_id), 1) for node_id in plan.node_ids}
    found = node_properties(plan, 1, "/data", ports)
    assert {key: found[key] for key in replication(1)} == replication(copies)


@pytest.mark.parametrize("plan", [ClusterPlan.of(1, None, None), PLAN], ids=["embedded", "three"])
def test_configuration_is_that_of_the_properties(plan: ClusterPlan) -> None:
    config = node_config(plan, 1, "/data", PORTS)
    assert (config.node_id, config.log_dirs) == (1, ("/data",))
    assert [each.name for each in config.listeners] == ["PLAINTEXT"]
    assert [each.name for each in config.controller_listeners] == ["CONTROLLER"]


def test_identity_has_an_id_for_the_cluster_and_each_directory() -> None:
    first = Identity.draw(PLAN, SeededRandom(7))
    assert first == Identity.draw(PLAN, SeededRandom(7))
    assert first != Identity.draw(PLAN, SeededRandom(8))
    assert list(first.directory_ids) == [1, 2, 3]
    ids = {first.cluster_id, *(uuid_to_text(each) for each in first.directory_ids.values())}
    assert len(ids) == 4
    assert {len(each) for each in ids} == {22}
    numbers = SeededRandom(3)
    assert {numbers.below(3) for _ in range(50)} == {0, 1, 2}


IDENTITY = Identity(
    "AQEBAQEBAQEBAQEBAQEBAQ", {each: Uuid(bytes([each]) * 16) for each in (1, 2, 3)}
)
WALL_MS = 1_700_000_000_000


def voters_in(fs: MemoryFileSystem, directory: str) -> list[Any]:
    reader = SnapshotReader(fs, f"{directory}/__cluster_metadata-0", FORMATTED_ID)
    found = {}
    for batch in reader.batches():
        for record in batch.records():
            assert record.timestamp == WALL_MS
            kind = parse_control_key(record.key)
            if kind is not None and kind.name == "KRAFT_VOTERS":
                message: Any = parse_control_value(kind, record.value)
                found = json.loads(json.dumps(message_to_json(message, 0)))
    return list(found.get("voters", []))


def test_directory_of_a_controller_has_the_voters_and_that_of_a_broker_has_none() -> None:
    fs = MemoryFileSystem(lambda: WALL_MS)
    for node_id in (1, 2):
        format_node(fs, f"d{node_id}", PLAN, node_id, PORTS, IDENTITY, WALL_MS)
        assert read_meta_properties(fs, f"d{node_id}") == MetaProperties(
            IDENTITY.cluster_id, node_id, IDENTITY.directory_ids[node_id]
        )
    voters = voters_in(fs, "d1")
    assert [(each["voterId"], each["voterDirectoryId"]) for each in voters] == [
        (1, uuid_to_text(IDENTITY.directory_ids[1])),
        (3, uuid_to_text(IDENTITY.directory_ids[3])),
    ]
    assert [each["endpoints"] for each in voters] == [
        [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 12}],
        [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 32}],
    ]
    assert "__cluster_metadata-0" not in fs.names("d2")
