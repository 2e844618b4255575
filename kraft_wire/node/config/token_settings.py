"""Settings of OAUTHBEARER: values only, made by `oauth_reading` and `link_token_reading`."""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from kraft_wire.frozen import frozen
from kraft_wire.keystores.store import Store

if TYPE_CHECKING:
    from kraft_wire.login.token_refresh import RefreshWindow

__all__ = [
    "LinkTokenSettings",
    "SignedTokenSettings",
    "TokenSettings",
    "UnsecuredTokenSettings",
]


@frozen
class SignedTokenSettings:
    """Tokens are signed by a key of a key set (KIP-768)."""

    url: str = field(repr=False)
    """Address of the key set: file, http or https."""
    trust_store: Store | None = None
    """What an https address is checked with; None: the platform's authorities."""
    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    retry_max_ms: int = 10_000
    audiences: tuple[str, ...] = ()
    """Empty: only tokens without an audience."""
    issuer: str | None = None
    skew_seconds: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"

    @property
    def weakness(self) -> str | None:
        """What an operator should know about these settings."""
        if self.issuer is not None and self.audiences:
            return None
        missing = "issuer" if self.issuer is None else "audience"
        return f"sasl.oauthbearer.expected.{missing} is not set"


@frozen
class UnsecuredTokenSettings:
    """Tokens are not signed: anyone can make one (KIP-255)."""

    subject_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    skew_ms: int = 0

    @property
    def weakness(self) -> str:
        """What an operator should know about these settings."""
        return "unsecured tokens are accepted: anyone can log in as anyone"


TokenSettings: TypeAlias = SignedTokenSettings | UnsecuredTokenSettings


@frozen
class LinkTokenSettings:
    """Where the tokens come from by which a node logs in to others."""

    keys: Mapping[str, str] = field(repr=False)
    """Client keys, as `login.bearer` takes them."""
    options: Mapping[str, str] = field(repr=False)
    """Those of the login entry."""
    window: "RefreshWindow"
