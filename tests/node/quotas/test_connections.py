"""Numbers and rates of connections are decided as by Apache Kafka's own ConnectionQuotas."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kraft_wire.node.limits import ServerLimits, server_limits
from kraft_wire.node.quotas.connection_quotas import ConnectionQuotas, Refusal
from kraft_wire.node.quotas.levels import has_clients, rates_of_addresses
from kraft_wire.settings.node_settings import NodeSettings
from tests.node.quotas.connection_stories import connection_story, ours
from tests.node.quotas.record_answers import RECORDED_CONNECTIONS, is_arrival, judged

ANSWERS: dict[str, list[str]] = json.loads(RECORDED_CONNECTIONS.read_text(encoding="utf-8"))


def compare(lines: list[str], answers: list[str]) -> None:
    """Fail with the first arrival that is answered in another way."""
    arrivals = [line for line in lines if is_arrival(line)]
    for line, expected, answer in zip(arrivals, answers, ours(lines), strict=True):
        assert answer == expected, line


@pytest.mark.parametrize("seed", ANSWERS)
def test_stories_have_the_answers_that_apaches_class_gave(seed: str) -> None:
    """SEC-QUOTA-17, SEC-QUOTA-18, SEC-QUOTA-19: delays, room, refusals, who must go."""
    compare(list(connection_story(int(seed))), ANSWERS[seed])


@pytest.mark.java
def test_new_stories_have_the_answers_of_apaches_class() -> None:
    """SEC-QUOTA-17, SEC-QUOTA-18, SEC-QUOTA-19: 300 stories, told to both now."""
    lines = [line for seed in range(1_000, 1_300) for line in connection_story(seed)]
    compare(lines, judged(lines, "Connections"))


def test_stories_delay_hold_refuse_and_end_connections() -> None:
    answers = [each for row in ANSWERS.values() for each in row]
    for part in (" full", " in ", " held ", " many ", "xx."):
        assert sum(part in each for each in answers) > 50, part
    assert sum(not each.startswith("0 ") for each in answers) > 200


def test_first_ten_of_an_address_at_rate_1_connect_at_once() -> None:
    """SEC-QUOTA-17: with Kafka's windows; the others are held for at most a window."""
    limits = ServerLimits(rate_of_address={"10.0.0.1": 1})
    quotas = ConnectionQuotas(limits)
    found = [quotas.admit("ONE", "10.0.0.1", 5_000) for _ in range(12)]
    assert found[:10] == [None] * 10
    assert found[10:] == [Refusal("connection_rate_exceeded", 1_000)] * 2
    assert quotas.admit("ONE", "10.0.0.2", 5_000) is None


def test_default_of_addresses_counts_where_an_address_has_none() -> None:
    """SEC-QUOTA-17: an IPv6 address counts in every spelling, a mapped IPv4 as IPv4."""
    quotas = {
        (("ip", None),): {"connection_creation_rate": 7.0},
        (("ip", "::1"),): {"connection_creation_rate": 8.0},
        (("ip", "::ffff:10.0.0.9"),): {"connection_creation_rate": 9.0},
        (("ip", "node.example"),): {"connection_creation_rate": 10.0},
        (("user", "ip"),): {"request_percentage": 9.0},
    }
    rates = rates_of_addresses(quotas)
    assert rates == {None: 7, "0:0:0:0:0:0:0:1": 8, "10.0.0.9": 9}
    assert has_clients(quotas)
    assert not has_clients({each: {} for each in quotas if each[0][0] == "ip"})
    held = ConnectionQuotas(ServerLimits(rate_of_address={"10.0.0.9": 1}))
    found = [held.admit("ONE", "::ffff:10.0.0.9", 0) for _ in range(11)]
    assert found.count(None) == 10


def test_own_limits_of_a_listener_come_from_its_prefix() -> None:
    """SEC-QUOTA-18, SEC-QUOTA-19: where it has none, those of all connections count."""
    settings = NodeSettings(
        {"max.connections": "9", "max.connections.per.ip.overrides": "10.0.0.1:3, [::1]:4,me:5"}
    )
    limits = server_limits(settings, 8, listener_entries={"ONE": {"max.connections": "100"}})
    assert limits.of_listener("ONE") == (8, 1_000)
    assert limits.of_listener("TWO") == (8, 1_000)
    assert limits.connections_of_address == {"10.0.0.1": 3, "0:0:0:0:0:0:0:1": 4}


def test_protected_listener_stops_where_descriptors_end() -> None:
    """SEC-QUOTA-18: unless a connection of another listener can go for it."""
    quotas = ConnectionQuotas(
        replace(server_limits(NodeSettings({"max.connections": "3"})), connections_possible=2),
        {"INTERNAL"},
    )
    assert quotas.admit("ONE", "a", 0) is None
    assert quotas.admit("INTERNAL", "a", 0) is None
    assert quotas.has_room("INTERNAL")
    quotas.released("ONE", "a")
    assert quotas.admit("INTERNAL", "a", 0) is None
    assert not quotas.has_room("INTERNAL")
    assert quotas.excess_count == 0


def test_addresses_and_listeners_without_connections_take_no_memory() -> None:
    """A client may come from as many addresses as it likes; none is remembered behind its last."""
    quotas = ConnectionQuotas(ServerLimits())
    before = keys_kept(quotas)
    hosts = [f"2001:db8::{number:x}" for number in range(1, 2_000)]
    for host in hosts:
        assert quotas.admit("ONE", host, 0) is None
    for host in hosts:
        quotas.released("ONE", host)
    assert keys_kept(quotas) == before


def keys_kept(quotas: ConnectionQuotas) -> int:
    """Return how many keys its tables have."""
    return sum(len(each) for each in vars(quotas).values() if isinstance(each, dict))
