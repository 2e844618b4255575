"""`kraft-wire configs`, and topics as Kafka's scripts name their options, on both makes."""

import json
from collections.abc import Sequence
from itertools import count

import pytest

from kraft_wire.cli.kafka_flags import translated
from kraft_wire.settings.broker import OWN_DEFAULTS, OWN_KEYS
from tests.apache.tools import run_tool
from tests.cli.conftest import Commands
from tests.waiting import until

NUMBERS = count()


def shown(commands: Commands, *options: str) -> dict[str, str]:
    """Keys that are set, and from where."""
    found = json.loads(commands.did("configs", "describe", *options, "--json"))
    return {each["key" if "key" in each else "name"]: each["value"] for each in found}


def test_topic_is_created_altered_described_and_deleted_with_kafkas_options(
    commands: Commands,
) -> None:
    topic = f"cf-{next(NUMBERS)}"
    commands.did("topics", "--create", "--topic", topic, "--partitions", "2")
    assert topic in commands.did("topics", "--list")
    commands.did("topics", "--alter", "--topic", topic, "--partitions", "3")
    said = commands.did("topics", "add-partitions", topic, "-p", "9", "--dry-run")
    assert said == f"{topic}: dry run: would have 9 partitions\n"
    commands.did("topics", "add-partitions", topic, "-p", "4")
    until(
        lambda: commands.did("topics", "--describe", f"--topic={topic}").count(topic) == 4,
        lambda: commands.did("topics", "describe", topic),
    )
    done = commands.run("topics", "add-partitions", topic, "-p", "2")
    assert (done.returncode, b"INVALID_PARTITIONS" in done.stderr) == (1, True), done
    commands.did("topics", "alter", topic, "--config", "retention.ms=5", "-c", "segment.ms=7")
    commands.did("topics", "alter", topic, "--delete-config", "segment.ms")

    def left() -> tuple[str | None, str | None]:
        found = shown(commands, "--entity-type", "topics", "--entity-name", topic)
        return found.get("retention.ms"), found.get("segment.ms")

    until(lambda: left() == ("5", None), lambda: str(left()))
    assert shown(commands, "--topic", topic)["retention.ms"] == "5"
    commands.did("topics", "--delete", "--topic", topic)
    assert "nothing to do" in commands.run("topics", "alter", topic).stderr.decode()


def test_broker_and_cluster_wide_settings_are_set_and_deleted(commands: Commands) -> None:
    one, all_of_them = ("--broker", "1"), ("--broker-defaults",)
    commands.did("configs", "alter", *one, "--add-config", "log.cleaner.threads=2")
    commands.did("configs", "alter", *all_of_them, "--add-config", "message.max.bytes=900000")
    until(
        lambda: (
            shown(commands, *one).get("log.cleaner.threads") == "2"
            and shown(commands, *one)["message.max.bytes"] == "900000"
        ),
        lambda: str(shown(commands, *one)),
    )
    assert shown(commands, *all_of_them)["message.max.bytes"] == "900000"
    everything = json.loads(commands.did("configs", "describe", *one, "--all", "--json"))
    assert len(everything) > 200
    assert all(each["documentation"] for each in everything)
    commands.did("configs", "alter", *one, "--delete-config", "log.cleaner.threads")
    commands.did("configs", "alter", *all_of_them, "--delete-config", "message.max.bytes")
    until(
        lambda: "message.max.bytes" not in shown(commands, *all_of_them),
        lambda: str(shown(commands, *all_of_them)),
    )
    done = commands.run("configs", "alter", *one, "--add-config", "num.io.threds=2")
    assert (done.returncode, b'did you mean "num.io.threads"?' in done.stderr) == (2, True), done


@pytest.mark.java
def test_apaches_tool_sees_the_lists_and_values_that_were_set(commands: Commands) -> None:
    topic = f"cf-{next(NUMBERS)}"
    commands.did("topics", "create", topic)
    values = "cleanup.policy=[compact,delete],retention.ms=12345"
    commands.did("configs", "alter", "--topic", topic, "--add-config", values)
    until(lambda: "retention.ms" in shown(commands, "--topic", topic))  # as the broker sees it
    server = ["--bootstrap-server", commands.bootstrap, "--describe", "--topic", topic]
    done = run_tool("kafka-configs", server)
    assert "cleanup.policy=compact,delete sensitive=false" in done.stdout, done.text
    assert "retention.ms=12345 sensitive=false" in done.stdout


def test_cluster_of_one_node_is_healthy(commands: Commands) -> None:
    table = commands.did("cluster", "health").splitlines()
    assert [line.split()[:2] for line in table[1:]] == [
        [check, "ok"] for check in ("brokers", "quorum", "leaders", "replicas")
    ]
    assert commands.run("cluster", "health", "--json").returncode == 0


def test_own_keys_are_explained_without_a_broker(module_server: object) -> None:
    commands = Commands(module_server)  # type: ignore[arg-type]  # a fixture's type
    program = ("configs", "explain")
    done = commands.run(*program)
    assert done.returncode == 2, "it takes no address"
    from typer.testing import CliRunner

    from kraft_wire.cli.configs.command import app

    found = json.loads(CliRunner().invoke(app, ["explain", "--json"]).stdout)
    assert {each["key"] for each in found} == {*OWN_KEYS, *OWN_DEFAULTS}
    assert all(each["meaning"] for each in found)
    table = CliRunner().invoke(app, ["explain", "retention.ms"]).stdout.splitlines()
    assert [line.split()[:4] for line in table[1:]] == [
        ["retention.ms", "topic", "long", "604800000"]
    ]
    wrong = CliRunner().invoke(app, ["explain", "retention.sm"])
    assert (wrong.exit_code, 'did you mean "retention.ms"?' in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((), "give --topic, --broker, --broker-defaults, --group or --entity-type"),
        (("--topic", "t", "--broker", "1"), "give one of --topic, --broker"),
        (("--entity-type", "topic"), 'unknown type "topic"; did you mean "topics"?'),
        (("--entity-type", "topics"), "give --entity-name, or --entity-default for brokers"),
        (("--entity-type", "topics", "--entity-default"), "give --entity-name"),
        (("--broker", "77"), "77"),
    ],
)
def test_what_cannot_be_described_is_one_line(
    module_server: object, options: tuple[str, ...], line: str
) -> None:
    commands = Commands(module_server)  # type: ignore[arg-type]  # a fixture's type
    done = commands.run("configs", "describe", *options)
    (said,) = done.stderr.decode().splitlines()
    assert line in said
    assert done.returncode in (1, 2)


@pytest.mark.parametrize(
    ("verb", "typed", "meant"),
    [
        ("topics", "--list", "list --internal"),
        ("topics", "--list --exclude-internal -b h:1", "list -b h:1"),
        ("topics", "-b h:1 --describe --topic a --topic=b", "describe -b h:1 a b"),
        ("topics", "--describe --under-replicated-partitions", "describe --under-replicated"),
        ("topics", "describe --topic a", "describe a"),
        ("topics", "describe --topic", "describe"),
        ("groups", "--describe --group g --members", "describe --group g --members"),
        ("groups", "--group g --reset-offsets --topic t:0", "reset-offsets --group g --topic t:0"),
        ("groups", "--delete-offsets --group g --topic t", "delete-offsets --group g --topic t"),
        ("configs", "--alter --topic t", "alter --topic t"),
        ("wire", "--list", "--list"),
    ],
)
def test_kafkas_form_is_translated(verb: str, typed: str, meant: str) -> None:
    found: Sequence[str] = translated(verb, typed.split())
    assert " ".join(found) == meant
