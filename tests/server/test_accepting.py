"""Listeners accept connections no faster than quotas allow; those between brokers go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apache.secured_node import SecuredNode
from tests.server.connecting import (
    attempt,
    is_alive,
    set_of_broker,
    story_of_a_listener,
    story_of_an_address,
    story_of_room,
)
from tests.server.wire_client import WireClient


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    node = SecuredNode(tmp_path_factory.mktemp("node"), "PLAINTEXT", {})
    node.format()
    with node:
        yield node


def lines(node: SecuredNode, reason: str) -> list[str]:
    return [line for line in node.log.read_text().splitlines() if f"reason={reason}" in line]


def test_address_above_its_rate_is_held_then_closed(node: SecuredNode) -> None:
    """SEC-QUOTA-17: at rate 1 ten connect at once; after its end the quota holds nobody."""
    seen = story_of_an_address(node.bootstrap, node.secure)
    assert seen.outcomes == ["served"] * 10 + ["closed"] * 4
    assert seen.seconds > 0.9
    assert len(lines(node, "connection_rate_exceeded")) == 4
    with attempt(node.secure).client as client:
        assert is_alive(client)


def test_listener_above_its_rate_accepts_later_and_refuses_nobody(node: SecuredNode) -> None:
    """SEC-QUOTA-18: the listener between brokers does not wait for it."""
    seen = story_of_a_listener(node.bootstrap, node.secure)
    assert seen.outcomes == ["served"] * 14
    assert seen.seconds > 2.5
    assert "listener=SECURE" in lines(node, "max.connection.creation.rate")[0]


def test_listener_between_brokers_costs_another_its_oldest_connection(node: SecuredNode) -> None:
    """SEC-QUOTA-18: a client's listener waits for room instead."""
    seen = story_of_room(node.bootstrap, node.secure)
    assert seen.outcomes == ["waits", "served", "1 closed", "served"]
    assert len(lines(node, "too_many_connections ")) == 1


def test_overrides_count_for_their_address_while_the_node_runs(node: SecuredNode) -> None:
    """SEC-QUOTA-19: one too many is closed at once, with a line in the log."""
    with WireClient(node.bootstrap) as admin:
        key = "max__connections__per__ip__overrides"
        set_of_broker(admin, "", **{key: "127.0.0.1:2,10.9.9.9:1"})
        with attempt(node.secure).client:
            refused = attempt(node.secure)
            refused.client.sock.close()
            assert refused.outcome == "closed"
        set_of_broker(admin, "", **{key: None})
        with attempt(node.secure).client as one, attempt(node.secure).client as two:
            assert is_alive(one)
            assert is_alive(two)
    assert len(lines(node, "too_many_connections_from_address")) == 1
