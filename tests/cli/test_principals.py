"""`kraft-wire acls`, `users` and `quotas` against our node and Apache's, beside Apache's tools.

Both nodes name the standard authorizer, with everybody as its super user.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.apache.node import ApacheNode
from tests.apache.tools import run_tool
from tests.cli.conftest import Commands
from tests.server_process import ServerProcess
from tests.waiting import until

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
KINDS = {"apache": ApacheNode, "ours": ServerProcess}
ONE_TOPIC = ("--allow-principal", "User:ann", "--operation", "Read", "--topic", "t")
PREFIXED = ("--resource-pattern-type", "prefixed")
LINES = (
    ONE_TOPIC,
    ("--deny-principal", "User:eve", "--deny-host", "10.0.0.9", "--group", "g", "--group", "h"),
    ("--allow-principal", "User:ann", "--allow-principal", "User:bob", "--topic", "p-", *PREFIXED),
    ("--allow-principal", "User:p", "--producer", "--topic", "t", "--transactional-id", "x"),
    ("--allow-principal", "User:q", "--producer", "--idempotent", "--topic", "*"),
    ("--allow-principal", "User:c", "--consumer", "--topic", "t", "--group", "g"),
    ("--allow-principal", "User:ann", "--operation", "DescribeConfigs", "--cluster"),
    ("--allow-principal", "User:m", "--allow-host", "::1", "--producer", "--consumer",
     "--topic", "t", "--group", "g"),
    ("--allow-principal", "User:ann", "--operation", "CreateTokens", "--user-principal", "User:b"),
)  # fmt: skip
"""Command lines after `--add`, the same for both tools."""


@pytest.fixture(scope="module", params=["ours", pytest.param("apache", marks=pytest.mark.java)])
def secured(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    directory = tmp_path_factory.mktemp(request.param)
    with KINDS[request.param](directory, overrides=AUTHORIZER) as running:
        yield Commands(running)


def tool(commands: Commands, name: str, *arguments: str) -> str:
    """Run a tool of Apache's that must succeed."""
    done = run_tool(name, ["--bootstrap-server", commands.bootstrap, *arguments])
    assert done.exit_code == 0, done.text
    return done.stdout


def rows(commands: Commands, *arguments: str) -> list[dict[str, Any]]:
    """Return what a verb prints as JSON."""
    found: list[dict[str, Any]] = json.loads(commands.did(*arguments, "--json"))
    return found


def seen(commands: Commands, *arguments: str) -> Callable[[int], list[dict[str, Any]]]:
    """Return what waits until a list has so many rows: brokers follow the log."""

    def wait(count: int) -> list[dict[str, Any]]:
        until(lambda: len(rows(commands, *arguments)) == count)
        return rows(commands, *arguments)

    return wait


def test_entries_are_added_listed_and_removed(secured: Commands) -> None:
    (added,) = rows(secured, "acls", "add", *ONE_TOPIC)
    assert added == {
        "resource_type": "topic",
        "resource_name": "t",
        "pattern_type": "literal",
        "principal": "User:ann",
        "host": "*",
        "operation": "read",
        "permission": "allow",
    }
    assert seen(secured, "acls", "list")(1) == [added]
    assert rows(secured, "acls", "--list", "--principal", "User:bob") == []
    matching = ("--topic", "t", "--resource-pattern-type", "match", "--principal", "User:ann")
    assert rows(secured, "acls", "list", *matching) == [added]
    table = secured.did("acls", "list").split()
    assert table == [
        *("type", "name", "pattern", "principal", "host", "operation", "permission"),
        *added.values(),
    ]
    assert rows(secured, "acls", "--remove", *ONE_TOPIC) == [added]
    seen(secured, "acls", "list")(0)


def test_removing_all_of_a_resource_asks_or_is_forced(secured: Commands) -> None:
    secured.did("acls", "add", *ONE_TOPIC)
    seen(secured, "acls", "list")(1)
    asked = secured.run("acls", "remove", "--topic", "t", stdin=b"n\n")
    assert asked.returncode != 0
    assert b"Remove all entries" in asked.stderr
    assert len(rows(secured, "acls", "list")) == 1
    assert len(rows(secured, "acls", "remove", "--topic", "t", "--force")) == 1
    seen(secured, "acls", "list")(0)


@pytest.mark.java
@pytest.mark.slow
def test_same_options_make_the_entries_of_kafka_acls(secured: Commands) -> None:
    for line in LINES:
        tool(secured, "kafka-acls", "--add", *line)
    theirs = _until_the_last_is_seen(secured)
    removed = [row for line in LINES for row in rows(secured, "acls", "remove", *line)]
    assert sorted(map(str, removed)) == sorted(map(str, theirs))
    seen(secured, "acls", "list")(0)
    for line in LINES:
        secured.did("acls", "add", *line)
    assert _until_the_last_is_seen(secured) == theirs
    assert len(theirs) == 24
    listed = tool(secured, "kafka-acls", "--list")
    assert listed.count("permissionType=") == len(theirs), listed
    for line in LINES:
        rows(secured, "acls", "remove", *line)
    seen(secured, "acls", "list")(0)


