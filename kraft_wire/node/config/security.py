"""What the listeners of a node ask of their clients, and how the node dials those of others.

Values alone: `security_reading` makes them out of the configuration, and only where a listener is
not in plain text, because most nodes start without any of it.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from kraft_wire.frozen import frozen

if TYPE_CHECKING:
    from kraft_wire.node.security.principal_rules import PrincipalRules

__all__ = ["LinkSecurity", "ListenerSecurity", "PemStore", "SaslSettings", "TlsSettings"]


@frozen
class PemStore:
    """Certificates, or a key with its chain: in a file, or as text."""

    location: str | None = None
    text: str | None = field(default=None, repr=False)


@frozen
class TlsSettings:
    """How a listener speaks TLS, and how this node dials such a listener."""

    key_store: PemStore | None
    """None: only for dialling, where the other side asks for no certificate."""
    key_password: str | None = field(repr=False)
    trust_store: PemStore | None
    """None: the platform's authorities."""
    client_auth: str
    versions: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    """By IANA's names; none: OpenSSL's choice."""
    principal_rules: "PrincipalRules"
    checks_host_name: bool
    """Whether this node, where it dials, compares the certificate with the name it dialled."""


@frozen
class SaslSettings:
    """How the clients of a listener log in."""

    mechanisms: tuple[str, ...]
    plain_accounts: Mapping[str, str] = field(repr=False)
    """Passwords by user."""
    receive_bytes_max: int
    """The longest frame before a login."""
    failed_delay_ms: int
    session_ms: Mapping[str, int]
    """By mechanism, how long a login lasts; 0: as long as its connection."""


@frozen
class ListenerSecurity:
    """What one listener asks for."""

    protocol: str
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None


@frozen
class LinkSecurity:
    """How this node dials a listener of others."""

    protocol: str = "PLAINTEXT"
    tls: TlsSettings | None = None
    mechanism: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
