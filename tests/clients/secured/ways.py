"""The ways in which a client connects, and the ways in which it has to fail.

Each is a listener and what the harness is told (`Security`). A client that lacks a mechanism has a
reason in `UNSUPPORTED`; nothing else is left out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from joserfc.jwk import RSAKey

from tests.apache.secured_node import ACCOUNTS, MECHANISMS, client_settings
from tests.clients.python.security import Security
from tests.clients.secured.nodes import Node
from tests.cluster_command import kraft_wire
from tests.node.security.tokens import RSA, token
from tests.process import write_properties

__all__ = ["UNSUPPORTED", "Way", "Ways", "reason_against"]

TOKEN = "delegation token"
_NO_TOKENS = "has no way to mark a login as one by a delegation token"
UNSUPPORTED: dict[tuple[str, str], str] = {
    ("kcat", "OAUTHBEARER"): "its librdkafka is built without a source of signed tokens",
    **{
        ("kcat", name): "its librdkafka 2.0.2 repeats the nonce wrongly (CVE-2024-56128)"
        for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    },
    ("kafka-go", "OAUTHBEARER"): "has no such mechanism",
    **{
        (name, TOKEN): _NO_TOKENS
        for name in (
            *("kcat", "confluent-kafka", "kafka-python", "aiokafka"),
            *("sarama", "kafka-go", "platformatic"),
        )
    },
}
"""What a client cannot do, by its name and the login."""


class Way(NamedTuple):
    """How a client connects: where to, and as whom."""

    name: str
    listener: str
    login: str
    """The mechanism, `TOKEN`, or an empty text."""
    security: Security
    is_good: bool = True
    """Whether a client works on it."""


def reason_against(client: str, way: Way) -> str | None:
    """Return why a client cannot go this way, None if it can."""
    return UNSUPPORTED.get((client, way.login))


class Ways:
    """All ways to one node, and the files that they need."""

    def __init__(self, node: Node, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._node, self._directory = node, directory
        self._authority = node.listeners.authority
        now = round(time.time())
        claims = {"sub": "ann", "iat": now, "exp": now + 7_200}
        self._token = token(claims)
        self._stranger = token(claims, RSAKey.generate_key(2048, {"kid": "rsa"}), kid="rsa")
        assert RSA.kid == "rsa", "the stranger's token names the node's key"

    def address(self, way: Way) -> str:
        """``host:port`` of the listener that a way leads to."""
        if way.listener == "SECURE":
            return self._node.secure
        return self._node.listeners.address(way.listener)

    def environment(self, way: Way) -> dict[str, str]:
        """Return what tells a harness of a way."""
        file = self._directory / f"{way.name.replace(' ', '-')}.json"
        file.write_text(json.dumps(way.security._asdict()))
        return {"SECURITY": str(file)}

    def good(self) -> Iterator[Way]:
        """Yield every way on which a client works."""
        yield Way("SSL", "SSL", "", self._encrypted())
        yield Way("mutual SSL", "MUTUAL", "", self._encrypted(**self._own("ann")))
        delegated = self._delegated()
        for listener, protocol in (("LOGIN", "SASL_PLAINTEXT"), ("SECURE", "SASL_SSL")):
            logins = {name: self._login(protocol, name) for name in (*MECHANISMS, "OAUTHBEARER")}
            for login, security in {**logins, TOKEN: delegated}.items():
                chosen = security._replace(protocol=protocol)
                yield Way(f"{protocol} {login}", listener, login, chosen)

    def bad(self) -> Iterator[Way]:
        """Yield every way on which a client has to fail, with the name of the fault."""
        for way in self._faults():
            yield way._replace(is_good=False)

    def _faults(self) -> Iterator[Way]:
        for login in MECHANISMS:
            right = self._login("SASL_SSL", login)
            wrong = right._replace(password="wrong")
            yield Way(f"wrong password, {login}", "SECURE", login, wrong)
            unknown = right._replace(username="unknown")
            yield Way(f"unknown user, {login}", "SECURE", login, unknown)
        stranger = self._login("SASL_SSL", "OAUTHBEARER", self._stranger)
        yield Way("token of a stranger", "SECURE", "OAUTHBEARER", stranger)
        delegated = self._delegated()._replace(password="d3Jvbmc=")
        yield Way("wrong HMAC", "SECURE", TOKEN, delegated)
        narrow = self._login("SASL_PLAINTEXT", "SCRAM-SHA-256")
        yield Way("unknown mechanism", "NARROW", "SCRAM-SHA-256", narrow)
        yield Way("expired certificate of the node", "LATE", "", self._encrypted())
        yield Way("certificate for another host", "FAR", "", self._encrypted())
        other = str(self._authority.signed("other").chain)
        yield Way("another authority", "SSL", "", self._encrypted(authority=other))
        yield Way("no certificate of the client", "MUTUAL", "", self._encrypted())
        late = self._own("late", is_expired=True)
        yield Way("expired certificate of the client", "MUTUAL", "", self._encrypted(**late))

    def _encrypted(self, **changed: str) -> Security:
        return Security("SSL", **{"authority": str(self._authority.trusted), **changed})

    def _own(self, name: str, *, is_expired: bool = False) -> dict[str, str]:
        made = self._authority.signed(name, is_expired=is_expired)
        return {"certificate": str(made.chain), "key": str(made.key), "store": str(made.store)}

    def _login(self, protocol: str, mechanism: str, shown: str | None = None) -> Security:
        security = Security(protocol, mechanism, authority=str(self._authority.trusted))
        if mechanism != "OAUTHBEARER":
            return security._replace(username="ann", password=ACCOUNTS["ann"])
        file = self._directory / f"token-{'of-ann' if shown is None else 'of-a-stranger'}"
        file.write_text(shown or self._token)
        return security._replace(token=file.read_text(), token_file=str(file))

    def _delegated(self) -> Security:
        """Return a login by a delegation token of ann, which is made now."""
        file = self._directory / "ann.properties"
        write_properties(file, client_settings(self._authority))
        done = kraft_wire(
            *("tokens", "create", "-b", self._node.secure, "--command-config", str(file), "--json")
        )
        assert done.returncode == 0, done.stderr
        made = json.loads(done.stdout)
        security = self._login("SASL_SSL", "SCRAM-SHA-256")
        named = security._replace(username=made["token_id"], password=made["hmac"])
        return named._replace(by_delegation_token=True)
