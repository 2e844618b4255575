"""`kraft-wire tokens` against our node and Apache's: a token's life, and a login with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apache.secured_node import ACCOUNTS, SecuredApache, SecuredNode, sasl_settings
from tests.apache.token_story import DAY_MS, TOKEN_SETTINGS
from tests.cluster_command import kraft_wire
from tests.process import write_properties
from tests.waiting import until

LOGIN = "org.apache.kafka.common.security"
Node = SecuredApache | SecuredNode


@pytest.fixture(scope="module", params=["ours", pytest.param("apache", marks=pytest.mark.java)])
def node(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    directory = tmp_path_factory.mktemp(request.param)
    settings = sasl_settings("SECURE") | TOKEN_SETTINGS
    if request.param == "apache":
        with SecuredApache(directory, "SASL_PLAINTEXT", settings) as apache:
            yield apache
        return
    ours = SecuredNode(directory, "SASL_PLAINTEXT", settings)
    ours.format()
    with ours:
        yield ours


def login(file: Path, user: str, password: str, extra: str = "") -> list[str]:
    """Return the options of a login by SCRAM."""
    entry = f'{LOGIN}.scram.ScramLoginModule required username="{user}" password="{password}"'
    write_properties(
        file,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f"{entry}{extra};",
        },
    )
    return ["--command-config", str(file)]


def test_token_is_created_listed_used_renewed_and_ended(node: Node, tmp_path: Path) -> None:
    """SEC-TOKEN-08, SEC-TOKEN-09, SEC-TOKEN-10."""
    ann = [*login(tmp_path / "ann", "ann", ACCOUNTS["ann"]), "-b", node.secure]

    def did(*words: str) -> Any:
        done = kraft_wire("tokens", *words, *ann, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    renewer = ["--renewer-principal", "User:bob"]
    made = did("create", *renewer, "--max-life-time-period", str(2 * DAY_MS))
    assert (made["owner"], made["requester"]) == ("User:ann", "User:ann")
    assert made["renewers"] == ["User:bob"]
    assert made["max_ms"] - made["issued_ms"] == 2 * DAY_MS
    until(lambda: did("list") == [made], lambda: did("list"))
    assert did("list", "--owner-principal", "User:bob") == [made]
    assert did("list", "--owner-principal", "User:eve") == []

    extra = ' tokenauth="true"'
    by_token = login(tmp_path / "token", made["token_id"], made["hmac"], extra)
    seen = kraft_wire("topics", "list", "-b", node.secure, *by_token)
    assert seen.returncode == 0, seen.stderr
    refused = kraft_wire("tokens", "create", "-b", node.secure, *by_token)
    assert refused.returncode == 1
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in refused.stderr

    ends_ms = did("renew", "--hmac", made["hmac"], "--renew-time-period", "1000")["expires_ms"]
    assert ends_ms < made["expires_ms"]
    later_ms = did("expire", "--hmac", made["hmac"], "--expiry-time-period", str(DAY_MS))
    assert later_ms["expires_ms"] > ends_ms
    did("expire", "--hmac", made["hmac"])
    until(lambda: did("list") == [], lambda: did("list"))
    gone = kraft_wire("tokens", "renew", "--hmac", made["hmac"], *ann)
    assert gone.returncode == 1
    assert "DELEGATION_TOKEN_NOT_FOUND" in gone.stderr
    assert made["hmac"] not in gone.stderr


def test_text_shows_times_and_secret(node: Node, tmp_path: Path) -> None:
    bob = [*login(tmp_path / "bob", "bob", ACCOUNTS["bob"]), "-b", node.secure]
    shown = kraft_wire("tokens", "create", *bob)
    assert shown.returncode == 0, shown.stderr
    assert "User:bob" in shown.stdout
    assert "latest end" in shown.stdout


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("create", "--owner-principal", "ann"), "--owner-principal: 'ann' is not of the form"),
        (("create", "--renewer-principal", "User:"), "--renewer-principal: 'User:' is not"),
        (("renew", "--hmac", "not base64!"), "--hmac: the HMAC is not base64"),
    ],
)
def test_wrong_options_are_refused_before_a_connection(
    words: tuple[str, ...], problem: str
) -> None:
    done = kraft_wire("tokens", *words, "-b", "127.0.0.1:1")
    assert done.returncode == 2
    assert problem in done.stderr
