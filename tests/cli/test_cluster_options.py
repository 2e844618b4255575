"""Options of `cluster up`: those that make a cluster, and those that contradict one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.cli.cluster import plan as planning
from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles
from kraft_wire.cli.cluster.plan import UpOptions, check_new, found_or_made
from kraft_wire.cli.cluster.setup import ClusterPlan
from kraft_wire.cli.cluster.state import (
    APACHE,
    BROKER,
    COMBINED,
    CONTROLLER,
    OURS,
    ClusterState,
    NodeState,
)

DEFAULTS: dict[str, Any] = {
    "controllers": None,
    "apache_controllers": None,
    "brokers": None,
    "apache_brokers": None,
    "overrides": (),
    "features": (),
    "has_network": False,
    "jars": None,
    "nodes": None,
    "base_port": None,
    "is_secured": False,
}


def options(**given: Any) -> UpOptions:
    """Options of which most are absent."""
    return UpOptions(**(DEFAULTS | given))


def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **given: Any) -> ClusterPlan:
    """Return the plan of a new cluster, without making it."""
    plans: list[ClusterPlan] = []

    def make(files: ClusterFiles, plan: ClusterPlan) -> ClusterState:
        plans.append(plan)
        return ClusterState("id")

    monkeypatch.setattr(planning, "make_cluster", make)
    files = ClusterFiles(tmp_path / "new")
    check_new(files, options(**given))
    found_or_made(files, options(**given))
    return plans[0]


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({}, (3, 0, 3, 0, 0)),
        ({"controllers": 1}, (1, 0, 0, 0, 0)),
        ({"brokers": 0}, (3, 0, 0, 0, 0)),
        ({"nodes": 2}, (0, 0, 0, 0, 2)),
        ({"apache_brokers": 1}, (3, 0, 3, 1, 0)),
        ({"controllers": 1, "apache_controllers": 1, "brokers": 2}, (1, 1, 2, 0, 0)),
    ],
)
def test_counts_of_nodes_have_defaults(
    given: dict[str, int],
    counts: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "apache_jars", lambda jars: None)
    plan = planned(tmp_path, monkeypatch, **given)
    found = plan.controllers, plan.apache_controllers, plan.brokers, plan.apache_brokers
    assert (*found, plan.combined) == counts
    assert (plan.base_port, dict(plan.overrides), plan.has_network) == (None, {}, False)


def test_plan_has_settings_levels_and_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "first_taken_port", lambda ports: None)
    monkeypatch.setattr(planning, "missing", lambda: None)
    plan = planned(
        tmp_path,
        monkeypatch,
        overrides=(" num.partitions = 4 ", "message.max.bytes=5=6"),
        features=("metadata.version=20",),
        base_port=65_530,
        has_network=True,
    )
    assert dict(plan.overrides) == {"num.partitions": "4", "message.max.bytes": "5=6"}
    assert (plan.levels["metadata.version"], plan.base_port, plan.has_network) == (20, 65_530, True)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        *(
            (
                {"nodes": 2, name: 0},
                f"give one of --nodes and --{option}: --nodes counts combined nodes",
            )
            for name, option in (
                ("controllers", "controllers"),
                ("brokers", "brokers"),
                ("apache_controllers", "apache-controllers"),
                ("apache_brokers", "apache-brokers"),
            )
        ),
        ({"apache_brokers": 4}, "--apache-brokers 4: there are only 3 brokers"),
        ({"apache_controllers": 2, "controllers": 1}, "--apache-controllers 2: there are only 1 "),
        ({"base_port": 65_531}, "--base-port 65531: 6 ports are needed, and the last one is 65535"),
        (
            {"base_port": 9_000},
            "--base-port 9000: port 9004 is in use; ports 9000 to 9005 are needed",
        ),
        ({"has_network": True}, "--netns: root is required"),
        ({"features": ("nope=1",)}, "--feature: Unsupported feature: nope."),
        (
            {"is_secured": True, "features": ("metadata.version=7",)},
            "--secure needs the metadata.version of 3.5-IV2 or later",
        ),
        ({"overrides": ("x",)}, "--override 'x' is not KEY=VALUE"),
        ({"overrides": (" =x",)}, "--override ' =x' is not KEY=VALUE"),
        ({"overrides": ("node.id=3",)}, "--override node.id: `up` sets it for each node"),
        ({"overrides": ("num.partition=3",)}, "--override num.partition=3: unknown key"),
    ],
)  # fmt: skip
def test_new_cluster_is_refused_before_anything_is_written(
    given: dict[str, Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "missing", lambda: "root is required")
    monkeypatch.setattr(planning, "first_taken_port", lambda ports: 9_004)
    monkeypatch.setattr(planning, "check_can_certify", lambda: None)
    with pytest.raises(CannotRun) as refused:
        check_new(ClusterFiles(tmp_path / "new"), options(**given))
    assert str(refused.value).startswith(text)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a,b", os.fsdecode(b"\x80"), os.fsdecode(b"\xff")])
def test_directory_that_no_list_can_hold_is_refused(name: str, tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path / name)
    text = f"--dir {str(tmp_path / name)!a}: a path in log.dirs must be text without commas"
    for check in (check_new, found_or_made):
        with pytest.raises(CannotRun) as refused:
            check(files, options())
        assert str(refused.value) == text


def existing(tmp_path: Path, *nodes: tuple[str, str]) -> ClusterFiles:
    """A directory with a cluster of nodes: role and make; their ports begin at 9001."""
    files = ClusterFiles(tmp_path)
    state = ClusterState("id")
    for number, (role, make) in enumerate(nodes, 1):
        state.nodes[number] = NodeState(number, make, 9_000 + number, role)
    files.save(state)
    return files


SIX = ((CONTROLLER, OURS), (CONTROLLER, APACHE), (BROKER, OURS), (BROKER, OURS), (BROKER, APACHE))
HAS = "{} holds a cluster of 2 controllers, 1 of them Apache's, and 3 brokers, 1 of them Apache's"
AWAY = ": `kraft-wire cluster down --wipe --dir {}` removes it, another --dir keeps it"
SAME = {
    "controllers": 2,
    "apache_controllers": 1,
    "brokers": 3,
    "apache_brokers": 1,
    "nodes": 0,
    "base_port": 9_001,
}


@pytest.mark.parametrize("name", [*SAME, "features"])
def test_cluster_of_a_directory_is_taken_if_nothing_contradicts_it(
    name: str, tmp_path: Path
) -> None:
    files = existing(tmp_path, *SIX)
    one = {key: value for key, value in SAME.items() if key == name}
    for given in ({}, one, {**SAME, "nodes": None}):
        found = found_or_made(files, options(**given))
        assert (found.cluster_id, len(found.nodes)) == ("id", 5)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        *(({name: 5}, HAS + AWAY) for name in SAME if name != "base_port"),
        (
            {"base_port": 9_002},
            "--base-port is for a new cluster; the first port of the one in {} is 9001",
        ),
        (
            {"overrides": ("a=b",)},
            "--override is for a new cluster; the files of this one are {}/node-N.properties",
        ),
        (
            {"features": ("a=1",)},
            "--feature is for a new cluster; the files of this one are {}/node-N.properties",
        ),
        (
            {"is_secured": True},
            "--secure is for a new cluster; the listeners of {} are open: use another --dir",
        ),
        (
            {"has_network": True},
            "--netns is for a new cluster; the nodes of {} have addresses of this machine: use "
            "another --dir",
        ),
    ],
)
def test_options_that_contradict_a_cluster_are_refused(
    given: dict[str, Any], text: str, tmp_path: Path
) -> None:
    files = existing(tmp_path, *SIX)
    with pytest.raises(CannotRun) as refused:
        found_or_made(files, options(**given))
    assert str(refused.value) == text.replace("{}", str(tmp_path))


def test_cluster_of_combined_nodes_is_named_as_such(tmp_path: Path) -> None:
    files = existing(tmp_path, (COMBINED, OURS), (COMBINED, OURS))
    state = files.load()
    assert state is not None
    files.save(replace(state, is_secured=True, network=3))
    taken = options(nodes=2, is_secured=True, has_network=True)
    assert found_or_made(files, taken).is_secured
    with pytest.raises(CannotRun, match=r"brokers, 0 of them Apache's, and 2 combined nodes: `kr"):
        found_or_made(files, options(nodes=3))