def _until_the_last_is_seen(commands: Commands) -> list[dict[str, Any]]:
    """Return all entries, once those of the last line are among them."""

    def found() -> list[dict[str, Any]]:
        listed = rows(commands, "acls", "list")
        return listed if any(row["resource_type"] == "user" for row in listed) else []

    return until(found)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("list --resource-pattern-type glob", "unknown type"),
        ("add --topic t", "give --allow-principal or --deny-principal"),
        ("add --allow-principal ann --topic t", "write User:ann"),
        ("add --allow-principal User:ann", "give --topic"),
        ("add --allow-principal User:ann --topic t --operation Raed", 'did you mean "read"?'),
        ("add --allow-principal User:ann --topic t --operation ClusterAction", "means nothing"),
        ("add --allow-principal User:ann --group g --producer", "need --topic"),
        ("add --allow-principal User:ann --topic t --consumer", "needs --group"),
        ("add --allow-principal User:ann --topic t --idempotent", "needs --producer"),
        ("add --allow-principal User:ann --topic t --producer --operation Read", "of their own"),
        ("add --allow-principal User:ann --topic t --resource-pattern-type match", "unknown type"),
        ("add --deny-principal User:ann --topic t --allow-host 1.1.1.1", "--allow-principal"),
        ("remove --topic t --operation Read", "too"),
    ],
)
def test_wrong_lines_are_refused_before_anything_is_asked(line: str, says: str) -> None:
    broken = Commands(_Nowhere())  # type: ignore[arg-type]  # nothing is dialled
    done = broken.run("acls", *line.split())
    assert done.returncode == 2, done
    assert done.stderr.startswith(b"kraft-wire acls: "), done
    assert says in done.stderr.decode(), done


class _Nowhere:
    bootstrap = "127.0.0.1:1"


