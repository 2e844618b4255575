"""Nodes that dial each other by TLS and SASL, and peers that they do not talk to."""

from pathlib import Path

import pytest

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.apache.secured_node import ACCOUNTS
from tests.certificates import Authority
from tests.server.linked_nodes import members, shared
from tests.waiting import until

PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broker_registers_and_forwards_behind_a_login(
    tmp_path: Path, authority: Authority, protocol: str
) -> None:
    """SEC-ENV-02: a topic is created on the controller, asked for at the broker."""
    settings = shared(protocol, authority)
    controller, broker = members(tmp_path, settings, settings)
    with controller, broker:
        with BrokerConnection(broker.ready["listeners"]["PLAINTEXT"]) as connection:
            topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
            answer = connection.send(request, CreateTopicsResponse)
        assert [each.error_code for each in answer.topics] == [0], answer


def refused(tmp_path: Path, of_controller: dict[str, str], of_broker: dict[str, str]) -> str:
    """Start both, and return the line in which the broker says why it gets no further."""
    controller, broker = members(tmp_path, of_controller, of_broker)
    with controller:
        broker.begin()
        try:
            return until(lambda: _refusal(broker.log), lambda: broker.log.read_text())
        finally:
            broker.kill()


def _refusal(log: Path) -> str:
    lines = log.read_text().splitlines() if log.exists() else []
    return next((line for line in lines if "peer_login_failed" in line), "")


def test_a_wrong_password_is_named_and_the_broker_waits(
    tmp_path: Path, authority: Authority
) -> None:
    """SEC-ENV-02: the peer's words reach the log, the password does not."""
    good = shared("SASL_SSL", authority)
    key = "listener.name.controller.plain.sasl.jaas.config"
    bad = {**good, key: good[key].replace(ACCOUNTS["broker"], "another-secret", 1)}
    line = refused(tmp_path, good, bad)
    assert "Authentication failed: Invalid username or password" in line
    assert "another-secret" not in line


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"hosts": "DNS:other.example"}, "IP address mismatch"),
        ({"is_expired": True}, "certificate has expired"),
    ],
)
def test_a_node_of_another_name_or_time_is_not_talked_to(
    tmp_path: Path, authority: Authority, made: dict[str, object], words: str
) -> None:
    """SEC-TLS-17: the chain and the host name of the controller are checked by who dials."""
    wrong = shared("SSL", authority, f"controller{len(words)}", **made)
    line = refused(tmp_path, wrong, shared("SSL", authority))
    assert words in line


def test_host_names_are_not_checked_where_that_is_turned_off(
    tmp_path: Path, authority: Authority
) -> None:
    """SEC-TLS-17: ssl.endpoint.identification.algorithm is empty."""
    off = {"ssl.endpoint.identification.algorithm": ""}
    wrong = shared("SSL", authority, "anywhere", hosts="DNS:other.example") | off
    controller, broker = members(tmp_path, wrong, wrong)
    with controller, broker:
        assert broker.ready["node_id"] == 2
