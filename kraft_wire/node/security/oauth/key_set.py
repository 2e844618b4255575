"""The keys that sign a listener's tokens (RFC 7517), and when they are fetched again (KIP-768).

The host fetches, and passes the time. A key set is fetched when the node starts, after
`refresh_ms`, after a failure with growing pauses, and when a token names a key that is not known:
for that at most once a minute, whatever clients send. Keys stay in use until others arrive.
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.node.config.token_settings import SignedTokenSettings
from kraft_wire.node.security.oauth.signatures import VerificationKey

__all__ = ["KeySet"]

_ASKED_FOR_EVERY_MS: Final = 60_000
"""Least time between fetches that tokens of unknown keys ask for."""


class KeySet:
    """The keys of one listener."""

    def __init__(self, settings: SignedTokenSettings, listener: str) -> None:
        self.settings = settings
        self.listener = listener
        self._keys: tuple[VerificationKey, ...] = ()
        self._is_missed = False
        self._due_ms = 0
        self._asked_ms: int | None = None
        self._pause_ms = settings.retry_ms
        self._refresh_ms = 0 if settings.url.startswith("file:") else settings.refresh_ms
        """A file is looked at whenever the host asks."""

    def candidates(self, kind: str, key_id: str | None) -> Sequence[VerificationKey]:
        """Return the keys of a kind that may have signed a token; none: a fetch may find it."""
        found = [key for key in self._keys if key.kind == kind and key_id in (None, key.key_id)]
        if not found and key_id is not None:
            self._is_missed = True
        return found

    def is_due(self, now_ms: int) -> bool:
        """Return whether the keys are to be fetched now; the caller then does."""
        is_asked_for, self._is_missed = self._is_missed, False
        if now_ms >= self._due_ms:
            return True
        last = self._asked_ms
        if not is_asked_for or (last is not None and now_ms < last + _ASKED_FOR_EVERY_MS):
            return False
        self._asked_ms = now_ms
        return True

    def arrived(self, keys: Sequence[VerificationKey], now_ms: int) -> None:
        """Use other keys from now on."""
        self._keys = tuple(keys)
        self.unchanged(now_ms)

    def unchanged(self, now_ms: int) -> None:
        """Note a fetch that found the present keys."""
        self._pause_ms = self.settings.retry_ms
        self._due_ms = now_ms + self._refresh_ms

    def failed(self, now_ms: int) -> None:
        """Note a fetch without a result; the present keys stay."""
        self._due_ms = now_ms + self._pause_ms
        self._pause_ms = min(2 * self._pause_ms, self.settings.retry_max_ms)
