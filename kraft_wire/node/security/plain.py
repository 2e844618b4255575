"""PLAIN (RFC 4616) as Kafka's server has it: `[authzid] NUL user NUL password`.

Unknown users take as long as wrong passwords, and have the same text. Names are exact: no case
folding, no normal forms.
"""

from collections.abc import Mapping
from hmac import compare_digest
from typing import Final

from kraft_wire.node.security.mechanisms import LoginRefused

__all__ = ["PlainServer"]

_PARTS: Final = 3
_OTHER_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class PlainServer:
    """One login by PLAIN."""

    by_token = False

    def __init__(self, accounts: Mapping[str, str]) -> None:
        """`accounts` are passwords by user name."""
        self._accounts = accounts
        self.user: str | None = None
        self.expires_ms: int | None = None

    def step(self, token: bytes, _wall_ms: int) -> bytes:
        """Check the only token."""
        if self.user is not None:
            raise LoginRefused
        parts = token.split(b"\0", _PARTS)  # one more than permitted is enough to refuse
        if len(parts) != _PARTS:
            raise LoginRefused(
                f"Invalid SASL/PLAIN response: expected {_PARTS} tokens, got {len(parts)}"
            )
        requested, user, password = (part.decode("utf-8", "replace") for part in parts)
        if not user:
            raise LoginRefused("Authentication failed: username not specified")
        if not password:
            raise LoginRefused("Authentication failed: password not specified")
        expected = self._accounts.get(user)
        is_right = compare_digest((expected or "").encode(), password.encode())
        if expected is None or not is_right:
            raise LoginRefused("Authentication failed: Invalid username or password")
        if requested not in ("", user):
            raise LoginRefused(_OTHER_ID)
        self.user = user
        return b""
