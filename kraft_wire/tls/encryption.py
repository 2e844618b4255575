"""TLS listeners: their transports, and their clients' principals from certificates."""

import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial

from kraft_wire.model import Principal
from kraft_wire.node.config.security import ListenerSecurity, TlsSettings
from kraft_wire.node.outputs import Peer
from kraft_wire.node.security.principal_rules import PrincipalRules
from kraft_wire.node.security.subject_name import MalformedCertificate, subject_name
from kraft_wire.tls.contexts import server_context
from kraft_wire.tls.refused import TransportRefused
from kraft_wire.tls.transport import TlsTransport

__all__ = ["encryption_of", "transports"]


def encryption_of(
    security: Mapping[str, ListenerSecurity],
) -> dict[str, Callable[[socket.socket, Peer], TlsTransport]]:
    """Return the transport factory of each TLS listener. Errors: StartError."""
    return {
        name: transports(name, each.tls, has_sasl=each.sasl is not None)
        for name, each in security.items()
        if each.tls is not None
    }


def transports(
    listener: str, tls: TlsSettings, *, has_sasl: bool
) -> Callable[[socket.socket, Peer], TlsTransport]:
    """Return the transport factory of a listener. Errors: StartError."""
    rules = None if has_sasl else tls.principal_rules
    return partial(_transport, server_context(tls, listener), rules)


def _transport(
    context: ssl.SSLContext, rules: PrincipalRules | None, sock: socket.socket, peer: Peer
) -> TlsTransport:
    return TlsTransport(sock, context, partial(_name_peer, peer, rules))


def _name_peer(peer: Peer, rules: PrincipalRules | None, certificate: bytes | None) -> None:
    """Set a client's principal from its certificate, if the listener has no other login.

    Errors: TransportRefused.
    """
    if rules is None or certificate is None:
        return
    try:
        subject = subject_name(certificate)
    except MalformedCertificate as error:
        raise TransportRefused(str(error)) from error
    name = rules.name_of(subject)
    if name is None:
        raise TransportRefused("no rule of ssl.principal.mapping.rules matches the certificate")
    peer.principal = Principal("User", name)
