"""Stores exchanged while a listener listens: Apache Kafka's answers and certificates, and ours.

The same changes go to both nodes, one after the other. After each, both must have answered with the
same error and serve the same certificate.
"""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.apache.secured_node import SecuredApache, SecuredNode
from tests.certificates import Authority
from tests.keystores.java_stores import PASSWORD, pkcs12_of
from tests.tls.test_exchange import altered_at
from tests.tls.test_listeners import VERSIONS, ask, opened, trusting
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow]


class Both(NamedTuple):
    """Apache's node and ours, with one authority."""

    apache: SecuredApache
    ours: SecuredNode
    authority: Authority
    directory: Path


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("exchange")
    authority = Authority(directory / "ca")
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.signed("server").store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.trusted),
    }
    ours = SecuredNode(directory / "ours", "SSL", settings)
    ours.format()
    with SecuredApache(directory / "apache", "SSL", settings) as apache, ours:
        yield Both(apache, ours, authority, directory)


def served(node: SecuredApache | SecuredNode, authority: Authority) -> str:
    port = int(node.secure.rpartition(":")[2])
    with opened(port, trusting(authority)) as sock:
        assert isinstance(sock, ssl.SSLSocket)
        assert len(ask(sock, VERSIONS, 3)) > 100
        found = sock.getpeercert()
    assert found is not None
    return str(found["serialNumber"])


def changes(authority: Authority, directory: Path) -> list[dict[str, str | None]]:
    """Return settings of the listener's stores to try, in this order."""
    same = {name: authority.signed(name, subject="/CN=server") for name in ("two", "three", "four")}
    other = authority.signed("other")
    fewer = authority.signed("fewer", subject="/CN=server", hosts="IP:127.0.0.1")
    file = directory / "renamed.pem"
    shutil.copy(same["three"].store, file)
    store = str(pkcs12_of(directory, same["four"]))
    removed = dict.fromkeys(("keystore.type", "keystore.location", "keystore.password"))
    return [
        {"keystore.location": str(same["two"].store)},
        {"keystore.location": str(same["two"].store)},
        {"keystore.location": str(other.store)},
        {"keystore.location": str(fewer.store)},
        {"keystore.location": "/nowhere.pem"},
        {"keystore.location": str(file)},
        {"keystore.password": "a PEM store has none"},
        {"keystore.location": store},
        {"keystore.location": store, "keystore.type": "PKCS12"},
        {
            "keystore.location": store,
            "keystore.type": "PKCS12",
            "keystore.password": "wrong",
        },
        {"keystore.location": store, "keystore.type": "JKS", "keystore.password": PASSWORD},
        {"truststore.location": "/nowhere.pem"},
        {"truststore.location": str(authority.trusted)},
        removed,
    ]


def test_both_nodes_take_and_refuse_the_same_changes(both: Both) -> None:
    """SEC-TLS-20, SEC-TLS-21: error by error; Apache's node applies a change after its answer."""
    numbers: list[str] = []
    for values in changes(both.authority, both.directory):
        prefixed = {f"listener.name.secure.ssl.{key}": text for key, text in values.items()}
        codes = [
            altered_at(int(node.bootstrap.rpartition(":")[2]), "1", prefixed)[0]
            for node in (both.apache, both.ours)
        ]
        assert codes[0] == codes[1], values
        assert codes[0] in (0, 42), values
        numbers.append(served(both.ours, both.authority))
        until(lambda: served(both.apache, both.authority) == numbers[-1])
    assert len(set(numbers)) == 4


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("1", "ssl.keystore.location"),
        ("", "ssl.keystore.location"),
        ("", "listener.name.secure.ssl.keystore.type"),
    ],
)
def test_both_nodes_refuse_keys_without_a_listener_or_a_broker(
    both: Both, name: str, key: str
) -> None:
    """SEC-TLS-22: the same error and the same words."""
    answers = [
        altered_at(int(node.bootstrap.rpartition(":")[2]), name, {key: "PEM"})
        for node in (both.apache, both.ours)
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 42
