"""When a token is replaced by a newer one, as in Kafka's `ExpiringCredentialRefreshingLogin`.

The times come from the token's claims `iat` and `exp`, in seconds; its signature is not checked by
the one who shows it.
"""

from base64 import urlsafe_b64decode
from typing import Final, NamedTuple

from kraft_wire.foreign_text import json_value
from kraft_wire.frozen import frozen

__all__ = ["RETRY_MS", "RefreshWindow", "TokenTimes", "refresh_at_ms", "times_of"]

RETRY_MS: Final = 10_000
"""Pause after a refresh that failed, and before that of a token which has expired."""
_PARTS: Final = 3


@frozen
class RefreshWindow:
    """The settings `sasl.login.refresh.*`."""

    factor: float = 0.8
    """Share of a token's life after which it is replaced."""
    jitter: float = 0.05
    """Greatest random share that is added."""
    min_period_seconds: int = 60
    buffer_seconds: int = 300
    """Time that a token still has when it is replaced."""


class TokenTimes(NamedTuple):
    """The life of a token, in ms since the epoch."""

    begins_ms: int | None
    expires_ms: int


def times_of(token: str) -> TokenTimes:
    """Return the life of a JSON web token. Errors: ValueError."""
    parts = token.split(".")
    try:
        claims = json_value(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        issued, expires = claims.get("iat"), claims["exp"]
        begins_ms = None if issued is None else _ms(issued)
        if len(parts) == _PARTS:
            return TokenTimes(begins_ms, _ms(expires))
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
        pass
    raise ValueError("the token is not a JSON web token with the time exp")


def _ms(seconds: object) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(seconds)
    return round(seconds * 1_000)


def refresh_at_ms(window: RefreshWindow, now_ms: int, times: TokenTimes, share: float) -> int:
    """Return when a token is to be replaced; `share` is drawn, from 0 to below 1.

    The period and the buffer count only if the rest of the token's life has room for both.
    """
    begins_ms, expires_ms = times
    if now_ms > expires_ms:
        return now_ms + RETRY_MS
    used = window.factor + window.jitter * share
    period_ms, buffer_ms = window.min_period_seconds * 1_000, window.buffer_seconds * 1_000
    if now_ms + period_ms + buffer_ms > expires_ms:
        return now_ms + int((expires_ms - now_ms) * used)
    begins_ms = now_ms if begins_ms is None else begins_ms
    proposed_ms = begins_ms + int((expires_ms - begins_ms) * used)
    return max(min(proposed_ms, expires_ms - buffer_ms), now_ms + period_ms)
