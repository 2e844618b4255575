"""The verbs of `configs` and `quotas` on written answers: who is asked, what is sent and shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraft_wire.cli.configs import command
from kraft_wire.cli.configs.command import app as configs
from kraft_wire.cli.quotas import command as quotas_command
from kraft_wire.cli.quotas.admin import Quotas
from kraft_wire.cli.quotas.command import app as quotas
from kraft_wire.wire.generated import describe_configs as describing
from kraft_wire.wire.generated import incremental_alter_configs as altering
from tests.cli.played_cluster import PlayedCluster

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    """A cluster with two settings of everything, which accepts every change."""
    for name in ("KRAFT_WIRE_BOOTSTRAP_SERVER", "KRAFT_WIRE_BOOTSTRAP_CONTROLLER"):
        monkeypatch.delenv(name, raising=False)
    cluster = PlayedCluster(monkeypatch)
    monkeypatch.setattr(
        command, "connect_any", lambda addresses: cluster.asked.append(addresses) or cluster
    )
    entry = describing.DescribeConfigsResourceResult
    result = describing.DescribeConfigsResult(
        configs=[
            entry(name="set", value="[b]x", config_source=1, documentation="Own."),
            entry(name="other", value="2", config_source=5, documentation="Default."),
            entry(name="secret", value=None, config_source=2),
        ]
    )
    cluster.answers[describing.DescribeConfigsRequest] = describing.DescribeConfigsResponse(
        results=[result]
    )
    cluster.answers[altering.IncrementalAlterConfigsRequest] = (
        altering.IncrementalAlterConfigsResponse()
    )
    return cluster


def test_limits_in_brackets_are_shown(played: PlayedCluster) -> None:
    _, table, _ = played.run(configs, "explain compression.type")
    limits = "[uncompressed, zstd, lz4, snappy, gzip, producer]"
    assert [limits in line for line in table.splitlines()] == [False, True, True]


@pytest.mark.parametrize(
    ("words", "resource", "asked"),
    [
        ("--topic t", (TOPIC, "t"), [30.0]),
        ("--broker 0", (BROKER, "0"), [30.0, 0]),
        ("--broker-defaults", (BROKER, ""), [30.0]),
        ("--group 5", (GROUP, "5"), [30.0]),
        ("--entity-type topics --entity-name 7", (TOPIC, "7"), [30.0]),
        ("--entity-type brokers --entity-name 7", (BROKER, "7"), [30.0, 7]),
        ("--entity-type brokers --entity-default", (BROKER, ""), [30.0]),
        ("--entity-type groups --entity-name g", (GROUP, "g"), [30.0]),
        ("--entity-type client-metrics --entity-name m", (METRICS, "m"), [30.0]),
        ("--broker 3 --bootstrap-controller c:1", (BROKER, "3"), ["c:1"]),
    ],
)
def test_settings_are_asked_of_the_node_that_has_them(
    played: PlayedCluster, words: str, resource: tuple[int, str], asked: list[object]
) -> None:
    found = json.loads(played.run(configs, f"describe {words} --json")[1])
    assert found == [
        {"name": "secret", "value": None, "source": "dynamic broker", "documentation": ""},
        {"name": "set", "value": "[b]x", "source": "topic", "documentation": "Own."},
    ]
    (sent,) = played.sent[0].resources
    assert ((sent.resource_type, sent.resource_name), played.asked) == (resource, asked)
    assert sent.configuration_keys is None
    line = f"alter {words} --add-config num.io.threads=[4] --delete-config background.threads"
    assert played.run(configs, line) == (
        0,
        "num.io.threads: set to 4\nbackground.threads: removed\n",
        "",
    )
    (sent,) = played.sent[1].resources
    assert (sent.resource_type, sent.resource_name) == resource
    changes = [(each.name, each.config_operation, each.value) for each in sent.configs]
    assert changes == [("num.io.threads", 0, "4"), ("background.threads", 1, None)]


def test_settings_are_a_table_and_defaults_are_shown_on_request(played: PlayedCluster) -> None:
    assert played.run(configs, "describe --topic t")[1] == (
        "key     value  from\nsecret  -      dynamic broker\nset     [b]x   topic\n"
    )
    assert played.run(configs, "describe --topic t --all")[1] == (
        "key     value  from            meaning\n"
        "other   2      default         Default.\n"
        "secret  -      dynamic broker\n"
        "set     [b]x   topic           Own.\n"
    )


def test_several_settings_are_split_outside_of_brackets(played: PlayedCluster) -> None:
    words = ["--add-config", "a=[x,y],b=1,,", "--add-config", "c=z=w", "--delete-config", "d,e"]
    shown = json.loads(played.run(configs, ["alter", "--topic", "t", *words, "--json"])[1])
    assert shown == {"set": {"a": "x,y", "b": "1", "c": "z=w"}, "deleted": ["d", "e"]}
    changes = [(each.name, each.value) for each in played.sent[0].resources[0].configs]
    assert changes == [("a", "x,y"), ("b", "1"), ("c", "z=w"), ("d", None), ("e", None)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--topic t", "nothing to do: give --add-config or --delete-config"),
        ("--topic t --add-config ,", "nothing to do: give --add-config or --delete-config"),
        ("--topic t --add-config x", '"x" is not of the form key=value'),
        ("--broker 1 --add-config num.io.thread=4", 'unknown key "num.io.thread"; did you mean'),
        ("--broker-defaults --delete-config nope", 'unknown key "nope"'),
        ("--add-config a=b", "give --topic, --broker, --broker-defaults, --group or --entity-t"),
        *(
            (f"{both} --add-config a=b", "give one of --topic, --broker, --broker-defaults and")
            for both in ("--topic t --group g", "--broker 1 --broker-defaults")
        ),
        *(
            (f"--entity-type {kind} --add-config a=b", "give --entity-name, or --entity-default")
            for kind in (
                "topics",
                "groups --entity-default",
                "brokers --entity-name 1 --entity-default",
            )
        ),
        ("--entity-type user --add-config a=b", '--entity-type: unknown type "user"'),
    ],
)  # fmt: skip
def test_wrong_change_is_refused(played: PlayedCluster, words: str, text: str) -> None:
    code, out, err = played.run(configs, f"alter {words}")
    assert (code, out, played.sent) == (2, "", [])
    assert err.startswith(f"kraft-wire configs: {text}")


def test_keys_are_explained_with_defaults_as_a_file_has_them() -> None:
    (found,) = command.explained(["retention.ms"])
    assert found["limits"] == "[-1,...]"
    names = [
        "auto.create.topics.enable",
        "cleanup.policy",
        "compression.type",
        "log.dirs",
        "preallocate",
        "num.io.threads",
    ]
    rows = [
        (each["scope"], each["key"], each["type"], each["default"])
        for each in command.explained(names)
    ]
    assert sorted(rows) == [
        ("node", "auto.create.topics.enable", "boolean", "true"),
        ("node", "compression.type", "string", "producer"),
        ("node", "log.dirs", "list", "-"),
        ("node", "num.io.threads", "int", "8"),
        ("topic", "cleanup.policy", "list", "delete"),
        ("topic", "compression.type", "string", "producer"),
        ("topic", "preallocate", "boolean", "false"),
    ]


class Asked:
    """Notes what the verbs of `quotas` would ask."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.described: list[Any] = []
        self.altered: list[Any] = []
        monkeypatch.setattr(quotas_command, "described_quotas", self._described)
        monkeypatch.setattr(
            quotas_command, "alter_quotas", lambda _, *given: self.altered.append(given)
        )

    def _described(self, connection: object, entity: Any) -> Any:
        self.described.append(entity)
        rates = {"consumer_byte_rate": 1e6, "[x]": 0.5}
        return [Quotas({"user": None, "client-id": "[a]"}, rates), Quotas({"ip": "::1"}, {})]


