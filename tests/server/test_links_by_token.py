"""Nodes that log in to each other by tokens of an identity provider, over real sockets (KIP-768).

The provider is a server of this test; its tokens live for a few seconds, so that sessions and
tokens are renewed while the test looks on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.cluster_command import kraft_wire
from tests.node.security.tokens import key_set, token
from tests.ports import free_port
from tests.server.linked_nodes import CLUSTER_ID, Member
from tests.server.test_renewed_links import CLOSED, LOGGED_IN, RENEWED, counts, create_replicated
from tests.waiting import until

ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
LIFE_SECONDS = 6
SECRET = "a-secret-of-nodes"
PLACES = ((0, "CONTROLLER"), (0, "INSIDE"), (1, "INSIDE"))


@dataclass(slots=True)
class Provider:
    """An identity provider: gives tokens to those who send its address a request."""

    directory: Path
    address: str = ""
    is_down: bool = False
    given: list[str] = field(default_factory=list)

    @property
    def keys(self) -> Path:
        """Its key set."""
        return self.directory / "keys.json"

    def answer(self) -> tuple[int, bytes]:
        """Return a status and a token."""
        if self.is_down:
            return 503, b""
        now = int(time.time())
        self.given.append(token({"sub": "node", "iat": now, "exp": now + LIFE_SECONDS}))
        return 200, json.dumps({"access_token": self.given[-1]}).encode()


@contextmanager
def providing(directory: Path) -> Iterator[Provider]:
    provider = Provider(directory)
    provider.keys.write_bytes(key_set())

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, data = provider.answer()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        provider.address = f"http://127.0.0.1:{server.server_address[1]}/token"
        yield provider
        server.shutdown()


def bearer_settings(provider: Provider, *listeners: str) -> dict[str, str]:
    """Return the keys of listeners that take tokens, and of nodes that show their own."""
    settings = {
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys.as_uri(),
        ALLOWED: f"{provider.keys.as_uri()},{provider.address}",
        "sasl.oauthbearer.token.endpoint.url": provider.address,
        "sasl.login.retry.backoff.max.ms": "500",
        # Well before a session ends, which is at 85 % of its token's life.
        "sasl.login.refresh.window.factor": "0.5",
    }
    for name in listeners:
        own = f"listener.name.{name.lower()}"
        settings |= {
            f"{own}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{own}.oauthbearer.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required "
            f'clientId="node" clientSecret="{SECRET}";',
            f"{own}.oauthbearer.sasl.login.callback.handler.class": f"{OAUTH}."
            "OAuthBearerLoginCallbackHandler",
            f"{own}.oauthbearer.sasl.server.callback.handler.class": f"{OAUTH}."
            "OAuthBearerValidatorCallbackHandler",
        }
    return settings


def two_brokers(directory: Path, provider: Provider) -> tuple[Member, Member]:
    """Format a broker that is the controller too, and a broker."""
    ports = {node: [free_port() for _ in range(2)] for node in (1, 2)}
    controller = f"127.0.0.1:{free_port()}"
    members = []
    for node, (plain, inside) in ports.items():
        listeners = f"PLAINTEXT://127.0.0.1:{plain},INSIDE://127.0.0.1:{inside}"
        is_controller = node == 1
        properties = {
            "process.roles": "broker,controller" if is_controller else "broker",
            "listeners": f"{listeners},CONTROLLER://{controller}" if is_controller else listeners,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT,"
            "PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            **bearer_settings(provider, "CONTROLLER", "INSIDE"),
            "replica.lag.time.max.ms": "600000",
            "metrics.port": "-1",
        }
        members.append(Member(directory, node, properties))
    for member in members:
        done = kraft_wire("format", "-t", CLUSTER_ID, "-c", str(member.file))
        assert done.returncode == 0, done.stderr
    return members[0], members[1]


def test_links_outlive_their_tokens_and_an_outage_of_the_provider(tmp_path: Path) -> None:
    """KIP-768: raft, forwarded requests and fetches of replicas, by tokens of six seconds."""
    with providing(tmp_path) as provider:
        nodes = two_brokers(tmp_path, provider)

        def renewed(times: int, places: tuple[tuple[int, str], ...] = PLACES) -> bool:
            return all(counts(nodes[at])[RENEWED, name] >= times for at, name in places)

        with nodes[0], nodes[1]:
            create_replicated(nodes[0])
            until(lambda: renewed(2))
            before = [counts(node) for node in nodes]
            until(lambda: renewed(4))
            after = [counts(node) for node in nodes]
            for at, name in PLACES:
                assert after[at][LOGGED_IN, name] == before[at][LOGGED_IN, name] > 0
                assert after[at][CLOSED, name] == 0
            assert all("peer_login_failed" not in node.text for node in nodes)

            provider.is_down = True
            until(lambda: all("link_token_failed" in node.text for node in nodes))
            provider.is_down = False
            # The second node no longer leads a partition, so no node fetches from it.
            most = max(counts(nodes[0])[RENEWED, name] for _, name in PLACES[:2])
            until(lambda: renewed(round(most) + 2, PLACES[:2]))
            texts = [node.text for node in nodes]
    for text in texts:
        assert text.count("link_token_failed") == text.count("status 503") <= 4
        assert SECRET not in text
        assert not any(each.split(".")[1] in text for each in provider.given)


def test_a_node_without_a_token_does_not_start(tmp_path: Path) -> None:
    with providing(tmp_path) as provider:
        provider.is_down = True
        node, _ = two_brokers(tmp_path, provider)
        node.begin()
        assert node.wait() == 2
        assert (
            "kraft-wire server: there is no token for links to listener INSIDE: "
            "the token endpoint answers with status 503\n"
        ) in node.text
        assert SECRET not in node.text


@pytest.mark.parametrize("name", ["sasl.login.callback.handler.class", "sasl.jaas.config"])
def test_a_class_or_module_of_somebody_else_is_named(tmp_path: Path, name: str) -> None:
    with providing(tmp_path) as provider:
        node, _ = two_brokers(tmp_path, provider)
        key = f"listener.name.inside.oauthbearer.{name}"
        text = node.file.read_text()
        node.file.write_text(f"{text}\n{key}=org.example.Other required;\n")
        node.begin()
        assert node.wait() == 2
    assert len(node.text.splitlines()) == 1
    assert name in node.text
