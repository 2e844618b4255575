"""Metrics of quotas and logins: Kafka's names, values that follow from its formulas."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kraft_wire.metadata.image import TOPIC_RESOURCE
from kraft_wire.node.metrics.quota_metrics import METERS_SHOWN_MAX, quota_metrics
from kraft_wire.node.quotas.levels import PRODUCER, levels_of
from kraft_wire.node.quotas.rate_quota import RateQuota
from kraft_wire.node.quotas.windows import Windows
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.apache.secured_node import ACCOUNTS, SecuredNode, sasl_settings
from tests.node.quotas.test_replication_quota import alter
from tests.node.quotas.throttled_node import TOPIC, ThrottledDoor
from tests.server.wire_client import WireClient
from tests.waiting import HANG_S

FAILURE = "reason=authentication_failed"


def values_of(door: ThrottledDoor) -> dict[str, dict[object, float]]:
    """The values by the name of the metric."""
    return {each.name: dict(each.values) for each in quota_metrics(door.node, door.now_ms)}


def test_node_without_quotas_and_logins_exports_none_of_them() -> None:
    assert values_of(ThrottledDoor()) == {}


def test_rates_are_those_of_the_meters_and_throttled_connections_are_counted() -> None:
    """SEC-QUOTA-06: a young rate is measured over ten windows."""
    door = ThrottledDoor()
    door.set_quota("producer_byte_rate", 1_000, user="ANONYMOUS", client="")
    _, size_bytes = door.produce(20_000)
    values = values_of(door)
    assert values["kafka_server_produce_byte_rate"] == {("ANONYMOUS", ""): size_bytes / 10}
    assert values["kraft_wire_throttled_connections"] == {"": 1}
    assert values["kafka_server_fetch_byte_rate"] == {}
    assert values["kafka_server_request_request_time"] == {}
    door.set_quota("controller_mutation_rate", 2, user="ANONYMOUS", client="")
    door.create_topic("more")
    values = values_of(door)
    assert values["kafka_server_controllermutation_tokens"] == {("ANONYMOUS", ""): 2 * 11 - 1}


def test_bytes_of_throttled_replicas_are_a_rate_of_each_role() -> None:
    """SEC-QUOTA-20: while a topic lists replicas; over a window at least."""
    door = ThrottledDoor()
    for role in ("leader", "follower"):
        key = f"{role}__replication__throttled__replicas"
        alter(door, TOPIC_RESOURCE, TOPIC, **{key: "*"})
    broker = door.node.broker
    assert broker.leader_throttle is not None
    broker.leader_throttle.record(500, door.now_ms)
    values = values_of(door)
    assert values["kafka_server_leaderreplication_byte_rate"] == {"": 500.0}
    assert values["kafka_server_followerreplication_byte_rate"] == {"": 0.0}


def test_meters_used_last_are_exported_and_reading_them_is_no_use() -> None:
    """SEC-QUOTA-22: client ids are the clients' choice."""
    quota = RateQuota(Windows(11, 1_000))
    quota.follow(levels_of({(("client-id", None),): {PRODUCER: 5.0}})[PRODUCER])
    for number in range(METERS_SHOWN_MAX + 7):
        quota.note("u", f"c{number}", 10.0, 1_000)
    rates = quota.rates(METERS_SHOWN_MAX, 1_000)
    assert len(rates) == METERS_SHOWN_MAX
    assert ("", "c6") not in rates
    assert rates["", "c7"] == pytest.approx(1.0)
    assert quota.rates(METERS_SHOWN_MAX, 1_000) == rates


def login(node: SecuredNode, password: str) -> int:
    """Log in by PLAIN; return the error."""
    with WireClient(node.secure) as client:
        client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
        token = SaslAuthenticateRequest(auth_bytes=f"\0ann\0{password}".encode())
        return client.call(token, 1, SaslAuthenticateResponse).error_code


def test_logins_and_new_connections_are_counted_by_listener(tmp_path: Path) -> None:
    """SEC-SASL-21: also the failed ones; a listener without a login has no such counters."""
    settings = {"metrics.port": "-1", **sasl_settings("SECURE")}
    node = SecuredNode(tmp_path, "SASL_PLAINTEXT", settings)
    node.format()
    with node:
        assert [login(node, each) for each in (ACCOUNTS["ann"], "wrong", "worse")] == [0, 58, 58]
        found = re.search(r"address=(http://\S+)", node.log.read_text())
        assert found is not None
        with urllib.request.urlopen(found[1], timeout=HANG_S) as answer:
            text = answer.read().decode()
    failures = [each for each in node.log.read_text().splitlines() if FAILURE in each]
    assert len(failures) == 2
    assert all("client=127.0.0.1:" in each and "listener=SECURE" in each for each in failures)
    prefix = "kafka_server_socketservermetrics_"
    values = {
        (sample.name.removeprefix(prefix), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(prefix)
    }
    assert values["successful_authentication_total", "SECURE"] == 1
    assert values["failed_authentication_total", "SECURE"] == 2
    assert values["failed_reauthentication_total", "SECURE"] == 0
    assert ("successful_authentication_total", "PLAINTEXT") not in values
    assert values["connection_accept_rate", "SECURE"] > 0
