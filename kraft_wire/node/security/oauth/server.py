"""The server's side of OAUTHBEARER (RFC 7628, KIP-255) as a state machine.

A token that is refused is answered by JSON, which the client has to acknowledge by %x01; then the
login fails with the same JSON. Anything else than the acknowledgement fails too: 4.3.1 lets a
client try another token. Extensions are read and have no meaning, as with Kafka's own handlers.
"""

from typing import Final, NamedTuple, Protocol

from kraft_wire.node.security.mechanisms import LoginRefused
from kraft_wire.node.security.oauth.initial_response import parse_initial_response

__all__ = ["Bearer", "OAuthBearerServer", "TokenCheck", "TokenRefused"]

_ACKNOWLEDGEMENT: Final = b"\x01"


class Bearer(NamedTuple):
    """Whom a valid token names."""

    user: str
    expires_ms: int
    """Milliseconds since 1970."""


class TokenRefused(Exception):
    """A token is invalid; the text is for the log, and has nothing of the token."""

    def __init__(self, reason: str, missing_scope: str | None = None) -> None:
        """`missing_scope` is what the listener requires, if the token lacks it."""
        super().__init__(reason)
        self.reason = reason
        self.missing_scope = missing_scope


class TokenCheck(Protocol):
    """How the tokens of a listener are checked."""

    def check(self, token: str, wall_ms: int) -> Bearer:
        """Return whom a token names. Errors: TokenRefused."""
        ...


class OAuthBearerServer:
    """One login by OAUTHBEARER."""

    by_token = False

    def __init__(self, tokens: TokenCheck) -> None:
        self._tokens = tokens
        self.user: str | None = None
        self.expires_ms: int | None = None
        self._refusal: TokenRefused | None = None
        """Set while the client has to acknowledge it."""

    def step(self, token: bytes, wall_ms: int) -> bytes:
        """Answer the client's first message, or fail at its acknowledgement."""
        if self.user is not None:
            raise LoginRefused
        if self._refusal is not None:
            reason = self._refusal.reason
            if token != _ACKNOWLEDGEMENT:
                raise LoginRefused(reason=reason)
            raise LoginRefused(_json(self._refusal), reason)
        first = parse_initial_response(token)
        try:
            bearer = self._tokens.check(first.token, wall_ms)
        except TokenRefused as refusal:
            self._refusal = refusal
            return _json(refusal).encode()
        if first.authzid not in ("", bearer.user):
            raise LoginRefused(
                f"Authentication failed: Client requested an authorization id ({first.authzid})"
                f" that is different from the token's principal name ({bearer.user})",
                "the authorization id is not the user of the token",
            )
        self.user, self.expires_ms = bearer
        return b""


def _json(refusal: TokenRefused) -> str:
    if refusal.missing_scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":"{refusal.missing_scope}"}}'
