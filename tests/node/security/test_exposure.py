"""What a start warns of: listeners that others reach, and that protect too little."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.cli.server.command import _warn_of_exposures
from kraft_wire.node.config.node_config import load_config, settings_of_file
from kraft_wire.node.event_log import EventLog
from kraft_wire.node.events.catalogue import EVENTS

MODULES = "org.apache.kafka.common.security"
NODE = f"""
node.id=1
process.roles=broker
inter.broker.listener.name=INNER
controller.listener.names=CONTROLLER
controller.quorum.voters=2@h:2
log.dirs=/a
ssl.keystore.type=PEM
ssl.keystore.location=/store.pem
ssl.truststore.type=PEM
ssl.truststore.location=/trust.pem
listener.security.protocol.map=INNER:PLAINTEXT,A:{{protocol}},CONTROLLER:PLAINTEXT
listeners=INNER://127.0.0.1:1,A://{{host}}:2
advertised.listeners=INNER://127.0.0.1:1,A://h.example:2
listener.name.a.sasl.enabled.mechanisms={{mechanisms}}
listener.name.a.plain.sasl.jaas.config={MODULES}.plain.PlainLoginModule required;
listener.name.a.scram-sha-256.sasl.jaas.config={MODULES}.scram.ScramLoginModule required;
"""
OPEN, IN_PLAIN_TEXT = "listener_is_open", "passwords_in_plain_text"


def warned(protocol: str, host: str, mechanisms: str = "PLAIN", more: str = "") -> list[str]:
    text = NODE.format(protocol=protocol, host=host, mechanisms=mechanisms) + more
    config = load_config(settings_of_file(text, "server.properties"), {})
    events: list[str] = []

    def event(name: str, **fields: Any) -> None:
        assert fields == {"listener": "A", "host": host or "0.0.0.0"}
        assert EVENTS[name].level == "WARN"
        events.append(name)

    _warn_of_exposures(cast("EventLog", SimpleNamespace(event=event)), config)
    return events


@pytest.mark.parametrize(
    ("protocol", "mechanisms", "expected"),
    [
        ("PLAINTEXT", "PLAIN", [OPEN]),
        ("SSL", "PLAIN", [OPEN]),
        ("SASL_PLAINTEXT", "PLAIN", [IN_PLAIN_TEXT]),
        ("SASL_PLAINTEXT", "SCRAM-SHA-256", []),
        ("SASL_SSL", "PLAIN", []),
    ],
)
def test_what_others_reach_is_warned_of(
    protocol: str, mechanisms: str, expected: list[str]
) -> None:
    """A password by SCRAM is not sent, and TLS hides one by PLAIN."""
    for host in ("192.0.2.1", "", "0.0.0.0", "kafka.example", "127.example"):
        assert warned(protocol, host, mechanisms) == expected, host
    for host in ("127.0.0.1", "127.1.2.3", "localhost", "[::1]"):
        assert warned(protocol, host, mechanisms) == [], host


def test_clients_that_are_known_or_judged_are_none_of_everyone() -> None:
    required = "\nlistener.name.a.ssl.client.auth=required\n"
    assert warned("SSL", "192.0.2.1", more=required) == []
    requested = "\nlistener.name.a.ssl.client.auth=requested\n"
    assert warned("SSL", "192.0.2.1", more=requested) == [OPEN]
    judged = "\nauthorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
    assert warned("PLAINTEXT", "192.0.2.1", more=judged) == []
