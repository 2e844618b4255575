"""Real clients against secured nodes: what they see of Apache Kafka's, and what they see of ours.

Both nodes have the same settings. A client produces and reads back, or fails; a failure has to be
of the same class on both.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from tests.apache.secured_node import (
    ACCOUNTS,
    MECHANISMS,
    SecuredApache,
    SecuredNode,
    sasl_settings,
)
from tests.apache.tools import run_tool
from tests.certificates import Authority
from tests.process import write_properties

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow]
PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
PATIENCE_S = 20
QUIET = logging.getLogger("tests.quiet")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False

Nodes = tuple[SecuredApache, SecuredNode]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def started(directory: Path, protocol: str, authority: Authority, **store: Any) -> Iterator[Nodes]:
    """Start both with one listener of the protocol."""
    settings = sasl_settings("SECURE") if protocol.startswith("SASL") else {}
    if protocol.endswith("SSL"):
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(authority.signed(**{"name": "server", **store}).store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.trusted),
            "ssl.client.auth": "required",
            "listener.name.secure.ssl.client.auth": "requested",
        }
    ours = SecuredNode(directory / "ours", protocol, settings)
    ours.format()
    with SecuredApache(directory / "apache", protocol, settings) as apache, ours:
        yield apache, ours


@pytest.fixture(scope="module", params=PROTOCOLS)
def secured(
    request: pytest.FixtureRequest, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Nodes]]:
    protocol: str = request.param
    for nodes in started(tmp_path_factory.mktemp(protocol.lower()), protocol, authority):
        yield protocol, nodes


def logins(protocol: str) -> tuple[str, ...]:
    return MECHANISMS if protocol.startswith("SASL") else ("",)


# -- confluent-kafka -------------------------------------------------------------------------------


def confluent(
    address: str, protocol: str, mechanism: str, authority: Authority, **changed: str
) -> str:
    """Produce one record and read it back; return "read", or the name of the first error."""
    errors: list[KafkaError] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "security.protocol": protocol,
        "ssl.ca.location": str(authority.trusted),
        "error_cb": errors.append,
        "logger": QUIET,
        **({"sasl.mechanism": mechanism} if mechanism else {}),
        **({"sasl.username": "ann", "sasl.password": ACCOUNTS["ann"]} if mechanism else {}),
        **{key.replace("_", "."): value for key, value in changed.items()},
    }
    topic = f"confluent-{time.monotonic_ns()}"
    producer = Producer(settings)
    producer.produce(topic, b"value")
    deadline = time.monotonic() + PATIENCE_S
    while producer.flush(0.2) and not errors and time.monotonic() < deadline:
        pass
    if errors:
        return _class_of(errors[0])
    reading = {**settings, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(reading)
    try:
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE_S)
        return "read" if message is not None and message.value() == b"value" else f"{message}"
    finally:
        consumer.close()


def _class_of(error: KafkaError) -> str:
    """Return the name of an error; librdkafka has two for a certificate that it refuses itself."""
    verified = "certificate verify failed"
    return verified if verified in str(error) else str(error.name())


def test_librdkafka_works_with_every_mechanism(
    secured: tuple[str, Nodes], authority: Authority
) -> None:
    """SEC-SASL-08, SEC-SCRAM-01: produce, group, fetch."""
    protocol, nodes = secured
    for node in nodes:
        for mechanism in logins(protocol):
            assert confluent(node.secure, protocol, mechanism, authority) == "read", mechanism


FAULTS: dict[str, tuple[str, Callable[[Authority], dict[str, str]]]] = {
    "wrong password": ("SASL", lambda _: {"sasl_password": "wrong"}),
    "unknown user": ("SASL", lambda _: {"sasl_username": "unknown"}),
    "another authority": ("SSL", lambda a: {"ssl_ca_location": str(a.signed("x").chain)}),
    "expired certificate": (
        "SSL",
        lambda a: {
            "ssl_certificate_location": str(a.signed("late", is_expired=True).chain),
            "ssl_key_location": str(a.signed("late", is_expired=True).key),
        },
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_librdkafka_sees_the_same_failure(
    secured: tuple[str, Nodes], authority: Authority, fault: str
) -> None:
    """SEC-SASL-13, SEC-TLS-07: the class of the error that its users know."""
    protocol, nodes = secured
    needs, changes = FAULTS[fault]
    if needs not in protocol.split("_"):
        pytest.skip(f"{protocol} has no {fault}")
    for mechanism in logins(protocol):
        changed = changes(authority)
        seen = [confluent(each.secure, protocol, mechanism, authority, **changed) for each in nodes]
        assert seen[0] != "read", fault
        assert seen[1] == seen[0], (fault, mechanism)


@pytest.mark.parametrize(
    ("other", "changed"),
    [("PLAINTEXT", {}), ("SSL", {}), ("SASL_PLAINTEXT", {}), ("SASL_SSL", {})],
)
def test_librdkafka_with_another_protocol_gets_nowhere(
    secured: tuple[str, Nodes], authority: Authority, other: str, changed: dict[str, str]
) -> None:
    """SEC-TLS-01, SEC-SASL-01: plain to TLS, TLS to plain, no login where one is due."""
    protocol, nodes = secured
    if other == protocol:
        pytest.skip("the right one")
    mechanism = "PLAIN" if other.startswith("SASL") else ""
    for node in nodes:
        assert confluent(node.secure, other, mechanism, authority, **changed) != "read"


def test_a_mechanism_that_is_not_enabled_is_the_same_failure(
    secured: tuple[str, Nodes], authority: Authority
) -> None:
    """SEC-SASL-07: OAUTHBEARER is on neither."""
    protocol, nodes = secured
    if not protocol.startswith("SASL"):
        pytest.skip("no mechanisms")
    unsecured = {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=x",
    }
    changed = {key.replace(".", "_"): value for key, value in unsecured.items()}
    seen = [confluent(each.secure, protocol, "OAUTHBEARER", authority, **changed) for each in nodes]
    assert seen[0] == seen[1] != "read"


# -- the pure Python clients -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")
def test_kafka_python_and_aiokafka_work_with_every_mechanism(
    secured: tuple[str, Nodes], authority: Authority
) -> None:
    """SEC-SASL-10: other versions of the login's requests."""
    from kafka import KafkaAdminClient  # what it imports warns

    protocol, nodes = secured
    for node in nodes:
        for mechanism in logins(protocol):
            own: dict[str, Any] = {"security_protocol": protocol}
            if mechanism:
                own |= {"sasl_mechanism": mechanism, "sasl_plain_username": "ann"}
                own["sasl_plain_password"] = ACCOUNTS["ann"]
            trust = {"ssl_cafile": str(authority.trusted)} if protocol.endswith("SSL") else {}
            admin = KafkaAdminClient(bootstrap_servers=node.secure, **own, **trust)
            assert isinstance(admin.list_topics(), list)
            admin.close()
            assert asyncio.run(_aiokafka(node.secure, own, authority)) == b"value"


