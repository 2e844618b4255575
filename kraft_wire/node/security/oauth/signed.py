"""Signed tokens (KIP-768): whom they name, if a key of the listener's key set has signed them.

The rules are those of 4.3.1's validator: `exp` and `iat` are needed, `nbf` counts, all with a clock
skew; a token for an audience is refused where none is expected. Everything that the token says is
looked at after its signature, apart from the header.
"""

from typing import Any, Final

from kraft_wire.node.config.token_settings import SignedTokenSettings
from kraft_wire.node.security.oauth.key_set import KeySet
from kraft_wire.node.security.oauth.server import Bearer, TokenRefused
from kraft_wire.node.security.oauth.signatures import KIND_OF_ALGORITHM, is_signed_by
from kraft_wire.node.security.oauth.token_parts import (
    TokenObject,
    decoded,
    decoded_object,
    seconds_of,
    split_token,
)

__all__ = ["SignedTokens"]

_KEY_ID_CHARACTERS_MAX: Final = 1000
_JAVA_BLANKS: Final = "".join(map(chr, range(ord(" ") + 1)))
"""What Java's trim removes."""


class SignedTokens:
    """Checks the tokens of one listener."""

    def __init__(self, settings: SignedTokenSettings, keys: KeySet) -> None:
        self._settings = settings
        self._keys = keys

    def check(self, token: str, wall_ms: int) -> Bearer:
        """Return whom a token names. Errors: TokenRefused."""
        header, claims, signature = split_token(token)
        self._check_signature(token, decoded_object(header), signature)
        found = decoded_object(claims)
        expires_ms = self._check_times(found, wall_ms // 1000)
        self._check_origin(found)
        _check_scope(found.get(self._settings.scope_claim))
        return Bearer(self._subject(found), expires_ms)

    def _check_signature(self, token: str, header: TokenObject, signature: str) -> None:
        algorithm = str(header.get("alg"))
        kind = KIND_OF_ALGORITHM.get(algorithm)
        if kind is None or not signature:
            raise TokenRefused("the token is not signed by an algorithm with a public key")
        if "crit" in header or str(header.get("cty", "")).lower() == "jwt":
            raise TokenRefused("the token is of a kind that is not supported")
        key_id = header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise TokenRefused("the key id of the token is not a text")
        if key_id is not None and len(key_id) > _KEY_ID_CHARACTERS_MAX:
            raise TokenRefused("the key id of the token is too long")
        keys = self._keys.candidates(kind, key_id)
        if not keys:
            raise TokenRefused("the key set has no key for the token")
        signed = token.rpartition(".")[0].encode("ascii")
        if not is_signed_by(algorithm, signed, decoded(signature), keys):
            raise TokenRefused("the signature of the token is wrong")

    def _check_times(self, claims: TokenObject, now: int) -> int:
        """Return the end of the token's life; all in whole seconds, as Kafka counts."""
        expires, issued, begins = (_seconds(claims, name) for name in ("exp", "iat", "nbf"))
        if expires is None or issued is None:
            raise TokenRefused("the token lacks one of the claims exp and iat")
        if now - self._settings.skew_seconds >= expires:
            raise TokenRefused("the token has expired")
        if begins is not None and now + self._settings.skew_seconds < begins:
            raise TokenRefused("the token is not valid yet")
        if issued < 0 or expires < max(issued, begins or 0):
            raise TokenRefused("the times of the token contradict each other")
        return expires * 1000

    def _check_origin(self, claims: TokenObject) -> None:
        issuer, audience = claims.get("iss"), claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if audience is not None and not _are_texts(audiences):
            raise TokenRefused("the claim aud is neither a text nor a list of texts")
        if audience is None and self._settings.audiences:
            raise TokenRefused("the token is for no audience")
        if audience is not None and not set(self._settings.audiences).intersection(audiences):
            raise TokenRefused("the token is for another audience")
        expected = self._settings.issuer
        if expected is not None and issuer != expected:
            raise TokenRefused("the token is of another issuer")
        for name in ("iss", "sub", "jti"):
            if not isinstance(claims.get(name, ""), str):
                raise TokenRefused(f"the claim {name} is not a text")

    def _subject(self, claims: TokenObject) -> str:
        name = self._settings.subject_claim
        subject = claims.get(name)
        user = subject.strip(_JAVA_BLANKS) if isinstance(subject, str) else ""
        if not user:
            raise TokenRefused(f"the claim {name} is not a name")
        return user


def _seconds(claims: TokenObject, name: str) -> int | None:
    found = seconds_of(claims, name)
    return None if found is None else int(found)


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(each, str) for each in values)


def _check_scope(value: Any) -> None:
    """Refuse a scope that is empty or names one twice; no operation asks for a scope."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        return
    if not _are_texts(values):
        raise TokenRefused("the scope of the token is not a list of texts")
    names = [each.strip(_JAVA_BLANKS) for each in values]
    if "" in names or len(set(names)) != len(names):
        raise TokenRefused("the scope of the token has an empty or a repeated name")
