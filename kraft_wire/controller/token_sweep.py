"""Removes expired delegation tokens: every `delegation.token.expiry.check.interval.ms` (KIP-48).

An active controller checks all tokens, at most a thousand removals a step. A token that is expired
but not removed yet logs in, and its session ends at once.
"""

from typing import Final

from kraft_wire.metadata.delegation_tokens import is_expired, secret_key
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.remove_delegation_token_record import RemoveDelegationTokenRecord

__all__ = ["TokenSweep"]

_REMOVALS_MAX: Final = 1_000
_STEPS_APART_MS: Final = 10
_INTERVAL_KEY: Final = "delegation.token.expiry.check.interval.ms"


class TokenSweep:
    """The periodic check of one controller; idle except between `begin` and `end`."""

    def __init__(self, settings: NodeSettings) -> None:
        """`settings` are the file's: none of these keys changes while a node runs."""
        self._interval_ms = settings.integer(_INTERVAL_KEY)
        assert self._interval_ms > 0, self._interval_ms
        self._is_enabled = secret_key(settings) is not None
        self._at_ms: int | None = None

    def begin(self, now_ms: int) -> None:
        """Start the checks of an active controller; the first is a whole interval away."""
        assert now_ms >= 0, now_ms
        self._at_ms = now_ms + self._interval_ms if self._is_enabled else None

    def end(self) -> None:
        """Stop the checks: the controller is no longer active."""
        self._at_ms = None

    def deadline_ms(self, image: MetadataImage) -> int | None:
        """Return when `records` may have records, None without tokens."""
        return self._at_ms if image.delegation_tokens else None

    def records(self, image: MetadataImage, now_ms: int, wall_ms: int) -> list[VersionedRecord]:
        """Return the removals of one step that is due."""
        assert self._at_ms is not None, "only the active controller checks"
        assert now_ms >= self._at_ms, (now_ms, self._at_ms)
        tokens = image.delegation_tokens
        ended = [token_id for token_id in sorted(tokens) if is_expired(tokens[token_id], wall_ms)]
        is_whole = len(ended) <= _REMOVALS_MAX
        assert len(ended) <= len(tokens)
        self._at_ms = now_ms + (self._interval_ms if is_whole else _STEPS_APART_MS)
        return [
            VersionedRecord(RemoveDelegationTokenRecord(token_id=each))
            for each in ended[:_REMOVALS_MAX]
        ]
