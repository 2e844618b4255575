"""Listeners as Kafka's `SocketServerConfigs` and `KafkaConfig` read them: names, protocols, order.

Names and protocols count in any case. Of several listeners of controllers the first name counts.
"""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.node.config.listeners import Listeners, inter_broker_listener, read_listeners
from kraft_wire.node.config.sources import ConfigError, ConfigReader, Setting
from kraft_wire.settings.node_settings import NodeSettings

MAP, NAMES = "listener.security.protocol.map", "controller.listener.names"


def read(listeners: str, *, roles: str = "both", **more: str) -> Listeners:
    texts = {"listeners": listeners, NAMES: "CONTROLLER"}
    texts |= {key.replace("_", "."): text for key, text in more.items()}
    merged = {key: Setting(text, "file:1") for key, text in texts.items() if text}
    reader = ConfigReader(
        NodeSettings({key: each.value for key, each in merged.items()}), merged, "file"
    )
    return read_listeners(
        reader,
        lambda: "machine",
        is_broker=roles != "controller",
        is_controller=roles != "broker",
        is_embedded=roles == "embedded",
    )


def protocols(found: Listeners) -> dict[str, str]:
    return {each.name: each.protocol for each in (*found.clients, *found.controller)}


def test_names_and_protocols_count_in_any_case_and_between_spaces() -> None:
    found = read(
        "clients://h:1, Other://h:2 ,controller://h:3",
        controller_listener_names=" Controller ",
        listener_security_protocol_map="CLIENTS:sasl_ssl, other : Ssl ,Controller:Plaintext",
        advertised_listeners="CLIENTS://shown:9",
    )
    assert protocols(found) == {"CLIENTS": "SASL_SSL", "OTHER": "SSL", "CONTROLLER": "PLAINTEXT"}
    first, second = found.clients
    assert (first.host, first.advertised_host, first.advertised_port) == ("h", "shown", 9)
    assert (second.advertised_host, second.advertised_port) == ("h", 2)