@pytest.mark.parametrize(
    ("words", "entity"),
    [
        ("", {}),
        ("--user ann", {"user": "ann"}),
        ("--user-defaults --client app", {"user": None, "client-id": "app"}),
        ("--client-defaults", {"client-id": None}),
        ("--ip ::1", {"ip": "::1"}),
        ("--ip-defaults", {"ip": None}),
    ],
)
def test_quotas_are_shown_and_set_for_an_entity(
    played: PlayedCluster,
    words: str,
    entity: dict[str, str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    assert played.run(quotas, f"describe {words}")[1] == (
        "entity                       quota               value\n"
        "default user, client-id [a]  consumer_byte_rate  1000000\n"
        "default user, client-id [a]  [x]                 0.5\n"
    )
    assert json.loads(played.run(quotas, f"describe {words} --json")[1]) == [
        {
            "entity": {"user": None, "client-id": "[a]"},
            "values": {"consumer_byte_rate": 1e6, "[x]": 0.5},
        },
        {"entity": {"ip": "::1"}, "values": {}},
    ]
    assert asked.described == [entity, entity]
    line = f"set {words} --add-config a=1.50,b=2e9 --delete-config c,d"
    code, text, said = played.run(quotas, line)
    if not entity:
        assert (code, text) == (2, "")
        assert said.startswith("kraft-wire quotas: give --user, --client or --ip, or one of")
        return
    assert [each.split(": ")[1] for each in text.splitlines()] == [
        "a set to 1.5",
        "b set to 2000000000",
        "c removed",
        "d removed",
    ]
    assert asked.altered == [(entity, {"a": 1.5, "b": 2e9}, ["c", "d"])]
    shown = json.loads(played.run(quotas, f"{line} --json")[1])
    assert shown == {"entity": entity, "set": {"a": 1.5, "b": 2e9}, "deleted": ["c", "d"]}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("set --user a --user-defaults", "give one of --user and --user-defaults"),
        ("describe --client a --client-defaults", "give one of --client and --client-defaults"),
        ("set --ip a --ip-defaults", "give one of --ip and --ip-defaults"),
        ("set --user a", "nothing to do: give --add-config or --delete-config"),
        ("set --user a --add-config x=y", "x: y is not a number"),
        ("set --user a --add-config x", '"x" is not of the form key=value'),
    ],
)
def test_wrong_quota_is_refused(played: PlayedCluster, words: str, text: str) -> None:
    assert played.run(quotas, words) == (2, "", f"kraft-wire quotas: {text}\n")
