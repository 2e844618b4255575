"""Stores of listeners that are exchanged while they listen: checks, and new contexts (KIP-226).

A new key store must have the same subject and every alternative name of the present one, unless the
settings allow otherwise (KIP-978), because clients and ACLs know the node by them. The stores of
the listener between brokers must trust each other.
"""

import socket
import ssl
from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from kraft_wire.keystores.reading import CERTIFICATE, identity_of
from kraft_wire.keystores.store import UnusableStore
from kraft_wire.node.config.listeners import inter_broker_listener
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.config.security import TlsSettings
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import Peer
from kraft_wire.node.security.subject_name import (
    MalformedCertificate,
    alternative_names,
    subject_name,
)
from kraft_wire.tls.contexts import client_context, server_context
from kraft_wire.tls.encryption import encryption_of, transports
from kraft_wire.tls.transport import TlsTransport

__all__ = ["StoreExchange", "check_own_trust", "encryption_of_node"]

Encrypt: TypeAlias = Callable[[socket.socket, Peer], TlsTransport]
_STEPS_MAX: Final = 20
"""A handshake in memory takes four; this bounds one that goes in circles."""


class StoreExchange:
    """Exchanges the contexts of one node's listeners, and of its links to the same listeners."""

    def __init__(
        self,
        config: NodeConfig,
        serve: Callable[[str, TlsSettings], None],
        dialled: dict[str, ssl.SSLContext],
    ) -> None:
        """`serve` uses settings for new connections, `dialled` has the contexts of links.

        Errors: StartError.
        """
        self._present = {
            name: each.tls for name, each in config.security.items() if each.tls is not None
        }
        self._serve, self._dialled = serve, dialled
        between = inter_broker_listener(config.settings, config.listeners)
        self._between_brokers = None if between is None else between.name
        self._links = _links(config)
        if self._between_brokers in self._present:
            check_own_trust(self._present[self._between_brokers], self._between_brokers)
        self._names = {name: _names(tls) for name, tls in self._present.items()}

    def problem(self, listener: str, tls: TlsSettings) -> str | None:
        """Return why a listener cannot use these stores, None if it can."""
        try:
            self._check(listener, tls)
        except (StartError, UnusableStore, MalformedCertificate) as error:
            return str(error)
        return None

    def exchange(self, listener: str, tls: TlsSettings, *, is_start: bool) -> str | None:
        """Use stores from now on; return why not, and keep the present ones then.

        At the start of a process the stores are not compared with the present ones, which no peer
        has seen.
        """
        try:
            if not is_start:
                self._check(listener, tls)
            names, dialled = _names(tls), client_context(tls, listener)
            self._serve(listener, tls)
        except (StartError, UnusableStore, MalformedCertificate) as error:
            return str(error)
        self._present[listener], self._names[listener] = tls, names
        for link in self._links.get(listener, ()):
            self._dialled[link] = dialled
        return None

    def _check(self, listener: str, tls: TlsSettings) -> None:
        for store in (tls.key_store, tls.trust_store):
            if store is not None and store.location is not None:
                _check_is_file(store.location)
        server_context(tls, listener)
        if (tls.trust_store is None) != (self._present[listener].trust_store is None):
            raise UnusableStore("a trust store cannot be added to a listener, or removed from it")
        subject, hosts = self._names[listener]
        new_subject, new_hosts = _names(tls)
        if new_subject.lower() != subject.lower() and not tls.may_change_subject:
            raise UnusableStore(
                f"the subject of the key store does not match: it was {subject}, and would be "
                f"{new_subject}; ssl.allow.dn.changes=true allows it"
            )
        if not hosts <= new_hosts and not tls.may_lose_names:
            raise UnusableStore(
                "the key store lacks an alternative name of the present one; "
                "ssl.allow.san.changes=true allows it"
            )
        if listener == self._between_brokers:
            check_own_trust(tls, listener)


def encryption_of_node(node: Node, dialled: dict[str, ssl.SSLContext]) -> Mapping[str, Encrypt]:
    """Return the transport factories of a node's TLS listeners, which follow exchanged stores.

    Errors: StartError.
    """
    security = node.config.security
    found = encryption_of(security)

    def serve(listener: str, tls: TlsSettings) -> None:
        has_sasl = security[listener].sasl is not None
        found[listener] = transports(listener, tls, has_sasl=has_sasl)

    if node.stores is not None:
        node.stores.attach(StoreExchange(node.config, serve, dialled))
    return found


def check_own_trust(tls: TlsSettings, listener: str) -> None:
    """Check that a node's stores trust each other, by a handshake in memory. Errors: StartError."""
    ends = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2)]
    client = client_context(tls, listener)
    client.check_hostname = False
    sides = [
        client.wrap_bio(*ends[0]),
        server_context(tls, listener).wrap_bio(*ends[1], server_side=True),
    ]
    for step in range(_STEPS_MAX):
        side = step % 2
        try:
            sides[side].do_handshake()
            is_done = side == 1
        except ssl.SSLWantReadError:
            is_done = False
        except ssl.SSLError as error:
            raise StartError(
                f"listener {listener} is between brokers, and its key store is not trusted by its "
                f"own trust store: {error.reason or error}"
            ) from error
        ends[1 - side][0].write(ends[side][1].read())
        if is_done:
            return
    raise AssertionError("a handshake ends")


def _check_is_file(location: str) -> None:
    """Refuse a pipe or a device, which might keep the node waiting. Errors: UnusableStore."""
    path = Path(location)
    if path.exists() and not path.is_file():
        raise UnusableStore(f"{location}: it is not a file")


def _names(tls: TlsSettings) -> tuple[str, frozenset[bytes]]:
    """Return the subject and the alternative names of a listener's certificate.

    Errors: UnusableStore, MalformedCertificate.
    """
    assert tls.key_store is not None, "a listener has a key"
    pem, _ = identity_of(tls.key_store, tls.key_password)
    found = CERTIFICATE.search(pem)
    if found is None:
        raise UnusableStore("the key store has no certificate")
    certificate = b64decode(b"".join(found[0].splitlines()[1:-1]))
    return subject_name(certificate), alternative_names(certificate)


def _links(config: NodeConfig) -> Mapping[str, tuple[str, ...]]:
    """Return the names of this node's links that use the stores of a listener."""
    found: dict[str, tuple[str, ...]] = {}
    names = config.settings.strings("controller.listener.names")
    for link in config.links:
        listener = link or (names[0].upper() if names else "")
        found[listener] = (*found.get(listener, ()), link)
    return found
