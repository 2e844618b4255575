"""`kraft-wire groups` on share groups of our node and Apache's, beside Apache's tool."""

import json
import re
from collections.abc import Iterator
from itertools import count

import pytest
from confluent_kafka import Producer, ShareConsumer

from tests.apache.tools import run_tool
from tests.cli.conftest import Commands
from tests.share_groups.librdkafka import share_topic
from tests.waiting import until

NUMBERS = count()
RECORDS = 10


def member(commands: Commands, group: str) -> ShareConsumer:
    consumer = ShareConsumer({"bootstrap.servers": commands.bootstrap, "group.id": group})
    consumer.subscribe([group])
    return consumer


@pytest.fixture
def read(commands: Commands) -> str:
    """A group of the name of its topic, which has read the ten records of two partitions."""
    name = f"gs-{next(NUMBERS)}"
    share_topic(commands.bootstrap, name, partitions=2)
    producer = Producer({"bootstrap.servers": commands.bootstrap})
    for number in range(RECORDS):
        producer.produce(name, b"%d" % number, partition=number % 2)
    assert producer.flush(60) == 0
    reader, seen = member(commands, name), set()
    until(lambda: (seen.update(m.value() for m in reader.poll(0.2)), len(seen) == RECORDS)[1])
    reader.commit_sync()
    reader.close()
    return name


@pytest.fixture
def joined(commands: Commands, read: str) -> Iterator[str]:
    """The group while it has a member."""
    reader = member(commands, read)
    until(lambda: (reader.poll(0.2), places(commands, read))[1])
    yield read
    reader.close()


def described(commands: Commands, group: str) -> dict[str, object]:
    found: list[dict[str, object]] = json.loads(commands.did("groups", "describe", group, "--json"))
    return found[0]


def places(commands: Commands, group: str) -> object:
    """The partitions of the first member."""
    members = described(commands, group)["members"]
    return members[0]["partitions"] if isinstance(members, list) and members else None


def rows(commands: Commands, group: str) -> list[tuple[int, int, int]]:
    """Partition, start offset and lag, as Apache's tool shows them."""
    server = ["--bootstrap-server", commands.bootstrap]
    shown = run_tool("kafka-share-groups", [*server, "--describe", "--group", group, "--offsets"])
    found = re.findall(rf"{group} +{group} +(\d+) +(\S+) +(\S+)", shown.stdout)
    return sorted((int(partition), int(start), int(lag)) for partition, start, lag in found)


def ours(commands: Commands, group: str) -> list[tuple[object, object, object]]:
    """The same, as our verb shows them."""
    found = described(commands, group)["partitions"]
    assert isinstance(found, list)
    return [(each["partition"], each["committed_offset"], each["lag"]) for each in found]


@pytest.mark.java
def test_share_group_is_listed_and_described_as_apaches_tool_does(
    commands: Commands, read: str
) -> None:
    listed = json.loads(commands.did("groups", "list", "--json"))
    (row,) = [each for each in listed if each["group"] == read]
    assert (row["state"], row["type"].lower()) == ("Empty", "share")
    found = described(commands, read)
    assert (found["type"], found["state"], found["lag"]) == ("share", "Empty", 0)
    shown = ours(commands, read)
    assert shown == rows(commands, read)
    # A start offset moves with the write behind the one that has its last acknowledgement.
    assert [(partition, lag) for partition, _, lag in shown] == [(0, 0), (1, 0)]
    start = shown[0][1]
    pattern = rf"{read} +{read} +0 +{start} +5 +0 +-"
    assert re.search(pattern, commands.did("groups", "describe", read))


@pytest.mark.java
def test_offsets_are_reset_and_deleted_and_then_the_group(commands: Commands, read: str) -> None:
    reset = ("groups", "reset-offsets", read, "-t", f"{read}:0", "--to-offset", "2")
    before = rows(commands, read)
    commands.did(*reset)
    assert rows(commands, read) == before, "a dry run"
    commands.did(*reset, "--execute")
    assert ours(commands, read) == rows(commands, read) == [(0, 2, 3), before[1]]
    done = commands.run("groups", "delete-offsets", read, "-t", f"{read}:0")
    assert (done.returncode, b"give --topic without partitions" in done.stderr) == (2, True), done
    deleted = commands.did("groups", "delete-offsets", read, "-t", read)
    assert deleted.splitlines() == [f"{read}: {read}-{n}: deleted" for n in (0, 1)]
    assert ours(commands, read) == rows(commands, read) == []
    assert commands.did("groups", "delete", read) == f"{read}: deleted\n"
    done = commands.run("groups", "describe", read)
    assert (done.returncode, b"does not exist" in done.stderr) == (1, True), done


def test_group_with_a_member_keeps_its_offsets(commands: Commands, joined: str) -> None:
    found = described(commands, joined)
    assert (found["state"], found["assignor"]) == ("Stable", "simple")
    shown = commands.did("groups", "describe", joined, "--members")
    assert f"{joined}-0 {joined}-1" in shown
    reset = ("groups", "reset-offsets", joined, "--all-topics", "--to-earliest", "--execute")
    done = commands.run(*reset)
    assert (done.returncode, b"Stable: stop its members first" in done.stderr) == (1, True), done
    done = commands.run("groups", "delete-offsets", joined, "-t", joined)
    assert (done.returncode, b"NON_EMPTY_GROUP" in done.stderr) == (1, True), done
    done = commands.run("groups", "delete", joined)
    assert (done.returncode, b"NON_EMPTY_GROUP" in done.stderr) == (1, True), done
