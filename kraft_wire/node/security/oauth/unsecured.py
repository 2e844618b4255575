"""Unsecured tokens (KIP-255): their header says that there is no signature, so anyone can make one.

For tests. `exp` is needed and must be in the future, `iat` may not be, and must come before `exp`;
`nbf` has no meaning. A text as scope is one scope, a list several.
"""

from typing import Any

from kraft_wire.node.config.token_settings import UnsecuredTokenSettings
from kraft_wire.node.security.oauth.server import Bearer, TokenRefused
from kraft_wire.node.security.oauth.token_parts import (
    TokenObject,
    decoded_object,
    seconds_of,
    split_token,
)

__all__ = ["UnsecuredTokens"]


class UnsecuredTokens:
    """Checks the tokens of one listener."""

    def __init__(self, settings: UnsecuredTokenSettings) -> None:
        self._settings = settings

    def check(self, token: str, wall_ms: int) -> Bearer:
        """Return whom a token names. Errors: TokenRefused."""
        header, claims, signature = split_token(token)
        if decoded_object(header).get("alg") != "none" or signature:
            raise TokenRefused("the token is signed, and this listener takes unsecured ones only")
        found = decoded_object(claims)
        user = found.get(self._settings.subject_claim)
        if not isinstance(user, str) or not user.strip():
            raise TokenRefused(f"the claim {self._settings.subject_claim} is not a name")
        expires = self._check_times(found, wall_ms)
        scope = _scope_of(found.get(self._settings.scope_claim))
        if not scope.issuperset(self._settings.required_scope):
            wanted = f"[{', '.join(self._settings.required_scope)}]"
            raise TokenRefused("the token lacks a required scope", wanted)
        return Bearer(user, expires)

    def _check_times(self, claims: TokenObject, wall_ms: int) -> int:
        """Return the end of the token's life."""
        issued, expires = seconds_of(claims, "iat"), seconds_of(claims, "exp")
        if expires is None:
            raise TokenRefused("the token has no claim exp")
        if issued is not None and issued * 1000 > wall_ms + self._settings.skew_ms:
            raise TokenRefused("the token is issued in the future")
        if wall_ms - self._settings.skew_ms >= expires * 1000:
            raise TokenRefused("the token has expired")
        if issued is not None and expires <= issued:
            raise TokenRefused("the token ends before it is issued")
        return round(expires * 1000)


def _scope_of(value: Any) -> frozenset[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise TokenRefused("the scope of the token is a number")
    values = value if isinstance(value, list) else [value]
    if value is None or not all(isinstance(each, str) for each in values):
        return frozenset()
    return frozenset(each.strip() for each in values if each.strip())