def test_map_counts_more_than_the_name_of_a_protocol() -> None:
    found = read(
        "SSL://h:1,PLAINTEXT://h:2,CONTROLLER://h:3",
        **{MAP: "SSL:PLAINTEXT,CONTROLLER:SSL,PLAINTEXT:PLAINTEXT"},
    )
    assert protocols(found) == {"SSL": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", "CONTROLLER": "SSL"}


def test_controllers_listener_is_plaintext_only_while_no_map_is_set() -> None:
    """KIP-801, as `KafkaConfig.effectiveListenerSecurityProtocolMap` has it."""
    assert protocols(read("PLAINTEXT://h:1,CONTROLLER://h:3"))["CONTROLLER"] == "PLAINTEXT"
    with pytest.raises(ConfigError, match="CONTROLLER has no security protocol: add CONTROLLER to"):
        read("PLAINTEXT://h:1,CONTROLLER://h:3", **{MAP: "PLAINTEXT:PLAINTEXT"})
    with pytest.raises(ConfigError, match="CLIENTS has no security protocol"):
        read("CLIENTS://h:1,CONTROLLER://h:3")


@pytest.mark.parametrize("roles", ["both", "controller", "broker"])
@pytest.mark.parametrize(("names", "protocol"), [("C1,C2", "SSL"), ("C2,C1", "PLAINTEXT")])
def test_first_name_of_the_controllers_counts(roles: str, names: str, protocol: str) -> None:
    """On every node: peers reach the controllers by that listener, wherever it is."""
    clients = [] if roles == "controller" else ["PLAINTEXT://h:1"]
    own = [] if roles == "broker" else ["C1://h:2", "C2://h:3"]
    more = {NAMES: names, MAP: "C1:SSL,C2:PLAINTEXT,PLAINTEXT:PLAINTEXT"}
    found = read(",".join(clients + own), roles=roles, **more)
    assert found.controllers_protocol == protocol
    assert [each.name for each in found.controller] == (names.split(",") if own else [])


@pytest.mark.parametrize(
    ("listeners", "roles", "more", "words"),
    [
        ("A://h:1,a://h:2", "both", {}, "each listener must have a different name"),
        ("CONTROLLER://h:3", "both", {}, "there is no listener for clients"),
        ("PLAINTEXT://h:1,CONTROLLER://h:3", "controller", {}, "only a controller has no listener"),
        ("PLAINTEXT://h:1,CONTROLLER://h:3", "broker", {}, "CONTROLLER is in listeners, and this"),
        ("PLAINTEXT://h:1", "both", {}, "a controller needs one of these names in listeners"),
        ("PLAINTEXT://h:1", "both", {NAMES: ""}, "a controller needs its own listener, here and"),
        ("PLAINTEXT://h:1", "broker", {NAMES: ""}, "a broker needs the name of the controllers'"),
        (
            "PLAINTEXT://h:1",
            "broker",
            {NAMES: "C,X", MAP: "C:SSL,PLAINTEXT:SSL"},
            "X has no security",
        ),
        ("PLAINTEXT://0.0.0.0:1,CONTROLLER://h:3", "both", {}, "listens on all addresses"),
        ("PLAINTEXT://[::]:1,CONTROLLER://h:3", "both", {}, "listens on all addresses"),
        ("PLAINTEXT://h:65536", "both", {}, "'PLAINTEXT://h:65536' is not NAME://host:port"),
        ("://h:1", "both", {}, "'://h:1' is not NAME://host:port"),
        ("PLAINTEXT://h h:1", "both", {}, "'PLAINTEXT://h h:1' is not NAME://host:port"),
        ("PLAINTEXT://h:1,C://h:3", "both", {NAMES: "C,X"}, "X is not in listeners"),
        ("PLAINTEXT://h:1,SSL://h:2,C://h:3", "both", {NAMES: "C"}, "C has no security protocol"),
        ("PLAINTEXT://h:1", "broker", {NAMES: "SSL,C"}, "C has no security protocol: add C to"),
        ("SSL://h:1", "both", {MAP: "SSL:SSL,,C:SSL"}, "'' is not NAME:PROTOCOL"),
        ("SSL://h:1", "both", {MAP: ":SSL"}, "':SSL' is not NAME:PROTOCOL"),
        (
            "SSL://h:1",
            "both",
            {MAP: "SSL:SSL,X:NONE"},
            "NONE is not a security protocol: PLAINTEXT,",
        ),
        ("SSL://h:1", "both", {MAP: "SSL:SSL,ssl:SSL"}, "SSL is listed twice"),
        (
            "PLAINTEXT://h:1,CONTROLLER://h:3",
            "both",
            {"advertised.listeners": "PLAINTEXT://h:1,CONTROLLER://0.0.0.0:1"},
            "0.0.0.0 is not an address that clients can reach",
        ),
        (
            "PLAINTEXT://h:1,CONTROLLER://h:3",
            "both",
            {"inter.broker.listener.name": "SSL"},
            "inter.broker.listener.name=SSL: SSL is none of the listeners for clients: PLAINTEXT",
        ),
        (
            "PLAINTEXT://h:1,CONTROLLER://h:3",
            "both",
            {"inter.broker.listener.name": "CONTROLLER"},
            "CONTROLLER is a listener of controllers",
        ),
        (
            "CONTROLLER://h:3",
            "controller",
            {"inter.broker.listener.name": "CONTROLLER"},
            "CONTROLLER is a listener of controllers",
        ),
        (
            "PLAINTEXT://h:1,CONTROLLER://h:3",
            "both",
            {"inter.broker.listener.name": "OTHER"},
            "inter.broker.listener.name=OTHER: OTHER has no security protocol",
        ),
        (
            "PLAINTEXT://h:1,CONTROLLER://h:3",
            "both",
            {"security.inter.broker.protocol": "SSL"},
            "security.inter.broker.protocol=SSL: SSL is none of the listeners for clients",
        ),
        (
            "PLAINTEXT://h:1,CONTROLLER://h:3",
            "both",
            {
                "inter.broker.listener.name": "PLAINTEXT",
                "security.inter.broker.protocol": "PLAINTEXT",
            },
            "only one of inter.broker.listener.name and security.inter.broker.protocol should be",
        ),
        (
            "PLAINTEXT://h:1,CONTROLLER://h:3",
            "both",
            {"early.start.listeners": "CONTROLLER,X"},
            "early.start.listeners=CONTROLLER,X: X is not in listeners",
        ),
        (
            "PLAINTEXT://h:1",
            "broker",
            {"early.start.listeners": "CONTROLLER"},
            "CONTROLLER is not in listeners",
        ),
        (
            "PLAINTEXT://h:1,CONTROLLER://h:3",
            "both",
            {"advertised.listeners": "SSL://h:1"},
            "SSL is in advertised.listeners, but not in listeners",
        ),
    ],
)
def test_what_kafka_refuses_is_refused(
    listeners: str, roles: str, more: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        read(listeners, roles=roles, **more)
    assert words in str(refusal.value)


def test_a_listener_that_is_not_listed_is_advertised_by_its_own_address() -> None:
    """4.3.1 does not register such a listener; the container image has one."""
    more = {MAP: "A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT", "advertised.listeners": "B://s:9"}
    found = read("A://:1,B://h:2,CONTROLLER://h:3", **more)
    shown = [(each.name, each.advertised_host, each.advertised_port) for each in found.clients]
    assert shown == [("A", "machine", 1), ("B", "s", 9)]


@pytest.mark.parametrize("roles", ["broker", "controller"])
def test_one_list_of_addresses_may_serve_both_kinds_of_nodes(roles: str) -> None:
    """A broker passes over the controllers' listener there, and a controller the brokers'."""
    listeners = "PLAINTEXT://h:1" if roles == "broker" else "CONTROLLER://h:3"
    more = {"advertised.listeners": "PLAINTEXT://shown:1,CONTROLLER://shown:3"}
    found = read(listeners, roles=roles, **more)
    (only,) = found.clients + found.controller
    assert only.advertised_host == "shown"


def test_hosts_are_without_brackets_and_a_missing_one_is_the_machines() -> None:
    found = read(
        "PLAINTEXT://[::1]:1,OTHER://:2,CONTROLLER://[fe80::2]:3",
        **{MAP: "PLAINTEXT:PLAINTEXT,OTHER:SSL,CONTROLLER:PLAINTEXT"},
    )
    places = [
        (each.host, each.port, each.advertised_host) for each in (*found.clients, *found.controller)
    ]
    assert places == [("::1", 1, "::1"), ("0.0.0.0", 2, "machine"), ("fe80::2", 3, "fe80::2")]


def test_embedded_node_needs_no_listener_of_controllers() -> None:
    assert protocols(read("PLAINTEXT://h:1", roles="embedded")) == {"PLAINTEXT": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "PLAINTEXT"),
        ({"inter.broker.listener.name": "a"}, "A"),
        ({"inter.broker.listener.name": "B"}, "B"),
        ({"security.inter.broker.protocol": "SSL"}, "A"),
        ({"inter.broker.listener.name": "b", "security.inter.broker.protocol": "PLAINTEXT"}, "B"),
        ({"inter.broker.listener.name": "absent"}, "A"),
    ],
)
def test_listener_between_brokers_is_named_or_that_of_the_protocol(
    settings: dict[str, str], name: str
) -> None:
    """The default of `security.inter.broker.protocol` is PLAINTEXT; without one, the first."""
    more: dict[str, Any] = {MAP: "A:SSL,B:SSL,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    found = read("A://h:1,B://h:2,PLAINTEXT://h:4,CONTROLLER://h:3", **more)
    chosen = inter_broker_listener(NodeSettings(settings), found.clients)
    assert chosen is not None
    assert chosen.name == name
    assert inter_broker_listener(NodeSettings(settings), ()) is None
