"""The parts of a JSON web token (RFC 7515, RFC 7519), read strictly.

A name that occurs twice in an object is refused, as by Kafka: two readers could choose differently.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, Final

from kraft_wire.foreign_text import json_value
from kraft_wire.node.security.oauth.server import TokenRefused

__all__ = ["TokenObject", "decoded", "decoded_object", "seconds_of", "split_token"]

TokenObject = Mapping[str, Any]
"""A header or the claims of a token."""

_BASE64URL: Final = re.compile("[A-Za-z0-9_-]*", re.ASCII)
_PARTS: Final = 3
_SECONDS_MAX: Final = (1 << 63) // 1000
"""Kafka counts milliseconds in 64 bits."""


def split_token(token: str) -> tuple[str, str, str]:
    """Return header, claims and signature, still encoded. Errors: TokenRefused."""
    parts = token.split(".")
    if len(parts) != _PARTS or not parts[0] or not parts[1]:
        raise TokenRefused("the token does not have three parts")
    return parts[0], parts[1], parts[2]


def decoded(part: str) -> bytes:
    """Return the bytes of a part, with or without padding. Errors: TokenRefused."""
    bare = part.rstrip("=")
    if _BASE64URL.fullmatch(bare) is None:
        raise TokenRefused("the token has a part that is not base64url")
    try:
        return urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except ValueError:
        raise TokenRefused("the token has a part that is not base64url") from None


def decoded_object(part: str) -> TokenObject:
    """Return the object that a part has. Errors: TokenRefused."""
    try:
        found = json_value(
            decoded(part), object_pairs_hook=_without_doubles, parse_constant=_no_constant
        )
    except ValueError:
        raise TokenRefused("the token has a part that is not JSON") from None
    if not isinstance(found, dict):
        raise TokenRefused("the token has a part that is not an object")
    return found


def seconds_of(claims: TokenObject, name: str) -> float | None:
    """Return a time claim, None if it is absent. Errors: TokenRefused."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"the claim {name} is not a number")
    if not -_SECONDS_MAX < value < _SECONDS_MAX:
        raise TokenRefused(f"the claim {name} is out of range")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)