async def _aiokafka(address: str, own: dict[str, Any], authority: Authority) -> bytes:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.helpers import create_ssl_context

    if own["security_protocol"].endswith("SSL"):
        own = {**own, "ssl_context": create_ssl_context(cafile=str(authority.trusted))}
    topic = f"aiokafka-{time.monotonic_ns()}"
    async with AIOKafkaProducer(bootstrap_servers=address, **own) as producer:
        await producer.send_and_wait(topic, b"value")
    options = {"auto_offset_reset": "earliest", **own}
    async with AIOKafkaConsumer(topic, bootstrap_servers=address, **options) as consumer:
        return bytes((await consumer.getone()).value)


# -- Apache's tools --------------------------------------------------------------------------------


def tool_settings(
    file: Path, protocol: str, mechanism: str, authority: Authority, password: str
) -> str:
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    entry = f'org.apache.kafka.common.security.{module}LoginModule required username="ann"'
    settings = {"security.protocol": protocol}
    if mechanism:
        settings |= {"sasl.mechanism": mechanism}
        settings |= {"sasl.jaas.config": f'{entry} password="{password}";'}
    if protocol.endswith("SSL"):
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.trusted)}
        settings |= trust
    write_properties(file, settings)
    return str(file)


def test_apaches_tools_work_and_fail_alike(
    secured: tuple[str, Nodes], authority: Authority, tmp_path: Path
) -> None:
    """SEC-SASL-13, SEC-SCRAM-11: console producer and consumer, and a wrong password."""
    protocol, nodes = secured
    mechanism = logins(protocol)[-1]
    refusals = []
    for node in nodes:
        file = tool_settings(tmp_path / "t", protocol, mechanism, authority, ACCOUNTS["ann"])
        place = ["--bootstrap-server", node.secure, "--topic", "tools", "--command-config", file]
        done = run_tool("kafka-console-producer", place, stdin="one\ntwo\n")
        assert done.exit_code == 0, done.text
        reading = [*place, "--from-beginning", "--max-messages", "2"]
        done = run_tool("kafka-console-consumer", reading)
        assert "one\ntwo\n" in done.text
        if mechanism:
            file = tool_settings(tmp_path / "f", protocol, mechanism, authority, "wrong")
            listing = ["--bootstrap-server", node.secure, "--list", "--command-config", file]
            done = run_tool("kafka-topics", listing)
            refusals.append(("SaslAuthenticationException" in done.text, done.exit_code))
    assert len(set(refusals)) <= 1, refusals
    assert not refusals or refusals[0] == (True, 1)


def test_a_wrong_host_name_is_the_same_failure(authority: Authority, tmp_path: Path) -> None:
    """SEC-TLS-17: clients check names; the certificate is for another host."""
    for nodes in started(tmp_path, "SSL", authority, name="far", hosts="DNS:far.example"):
        seen = [confluent(each.secure, "SSL", "", authority) for each in nodes]
        assert seen == ["certificate verify failed"] * 2
