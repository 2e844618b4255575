"""A node with logins and an authorizer under attack, and connections to it that are held by hand.

`ann` may do everything with topics and groups that begin with `ann`, except with `ann-denied`;
`bob` has a login alone. Who comes over plain text is a super user: that is the good client's way.
"""

from __future__ import annotations

import json
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import dialogue
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.sasl_authenticate import SaslAuthenticateRequest
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message
from tests.apache.secured_node import ACCOUNTS
from tests.attack.target import Target, read_frame
from tests.clients.secured.nodes import ManyListeners, Node, started

__all__ = ["Line", "SecuredTarget", "outcome_of", "running_secured_target"]

ALL, ALLOW, DENY = 2, 3, 2
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
READ, WRITE = 3, 4
_PATIENCE_S = 15.0
_SESSION_MS = 3_000
_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:broker;User:root",
    "connection.handshake.timeout.ms": "4000",
    "max.connections.per.ip": "6000",
    "num.partitions": "1",
    "listener.name.narrow.connections.max.reauth.ms": str(_SESSION_MS),
    "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=([a-z]*)$/$1/",
}


@dataclass
class SecuredTarget(Target):
    """The node, and what its attackers need of it."""

    topic_ids: dict[str, bytes] = field(default_factory=dict)
    running: Node | None = None

    @property
    def node(self) -> Node:
        """The node itself."""
        assert self.running is not None, "a target is made for a node"
        return self.running

    @property
    def listeners(self) -> ManyListeners:
        """Its listeners, authority and keys."""
        return self.node.listeners

    def address(self, listener: str) -> tuple[str, int]:
        """Host and port of a listener; PLAINTEXT is that of super users."""
        if listener == "PLAINTEXT":
            return self.host, self.port
        where = self.node.secure if listener == "SECURE" else self.listeners.address(listener)
        host, _, port = where.rpartition(":")
        return host, int(port)

    def line(
        self, listener: str = "LOGIN", tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> Line:
        """Connect to a listener from an address of this machine."""
        return Line(self.address(listener), tls, host)

    def logged_in(self, user: str = "ann", listener: str = "LOGIN") -> Line:
        """Connect and log in by PLAIN."""
        line = self.line(listener)
        line.shake("PLAIN")
        answer = line.show(f"\0{user}\0{ACCOUNTS[user]}".encode())
        assert answer is not None, user
        assert answer.error_code == 0, answer
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


class Line:
    """One connection whose every byte is the attacker's."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None, host: str) -> None:
        self.socket = socket.create_connection(address, _PATIENCE_S, (host, 0))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=address[0])

    def frame(self, request: Message, version: int, client_id: str = "attacker") -> bytes:
        """Return a request as it is sent."""
        header = RequestHeader(request.API_KEY, version, 7, client_id)
        payload = encode_request_header(header) + request.encode(version)
        return len(payload).to_bytes(4, "big") + payload

    def says(self, data: bytes) -> None:
        """Send bytes; that the node has closed already is no error."""
        with suppress(ConnectionError, ssl.SSLError):
            self.socket.sendall(data)

    def hears(self) -> bytes | None:
        """Return a frame, None where the node closes."""
        try:
            return read_frame(self.socket)  # a TLS socket is one too
        except (ConnectionError, ssl.SSLError):
            return None

    def ask(self, request: Message, version: int, client_id: str = "attacker") -> Any:
        """Return the answer to a request, None where the node closes."""
        self.says(self.frame(request, version, client_id))
        frame = self.hears()
        if frame is None:
            return None
        _, at = parse_response_header(frame, request.API_KEY, version)
        return response_class(request.API_KEY).decode(frame, version, at)[0]

    def outcome(self, request: Message, version: int) -> str:
        """Return what a request ends in: see `outcome_of`."""
        return outcome_of(self.ask(request, version), version)

    def shake(self, mechanism: str) -> Any:
        """Choose a mechanism."""
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), 1)

    def show(self, token: bytes) -> Any:
        """Show a token."""
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), 2)

    def refused(self, mechanism: str, *tokens: bytes) -> str:
        """Choose a mechanism and show tokens; return the outcome of the last."""
        answer = self.shake(mechanism)
        for token in tokens:
            if answer is None or answer.error_code:
                break
            answer = self.show(token)
        return outcome_of(answer, 2 if tokens else 1)

    def logs_in(self, credentials: Credentials, nonce: str = "") -> str:
        """Log in as a client does; return the outcome."""
        tokens = dialogue(credentials, nonce)
        answer = self.shake(credentials.mechanism)
        token: bytes | None = next(tokens)
        while token is not None and answer is not None and not answer.error_code:
            answer = self.show(token)
            token = None
            if answer is not None and not answer.error_code:
                with suppress(StopIteration):
                    token = tokens.send(bytes(answer.auth_bytes))
        return outcome_of(answer, 2)

    def is_closed(self, seconds: float = _PATIENCE_S) -> bool:
        """Wait for the end of the connection; whatever comes before is dropped."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(65_536):
                pass
        except TimeoutError:
            return False
        except (ConnectionError, ssl.SSLError):
            return True
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def outcome_of(answer: Message | None, version: int) -> str:
    """Return `close`, or the error codes of an answer, the innermost ones where there are such."""
    if answer is None:
        return "close"
    shown = message_to_json(answer, version)
    inner = set(_codes([each for each in shown.values() if isinstance(each, list | dict)]))
    if shown.get("errorCode"):
        inner = {shown["errorCode"]}
    return "+".join(map(str, sorted(inner or {shown.get("errorCode", 0)})))


def _codes(shown: Any) -> Iterator[int]:
    if isinstance(shown, list):
        for each in shown:
            yield from _codes(each)
    elif isinstance(shown, dict):
        inner = [code for value in shown.values() for code in _codes(value)]
        own = [value for key, value in shown.items() if key.lower().endswith("errorcode")]
        yield from inner if inner and own in ([], [0]) else own


@contextmanager
def running_secured_target() -> Iterator[SecuredTarget]:
    """Start a node with users, topics and entries."""
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-attack-") as folder,
        started(Path(folder), is_apache=False, more=_SETTINGS) as node,
    ):
        host, _, port = node.bootstrap.rpartition(":")
        target = SecuredTarget(node.pid, host, int(port), node.log, running=node)
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
