"""`kraft-wire groups` on streams groups of our node and Apache's, beside Apache's tool."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import pytest

from kraft_wire.client import BrokerConnection
from tests.apache.streams_cluster import Cluster
from tests.apache.streams_members import Member, internal, subtopology, topology
from tests.apache.tools import run_tool
from tests.cli.conftest import Commands

NUMBERS = count()
PARTITIONS = 2


class Application:
    """A streams group of the name of its source topic, with a changelog topic, and two members."""

    def __init__(self, connection: BrokerConnection) -> None:
        self.name = f"gt-{next(NUMBERS)}"
        self.cluster = Cluster(connection)
        self.cluster.await_coordinators()
        changelog = internal(f"{self.name}-changelog")
        for each in (self.name, changelog.name):
            self.cluster.topic(each, PARTITIONS)
        self.cluster.assigns_at_once(self.name)
        self.cluster.sets(self.name, "streams.num.standby.replicas", "1")
        wanted = topology(subtopology("0", [self.name], changelogs=[changelog]))
        self.members = [Member(connection, self.name, each) for each in ("one", "two")]
        for each in self.members:
            each.joins(wanted)
        for _ in range(PARTITIONS + 1):
            for each in self.members:
                each.owns(each.active, each.standby)

    def leaves(self) -> None:
        for each in self.members:
            each.leaves()


@pytest.fixture
def application(commands: Commands) -> Iterator[Application]:
    with closing(BrokerConnection(commands.bootstrap)) as connection:
        made = Application(connection)
        yield made
        made.leaves()


def described(commands: Commands, group: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(commands.did("groups", "describe", group, "--json"))
    return found[0]


def told_by_tool(commands: Commands, group: str, *what: str) -> str:
    server = ["--bootstrap-server", commands.bootstrap]
    done = run_tool("kafka-streams-groups", [*server, "--describe", "--group", group, *what])
    assert done.exit_code == 0, done.text
    return done.stdout


def tasks_by_tool(commands: Commands, group: str) -> dict[str, tuple[list[str], list[str]]]:
    """Active and standby tasks of each member, as Apache's tool shows them."""
    shown = told_by_tool(commands, group, "--members")
    found = {}
    for line in re.findall(rf"^{group} .*$", shown, re.MULTILINE):
        member = line.split()[1]
        kinds = dict(re.findall(r"(ACTIVE|STANDBY): 0:\[([\d, ]*)\]", line))
        active, standby = (
            [f"0_{each}" for each in kinds.get(kind, "").split(", ") if each]
            for kind in ("ACTIVE", "STANDBY")
        )
        found[member] = (active, standby)
    return found


@pytest.mark.java
def test_streams_group_is_listed_and_described_as_apaches_tool_does(
    commands: Commands, application: Application
) -> None:
    name = application.name
    listed = json.loads(commands.did("groups", "list", "--json"))
    (row,) = [each for each in listed if each["group"] == name]
    assert (row["state"], row["type"].lower(), row["protocol_type"]) == (
        "Stable",
        "streams",
        "streams",
    )
    found = described(commands, name)
    assert (found["type"], found["state"], found["assignor"]) == ("streams", "Stable", None)
    tasks = {
        each["member_id"]: (each["active_tasks"], each["standby_tasks"])
        for each in found["members"]
    }
    assert tasks == tasks_by_tool(commands, name)
    assert sorted(tasks.values()) == [(["0_0"], ["0_1"]), (["0_1"], ["0_0"])]
    one = application.members[0]
    assert application.cluster.commits(name, name, "one", one.epoch) == [0, 0]
    rows = re.findall(rf"^{name} +{name} +(\d+) +(\d+)", told_by_tool(commands, name), re.MULTILINE)
    assert sorted(rows) == [("0", "0"), ("1", "0")]
    state = told_by_tool(commands, name, "--state")
    assert re.search(rf"^{name} +\S+ \(\d+\) +Stable +2$", state, re.MULTILINE), state


def test_offsets_of_a_streams_group_are_shown_with_their_owners(
    commands: Commands, application: Application
) -> None:
    name, one = application.name, application.members[0]
    assert application.cluster.commits(name, name, "one", one.epoch) == [0, 0]
    shown = commands.did("groups", "describe", name)
    owners = {}
    for partition, member in re.findall(rf"{name} +{name} +(\d) +0 +0 +0 +(\w+)", shown):
        owners[member] = int(partition)
    assert owners == {
        each: application.members[n].active["0"][0] for n, each in enumerate(("one", "two"))
    }
    members = commands.did("groups", "describe", name, "--members")
    assert sorted(re.findall(rf"{name}-\d", members)) == [f"{name}-0", f"{name}-1"]


def test_streams_group_with_members_keeps_its_offsets(
    commands: Commands, application: Application
) -> None:
    name = application.name
    reset = ("groups", "reset-offsets", name, "-t", name, "--to-earliest", "--execute")
    done = commands.run(*reset)
    assert (done.returncode, b"Stable: stop its members first" in done.stderr) == (1, True), done
    done = commands.run("groups", "delete", name)
    assert (done.returncode, b"NON_EMPTY_GROUP" in done.stderr) == (1, True), done


@pytest.mark.java
def test_offsets_of_an_empty_streams_group_are_reset_and_the_group_deleted(
    commands: Commands, application: Application
) -> None:
    name = application.name
    application.leaves()
    commands.did("groups", "reset-offsets", name, "-t", name, "--to-latest", "--execute")
    found = described(commands, name)
    assert (found["state"], found["members"]) == ("Empty", [])
    committed = [(each["partition"], each["committed_offset"]) for each in found["partitions"]]
    assert committed == [(0, 0), (1, 0)]
    deleted = commands.did("groups", "delete-offsets", name, "-t", f"{name}:0")
    assert deleted == f"{name}: {name}-0: deleted\n"
    assert commands.did("groups", "delete", name) == f"{name}: deleted\n"
    done = commands.run("groups", "describe", name)
    assert (done.returncode, b"does not exist" in done.stderr) == (1, True), done


@pytest.mark.java
def test_apaches_tool_resets_and_deletes_a_streams_group(
    commands: Commands, application: Application
) -> None:
    name = application.name
    server = ["--bootstrap-server", commands.bootstrap]
    refused = run_tool("kafka-streams-groups", [*server, "--delete", "--group", name])
    assert "is not EMPTY" in refused.text, refused.text
    one = application.members[0]
    assert application.cluster.commits(name, name, "one", one.epoch) == [0, 0]
    application.leaves()
    reset = ["--reset-offsets", "--group", name, "--input-topic", name, "--to-latest", "--execute"]
    done = run_tool("kafka-streams-groups", [*server, *reset])
    assert done.exit_code == 0, done.text
    rows = re.findall(rf"^{name} +{name} +(\d) +(\d)", done.stdout, re.MULTILINE)
    assert sorted(rows) == [("0", "0"), ("1", "0")]
    done = run_tool("kafka-streams-groups", [*server, "--delete", "--group", name])
    assert (done.exit_code, "was successful" in done.stdout) == (0, True), done.text
    done = run_tool("kafka-streams-groups", [*server, "--list"])
    assert name not in done.stdout.split(), done.stdout
