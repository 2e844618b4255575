"""A node with logins and an authorizer under attack.

`ann` may do everything with topics and groups that begin with `ann`, except with `ann-denied`;
`bob` has a login alone. Who comes over plain text is a super user: that is the good client's way.
The keys that sign web tokens come from a server, which the attacker may have taken over.
"""

from __future__ import annotations

import json
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message
from tests.attack.secured.line import Line, host_and_port, outcome_of
from tests.attack.target import Target
from tests.clients.secured.nodes import ManyListeners, Node, started
from tests.key_server import KeyServer, serving
from tests.node.security.tokens import key_set

__all__ = ["KEY_PATHS", "SecuredTarget", "entry", "running_secured_target"]

ALL, ALLOW, DENY = 2, 3, 2
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
READ, WRITE = 3, 4
_SESSION_MS = 3_000
KEY_PATHS = {"login": "/keys?v=login", "secure": "/keys?v=secure"}
"""Where each listener has the keys of web tokens from: LOGIN each second, SECURE each hour."""
_KEYS = "sasl.oauthbearer.jwks.endpoint"
_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:broker;User:root",
    "connection.handshake.timeout.ms": "4000",
    "max.connections.per.ip": "6000",
    "num.partitions": "1",
    "listener.name.narrow.connections.max.reauth.ms": str(_SESSION_MS),
    "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=([a-z]*)$/$1/",
    f"listener.name.login.oauthbearer.{_KEYS}.refresh.ms": "1000",
    f"listener.name.login.oauthbearer.{_KEYS}.retry.backoff.max.ms": "1000",
}


def _keys_from(server: KeyServer) -> dict[str, str]:
    urls = {each: f"{server.address}{path}" for each, path in KEY_PATHS.items()}
    named = {f"listener.name.{each}.oauthbearer.{_KEYS}.url": url for each, url in urls.items()}
    return {**named, "org.apache.kafka.sasl.oauthbearer.allowed.urls": ",".join(urls.values())}


@dataclass
class SecuredTarget(Target):
    """The node, and what its attackers need of it."""

    topic_ids: dict[str, bytes] = field(default_factory=dict)
    running: Node | None = None
    keys_at: KeyServer | None = None

    @property
    def node(self) -> Node:
        """The node itself."""
        assert self.running is not None, "a target is made for a node"
        return self.running

    @property
    def key_server(self) -> KeyServer:
        """Where the node has the keys of web tokens from."""
        assert self.keys_at is not None, "a target is made with a server of keys"
        return self.keys_at

    @property
    def listeners(self) -> ManyListeners:
        """Its listeners, authority and keys."""
        return self.node.listeners

    def address(self, listener: str) -> tuple[str, int]:
        """Host and port of a listener; PLAINTEXT is that of super users."""
        if listener == "PLAINTEXT":
            return self.host, self.port
        where = self.node.secure if listener == "SECURE" else self.listeners.address(listener)
        return host_and_port(where)

    def line(
        self, listener: str = "LOGIN", tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> Line:
        """Connect to a listener from an address of this machine."""
        return Line(self.address(listener), tls, host)

    def logged_in(self, user: str = "ann", listener: str = "LOGIN") -> Line:
        """Connect and log in by PLAIN."""
        line = self.line(listener)
        line.enters(user)
        return line

    def as_super_user(self, request: Message, version: int) -> Any:
        """Ask over plain text."""
        with self.line("PLAINTEXT") as line:
            return line.ask(request, version)

    def trusting(self, **own: str) -> ssl.SSLContext:
        """Return a TLS client that trusts the node's authority, and shows a certificate."""
        context = ssl.create_default_context(cafile=str(self.listeners.authority.trusted))
        if own:
            context.load_cert_chain(own["certificate"], own["key"])
        return context


@contextmanager
def running_secured_target() -> Iterator[SecuredTarget]:
    """Start a node with users, topics and entries."""
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-attack-") as folder,
        serving(keys=key_set()) as keys,
        started(Path(folder), is_apache=False, more=_SETTINGS | _keys_from(keys)) as node,
    ):
        host, port = host_and_port(node.bootstrap)
        target = SecuredTarget(node.pid, host, port, node.log, running=node, keys_at=keys)
        _prepare(target)
        yield target


def _prepare(target: SecuredTarget) -> None:
    names = ("good", "secret", "ann-own", "ann-denied")
    wanted = [CreatableTopic(name=each, num_partitions=1, replication_factor=1) for each in names]
    made = target.as_super_user(CreateTopicsRequest(topics=wanted, timeout_ms=30_000), 7)
    assert outcome_of(made, 7) == "0", json.dumps(message_to_json(made, 7))
    target.topic_ids.update((each.name, each.topic_id) for each in made.topics)
    entries = [
        entry(TOPIC, "ann", "ann", pattern=PREFIXED),
        entry(GROUP, "ann", "ann", pattern=PREFIXED),
        entry(TOPIC, "ann-denied", "ann", permission=DENY),
        entry(TOPIC, "bob-own", "bob", operation=WRITE),
        entry(TOPIC, "*", "bob", operation=WRITE, permission=DENY),
    ]
    answer = target.as_super_user(CreateAclsRequest(creations=entries), 3)
    assert outcome_of(answer, 3) == "0", answer


def entry(
    kind: int,
    name: str,
    user: str,
    *,
    operation: int = ALL,
    permission: int = ALLOW,
    pattern: int = LITERAL,
) -> AclCreation:
    """Return an entry for a user at any address."""
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=permission,
    )