def test_users_get_change_and_lose_their_credentials(secured: Commands) -> None:
    secret = b"correct horse\nnot this\n"
    done = secured.did("users", "set-scram", "ann", "--password-file", "-", stdin=secret)
    assert "ann: SCRAM-SHA-512 set with 4096 iterations" in done
    assert seen(secured, "users", "list")(2) == [
        {"user": "ann", "mechanism": mechanism, "iterations": 4096}
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    one = ("--mechanism", "SCRAM-SHA-256")
    more = ("--iterations", "9000", "--password-file", "-")
    secured.did("users", "set-scram", "ann", *one, *more, stdin=secret)
    until(lambda: rows(secured, "users", "list", "ann")[0]["iterations"] == 9000)
    assert "SCRAM-SHA-256: 9000" not in secured.did("users", "list")
    secured.did("users", "delete", "ann", *one)
    seen(secured, "users", "list", "ann")(1)
    refused = secured.run("users", "delete", "ann", *one)
    assert (refused.returncode, b"RESOURCE_NOT_FOUND" in refused.stderr) == (1, True)
    secured.did("users", "delete", "ann")
    seen(secured, "users", "list")(0)
    assert rows(secured, "users", "list", "ann") == []


def test_users_are_refused_without_password_or_with_an_unknown_mechanism(secured: Commands) -> None:
    empty = secured.run("users", "set-scram", "ann", "--password-file", "-", stdin=b"\n")
    assert (empty.returncode, b"first line is empty" in empty.stderr) == (2, True)
    plain = secured.run("users", "set-scram", "ann", "--mechanism", "PLAIN")
    assert (plain.returncode, b"PLAIN" in plain.stderr) == (2, True)
    few = ("--iterations", "10", "--password-file", "-")
    done = secured.run("users", "set-scram", "ann", *few, stdin=b"secret\n")
    assert (done.returncode, b"UNACCEPTABLE_CREDENTIAL" in done.stderr) == (1, True)
    assert b"secret" not in done.stderr + done.stdout


@pytest.mark.java
@pytest.mark.slow
def test_kafka_configs_sees_credentials_and_quotas(secured: Commands) -> None:
    secured.did("users", "set-scram", "joe", "--password-file", "-", stdin=b"pw\n")
    seen(secured, "users", "list", "joe")(2)
    user = ("--entity-type", "users", "--entity-name", "joe")
    secured.did("quotas", "set", "--user", "joe", "--add-config", "producer_byte_rate=1024")
    until(lambda: bool(rows(secured, "quotas", "describe", "--user", "joe")))
    shown = tool(secured, "kafka-configs", "--describe", *user)
    assert "producer_byte_rate=1024.0" in shown
    assert "SCRAM-SHA-256=iterations=4096" in shown
    assert "SCRAM-SHA-512=iterations=4096" in shown
    client = ("--entity-type", "clients", "--entity-default")
    changed = ("--add-config", "request_percentage=12.5")
    tool(secured, "kafka-configs", "--alter", *user, *client, *changed)
    both = ("quotas", "describe", "--user", "joe", "--client-defaults")
    (found,) = seen(secured, *both)(1)
    assert found == {
        "entity": {"user": "joe", "client-id": None},
        "values": {"request_percentage": 12.5},
    }
    tool(secured, "kafka-configs", "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert seen(secured, "users", "list", "joe")(1)[0]["mechanism"] == "SCRAM-SHA-512"
    secured.did("users", "delete", "joe")
    secured.did("quotas", "set", "--user", "joe", "--delete-config", "producer_byte_rate")
    secured.did(
        *("quotas", "set", "--user", "joe", "--client-defaults"),
        *("--delete-config", "request_percentage"),
    )
    seen(secured, "quotas", "describe")(0)


def test_quotas_are_set_shown_and_removed(secured: Commands) -> None:
    address = ("--ip", "127.0.0.1")
    added = ("--add-config", "connection_creation_rate=20")
    secured.did("quotas", "set", *address, *added)
    rates = "producer_byte_rate=2048,consumer_byte_rate=512.0"
    secured.did("quotas", "set", "--user-defaults", "--add-config", rates)
    found = seen(secured, "quotas", "describe")(2)
    assert found == [
        {
            "entity": {"user": None},
            "values": {"consumer_byte_rate": 512.0, "producer_byte_rate": 2048.0},
        },
        {"entity": {"ip": "127.0.0.1"}, "values": {"connection_creation_rate": 20.0}},
    ]
    table = secured.did("quotas", "describe", *address)
    assert table.split() == ["entity", "quota", "value", "ip", "127.0.0.1", *_words(added)]
    changed = ("--delete-config", "producer_byte_rate", "--add-config", "consumer_byte_rate=7")
    secured.did("quotas", "set", "--user-defaults", *changed)
    alone = [{"entity": {"user": None}, "values": {"consumer_byte_rate": 7.0}}]
    until(lambda: rows(secured, "quotas", "describe", "--user-defaults") == alone)
    secured.did("quotas", "set", "--user-defaults", "--delete-config", "consumer_byte_rate")
    secured.did("quotas", "set", *address, "--delete-config", "connection_creation_rate")
    seen(secured, "quotas", "describe")(0)


def _words(added: tuple[str, str]) -> list[str]:
    return added[1].split("=")


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("set --user ann", 2, "nothing to do"),
        ("set --add-config a=1", 2, "give --user"),
        ("set --user ann --user-defaults --add-config a=1", 2, "one of --user and"),
        ("set --user ann --add-config producer_byte_rate=fast", 2, "fast is not a number"),
        ("set --user ann --add-config no_such_rate=1", 1, "INVALID_REQUEST"),
        ("set --user ann --ip 1.1.1.1 --add-config producer_byte_rate=1", 1, "INVALID_REQUEST"),
    ],
)
def test_wrong_quotas_are_refused(secured: Commands, line: str, code: int, says: str) -> None:
    done = secured.run("quotas", *line.split())
    assert (done.returncode, says in done.stderr.decode()) == (code, True), done


def test_hosts_are_added_and_removed_one_by_one(secured: Commands) -> None:
    """AclCommand: each principal at each of its hosts; a filter has the same hosts."""
    base = ("--topic", "hosts", "--operation", "Read")
    allowed = ("--allow-principal", "User:ann", "--allow-host", "h1", "--allow-host", "h2")
    denied = ("--deny-principal", "User:ann", "--deny-host", "h3")
    rows(secured, "acls", "add", *base, *allowed, *denied)
    listed = ("acls", "list", "--topic", "hosts")

    def places() -> list[tuple[str, str]]:
        return sorted((each["host"], each["permission"]) for each in rows(secured, *listed))

    whole = [("h1", "allow"), ("h2", "allow"), ("h3", "deny")]
    seen(secured, *listed)(3)
    assert places() == whole
    who = ("--allow-principal", "User:ann", "--allow-host", "h2")
    assert [each["host"] for each in rows(secured, "acls", "remove", *base, *who)] == ["h2"]
    seen(secured, *listed)(2)
    assert places() == [whole[0], whole[2]]
    who = ("--deny-principal", "User:ann", "--deny-host", "h3")
    assert [each["host"] for each in rows(secured, "acls", "remove", *base, *who)] == ["h3"]
    seen(secured, *listed)(1)
    assert places() == whole[:1]
    rows(secured, "acls", "remove", "--topic", "hosts", "--force")
