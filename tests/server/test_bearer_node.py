"""A node with signed tokens, from its start to its log: keys that change, and no secrets."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tests.apache.secured_node import SecuredNode
from tests.cluster_command import kraft_wire
from tests.node.security.tokens import EC, RSA, key_set, public, token
from tests.process import write_properties
from tests.waiting import until

OAUTH = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{OAUTH}.OAuthBearerLoginModule required"
SECRET = "a-secret-claim"


def bearer_node(directory: Path, keys: Path) -> SecuredNode:
    """Return a node whose listener SECURE takes tokens that a key of the file has signed."""
    own = "listener.name.secure."
    settings = {
        f"{own}sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{own}oauthbearer.sasl.jaas.config": f"{MODULE};",
        f"{own}oauthbearer.sasl.server.callback.handler.class": f"{OAUTH}."
        "OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "org.apache.kafka.sasl.oauthbearer.allowed.urls": keys.as_uri(),
    }
    node = SecuredNode(directory, "SASL_PLAINTEXT", settings)
    node.environment = {**os.environ, "KAFKA_LOG4J_ROOT_LOGLEVEL": "DEBUG"}
    return node


class Asker:
    """Lists the topics of a node by tokens; keeps what was shown and what was printed."""

    def __init__(self, node: SecuredNode, directory: Path) -> None:
        self._node, self._directory = node, directory
        self.shown: list[str] = []
        self.printed: list[str] = []

    def is_served(self, shown: str) -> bool:
        self.shown.append(shown)
        place, file = self._directory / "token", self._directory / "client.properties"
        place.write_text(shown)
        client = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{MODULE};",
            "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": place.as_uri(),
        }
        write_properties(file, client)
        words = ["configs", "describe", "--broker", "1", "--all", "-b", self._node.secure]
        done = kraft_wire(*words, "--command-config", str(file))
        self.printed.append(done.stdout + done.stderr)
        return done.returncode == 0


def test_keys_change_and_nothing_that_is_written_has_a_token(tmp_path: Path) -> None:
    """SEC-OAUTH-07, SEC-OAUTH-10, SEC-OAUTH-12, SEC-OAUTH-15: at the level DEBUG."""
    keys = tmp_path / "keys.json"
    keys.write_bytes(key_set(public(RSA)))
    node = bearer_node(tmp_path / "node", keys)
    node.format()
    now = round(time.time())
    claims: dict[str, Any] = {"sub": "ann", "iat": now, "exp": now + 7200, "x": SECRET}
    with node:
        asker = Asker(node, tmp_path)
        by_rsa, by_ec = token(claims), token(claims, EC, "ES256", "ec")
        assert asker.is_served(by_rsa)
        assert not asker.is_served(by_ec)
        assert not asker.is_served(token({**claims, "iat": now - 200, "exp": now - 100}))
        assert not asker.is_served(token({**claims, "sub": [SECRET]}))
        assert not asker.is_served(token({**claims, "exp": SECRET}))
        keys.write_bytes(key_set(public(EC)))
        until(lambda: node.log.read_text().count("key_set_fetched") == 2)
        assert asker.is_served(by_ec)
        assert not asker.is_served(by_rsa)
        keys.unlink()
        until(lambda: "key_set_failed" in node.log.read_text())
        assert asker.is_served(by_ec), "the present keys stay"
    log = node.log.read_text()
    assert "token_checks_are_weak" in log
    assert "the token has expired" in log
    assert "the key set has no key for the token" in log
    texts = {
        str(path): path.read_bytes() for path in (tmp_path / "node").rglob("*") if path.is_file()
    }
    texts |= {f"output {number}": text.encode() for number, text in enumerate(asker.printed)}
    assert len(texts) > 10
    for secret in (SECRET, *(part for each in asker.shown for part in each.split(".")[1:])):
        found = [place for place, text in texts.items() if secret.encode() in text]
        assert found == [], secret


def test_a_node_does_not_start_without_its_keys(tmp_path: Path) -> None:
    """SEC-OAUTH-08: an unusable key set ends the start with one line."""
    keys = tmp_path / "keys.json"
    keys.write_bytes(b"{}")
    node = bearer_node(tmp_path / "node", keys)
    node.format()
    done = kraft_wire("server", str(node.properties_file))
    assert done.returncode == 2
    assert (
        "the key set of listener SECURE cannot be used: it is not a JSON web key set" in done.stderr
    )
