"""`--command-config`: every command that dials reaches a secured node by Kafka's client settings.

That they are Kafka's shows `tests/conformance/test_command_config.py`, against Apache's node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache.secured_node import ACCOUNTS, SecuredNode, client_settings, sasl_settings
from tests.certificates import Authority
from tests.cluster_command import kraft_wire
from tests.keystores.java_stores import PASSWORD as STORE_PASSWORD
from tests.keystores.java_stores import pkcs12_of
from tests.process import write_properties


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def node(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    settings = {
        **sasl_settings("SECURE"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ann;User:broker;User:ANONYMOUS",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.signed("server").store),
    }
    node = SecuredNode(tmp_path_factory.mktemp("node"), "SASL_SSL", settings)
    node.format()
    with node:
        for words in (["topics", "create", "seen"], ["produce", "seen", "--value", "hello"]):
            done = kraft_wire(*words, "-b", node.bootstrap)
            assert done.returncode == 0, done.stderr
        yield node


def client_file(
    directory: Path, authority: Authority, mechanism: str = "SCRAM-SHA-512", **changed: str
) -> str:
    """Write a client's settings and return the file's name."""
    password = changed.pop("password", ACCOUNTS["ann"])
    file = directory / "client.properties"
    settings = client_settings(authority, mechanism, password)
    changes = {key.replace("_", "."): value for key, value in changed.items()}
    write_properties(file, settings | changes)
    return str(file)


@pytest.mark.parametrize(
    "words",
    [
        ["topics", "create", "made", "-b"],
        ["topics", "list", "-b"],
        ["topics", "describe", "seen", "-b"],
        ["produce", "seen", "--value", "hello", "-b"],
        ["consume", "seen", "--from-beginning", "--max-messages", "1", "-b"],
        ["groups", "list", "-b"],
        ["configs", "describe", "--topic", "seen", "-b"],
        ["quorum", "describe", "-b"],
        ["acls", "list", "-b"],
        ["users", "list", "-b"],
        ["quotas", "describe", "-b"],
        ["transactions", "list", "-b"],
        ["cluster", "health", "-b"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_verb_logs_in(
    node: SecuredNode, authority: Authority, tmp_path: Path, words: list[str]
) -> None:
    """SEC-SCRAM-11, SEC-TLS-17: TLS, then SCRAM, on each of a command's connections."""
    file = client_file(tmp_path, authority)
    done = kraft_wire(*words, node.secure, "--command-config", file)
    assert done.returncode == 0, done.stderr


def test_plain_logs_in_too(node: SecuredNode, authority: Authority, tmp_path: Path) -> None:
    """SEC-PLAIN-01: by the other mechanism."""
    file = client_file(tmp_path, authority, "PLAIN")
    done = kraft_wire("groups", "list", "-b", node.secure, "--command-config", file)
    assert done.returncode == 0, done.stderr


def test_the_stores_of_javas_clients_are_read(
    node: SecuredNode, authority: Authority, tmp_path: Path
) -> None:
    """SEC-TLS-10: a PKCS12 key store, whose certificate is trusted by a store of the same form."""
    own = pkcs12_of(tmp_path, authority.signed("client"))
    pem = {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(authority.trusted)}
    file = client_file(
        tmp_path,
        authority,
        **pem,
        ssl_keystore_location=str(own),
        ssl_keystore_password=STORE_PASSWORD,
    )
    done = kraft_wire("groups", "list", "-b", node.secure, "--command-config", file)
    assert done.returncode == 0, done.stderr
    file = client_file(
        tmp_path, authority, **pem, ssl_keystore_location=str(own), ssl_keystore_password="hunter2"
    )
    done = kraft_wire("groups", "list", "-b", node.secure, "--command-config", file)
    assert done.returncode != 0
    assert f"{own}: the password of the store is wrong" in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"password": "hunter2"}, "Authentication failed during authentication due to invalid"),
        ({"ssl_truststore_location": ""}, "no TLS with 127.0.0.1:"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "does not answer like a Kafka broker"),
        ({"security_protocol": "SSL"}, "closed the connection"),
        ({"sasl_mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI is not supported"),
        ({"ssl_keystore_type": "BCFKS"}, "ssl.keystore.type=BCFKS: use JKS, PKCS12 or PEM"),
        ({"ssl_truststore_type": "JKS"}, "neither a JKS nor a PKCS12 store"),
    ],
)
def test_a_refusal_is_one_line_without_the_password(
    node: SecuredNode, authority: Authority, tmp_path: Path, changed: dict[str, str], words: str
) -> None:
    """SEC-TLS-13: what is wrong, in the peer's words or ours."""
    file = client_file(tmp_path, authority, **changed)
    done = kraft_wire("groups", "list", "-b", node.secure, "--command-config", file)
    assert done.returncode != 0
    assert words in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
