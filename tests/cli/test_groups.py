"""`kraft-wire groups` against our node and Apache's, beside confluent-kafka and Apache's tool."""

import json
import re
from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kraft_wire.cli.groups.reset import read_target
from kraft_wire.cli.output import WrongInput
from tests.apache.tools import run_tool
from tests.cli.conftest import Commands
from tests.waiting import until

NUMBERS = count()


@pytest.fixture
def read(commands: Commands) -> tuple[str, str]:
    """A topic of two partitions, and a group that has read the five records of partition 0.

    The records are of 1970: nothing may delete them for their age.
    """
    topic, group = f"gr-{next(NUMBERS)}", f"gr-group-{next(NUMBERS)}"
    commands.did("topics", "create", topic, "-p", "2", "--config", "retention.ms=-1")
    for partition in ("0", "1"):
        lines = [json.dumps({"value": str(n), "timestamp_ms": 1000 + n}) for n in range(5)]
        text = "\n".join(lines).encode()
        commands.did("produce", topic, "--json", "-p", partition, stdin=text)
    consumer = Consumer({"bootstrap.servers": commands.bootstrap, "group.id": group})
    until(lambda: has_committed(consumer, TopicPartition(topic, 0, 5)))
    consumer.close()
    return topic, group


def has_committed(consumer: Consumer, place: TopicPartition) -> bool:
    """Commit an offset; False while a group coordinator that is new loads its groups."""
    try:
        consumer.commit(offsets=[place], asynchronous=False)
    except KafkaException as refused:
        if refused.args[0].code() == KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            return False
        raise
    return True


def offsets(commands: Commands, group: str) -> dict[int, int]:
    """What the group has committed, by partition."""
    (found,) = json.loads(commands.did("groups", "describe", group, "--json"))
    return {each["partition"]: each["committed_offset"] for each in found["partitions"]}


def test_group_is_listed_described_and_deleted(commands: Commands, read: tuple[str, str]) -> None:
    topic, group = read
    listed = json.loads(commands.did("groups", "list", "--json"))
    (row,) = [each for each in listed if each["group"] == group]
    assert (row["state"], row["type"]) == (
        "Empty",
        "Classic" if row["type"][0] == "C" else "classic",
    )
    commands.did(
        "groups", "reset-offsets", group, "-t", f"{topic}:0", "--to-offset", "3", "--execute"
    )
    (found,) = json.loads(commands.did("groups", "describe", group, "--json"))
    assert (found["state"], found["lag"], found["members"]) == ("Empty", 2, [])
    expected = {
        "topic": topic,
        "partition": 0,
        "committed_offset": 3,
        "log_end_offset": 5,
        "lag": 2,
    }
    assert found["partitions"] == [{**expected, "member_id": None}]
    assert re.search(rf"{group} +{topic} +0 +3 +5 +2 +-", commands.did("groups", "describe", group))
    assert commands.did("groups", "delete", group) == f"{group}: deleted\n"
    done = commands.run("groups", "describe", group)
    assert (done.returncode, b"does not exist" in done.stderr) == (1, True), done
    done = commands.run("groups", "delete", group)
    assert (done.returncode, b"GROUP_ID_NOT_FOUND" in done.stderr) == (1, True), done


def test_members_and_lag_are_shown_while_they_read(
    commands: Commands, read: tuple[str, str]
) -> None:
    topic, group = read
    settings = {"bootstrap.servers": commands.bootstrap, "group.id": group, "client.id": "me"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    until(lambda: (consumer.poll(0.1), len(consumer.assignment()))[1] == 2, lambda: "no assignment")
    (found,) = json.loads(commands.did("groups", "describe", "-g", group, "--json"))
    assert (found["state"], found["assignor"]) == ("Stable", "range")
    (member,) = found["members"]
    assert member["client_id"] == "me"
    assert member["partitions"] == [{"topic": topic, "partition": each} for each in (0, 1)]
    assert [(each["committed_offset"], each["lag"]) for each in found["partitions"]] == [
        (5, 0),
        (None, None),
    ]
    assert f"{topic}-0 {topic}-1" in commands.did("groups", "describe", group, "--members")
    assert re.search(r"range +Stable +1 +0", commands.did("groups", "describe", group, "--state"))
    reset = ("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute")
    done = commands.run(*reset)
    assert (done.returncode, b"Stable: stop its members first" in done.stderr) == (1, True), done
    done = commands.run("groups", "delete", group)
    assert (done.returncode, b"NON_EMPTY_GROUP" in done.stderr) == (1, True), done
    consumer.close()


@pytest.mark.java
@pytest.mark.parametrize(
    "option",
    [
        ("--to-earliest",),
        ("--to-latest",),
        ("--to-offset", "2"),
        ("--to-offset", "99"),
        ("--shift-by", "-2"),
        ("--shift-by", "-99"),
        ("--to-current",),
        ("--to-datetime", "1970-01-01T00:00:01.003"),
        ("--by-duration", "PT1S"),
    ],
)
def test_reset_goes_where_apaches_tool_goes(
    commands: Commands, read: tuple[str, str], option: tuple[str, ...]
) -> None:
    topic, group = read
    scope = ["--group", group, "--topic", f"{topic}:0"]
    server = ["--bootstrap-server", commands.bootstrap]
    theirs = run_tool(
        "kafka-consumer-groups", [*server, *scope, "--reset-offsets", *option, "--dry-run"]
    )
    found = re.search(rf"{group} +{topic} +0 +(\d+)", theirs.stdout)
    assert found is not None, theirs.text
    shown = json.loads(commands.did("groups", "reset-offsets", *scope, *option, "--json"))
    assert (shown["executed"], offsets(commands, group)) == (False, {0: 5}), "a dry run"
    assert [each["new_offset"] for each in shown["partitions"]] == [int(found[1])]
    text = commands.did("groups", "reset-offsets", *scope, *option)
    assert re.search(rf"^{topic} +0 +5 +{found[1]} *$", text, re.MULTILINE), text
    assert "dry run: nothing was changed" in text
    commands.did("groups", "reset-offsets", *scope, *option, "--execute")
    assert offsets(commands, group) == {0: int(found[1])}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--to-earliest",), "give --topic or --all-topics"),
        (("--topic", "x:a", "--to-earliest"), '"x:a" is not of the form topic or topic:0,1'),
        (("--all-topics",), "give one of --to-earliest, --to-latest"),
        (("--all-topics", "--to-latest", "--shift-by", "0"), "give one of --to-earliest"),
        (("--all-topics", "--by-duration", "1h"), '"1h" is not an ISO 8601 duration'),
        (("--all-topics", "--to-latest"), "has no committed offsets"),
    ],
)
def test_what_cannot_be_reset_is_one_line(
    module_server: object, options: tuple[str, ...], line: str
) -> None:
    commands = Commands(module_server)  # type: ignore[arg-type]  # a fixture's type
    done = commands.run("groups", "reset-offsets", "nobody", *options)
    (said,) = done.stderr.decode().splitlines()
    assert line in said
    assert done.returncode == 1 + (line != "has no committed offsets")


def test_offset_zero_is_a_target() -> None:
    target = read_target({"--to-offset": 0, "--to-latest": False}, 0)
    assert target.start is not None
    assert target.start.offset == 0
    with pytest.raises(WrongInput):
        read_target({"--shift-by": None}, 0)
