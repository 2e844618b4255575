"""The security settings of a node's listeners, and of its links to other nodes.

Values only: `security_reading` makes them from the configuration, and only if a listener is not
plaintext, because most nodes start without them.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from kraft_wire.frozen import frozen
from kraft_wire.keystores.store import Store
from kraft_wire.node.config.token_settings import LinkTokenSettings, TokenSettings

if TYPE_CHECKING:
    from kraft_wire.node.security.principal_rules import PrincipalRules

__all__ = ["LinkSecurity", "ListenerSecurity", "SaslSettings", "TlsSettings"]


@frozen
class TlsSettings:
    """The TLS settings of a listener, or of links to it."""

    key_store: Store | None
    """None only for links to listeners that request no certificate."""
    key_password: str | None = field(repr=False)
    trust_store: Store | None
    """None: the platform's authorities."""
    client_auth: str
    versions: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    """IANA's names; empty: OpenSSL's choice."""
    principal_rules: "PrincipalRules"
    checks_host_name: bool
    """Whether links compare the peer's certificate with its host name."""
    may_change_subject: bool = False
    """Whether a key store that is exchanged may have another subject (KIP-978)."""
    may_lose_names: bool = False
    """Whether a key store that is exchanged may lack an alternative name (KIP-978)."""


@frozen
class SaslSettings:
    """The SASL settings of a listener."""

    mechanisms: tuple[str, ...]
    plain_accounts: Mapping[str, str] = field(repr=False)
    """Passwords by user."""
    receive_bytes_max: int
    """The longest frame before a login."""
    failed_delay_ms: int
    session_ms: Mapping[str, int]
    """Lifetime of a login by mechanism; 0: that of its connection."""
    tokens: TokenSettings | None = None
    """How the tokens of OAUTHBEARER are checked, if it is enabled."""


@frozen
class ListenerSecurity:
    """The security of one listener."""

    protocol: str
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None


@frozen
class LinkSecurity:
    """The security of links to a listener of other nodes."""

    protocol: str = "PLAINTEXT"
    tls: TlsSettings | None = None
    mechanism: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    tokens: LinkTokenSettings | None = None
    """Where the tokens of OAUTHBEARER come from."""

    @property
    def login(self) -> tuple[str, str, str]:
        """Mechanism, username and password; the last two are empty for OAUTHBEARER."""
        assert self.mechanism is not None, "these links log in"
        return self.mechanism, self.username, self.password
