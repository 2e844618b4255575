"""The session of a link that logs in: the first login, and one more before each session ends.

As Kafka's client (KIP-368): a peer that answers a login with a lifetime is sent another login on
the same link once 85 to 95 % of it are over, before the next request. Requests in flight are
answered first; those that come during a login wait behind it. An idle link is not renewed, because
a peer accepts a login after the end of a session too. Bytes, time and chance come in; bytes go out.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kraft_wire.login.client_config import Credentials
from kraft_wire.login.link import LOGIN_CORRELATION_ID, LinkLogin
from kraft_wire.model import RandomSource
from kraft_wire.wire.message import Buffer

__all__ = ["LinkSession", "until_renewal_ms"]

_EARLIEST_PERCENT: Final = 85
_LATEST_PERCENT: Final = 95
_PAUSE_MS: Final = 1_001
"""A peer refuses a login within one second of the last one; one more for two clocks' rounding."""
_CORRELATION_ID: Final = LOGIN_CORRELATION_ID.to_bytes(4, "big")


def until_renewal_ms(lifetime_ms: int, below: Callable[[int], int]) -> int | None:
    """Return how long after a login the next one is due, None if its session does not end.

    `below` draws an integer, so that the links of many nodes do not log in at the same time.
    """
    if lifetime_ms <= 0:
        return None
    earliest_ms = lifetime_ms * _EARLIEST_PERCENT // 100
    latest_ms = lifetime_ms * _LATEST_PERCENT // 100
    drawn_ms = earliest_ms + below(latest_ms - earliest_ms + 1)
    return max(drawn_ms, _PAUSE_MS)


class LinkSession:
    """The logins of one link: `begin`, then `take` and `send`, which return bytes to write."""

    def __init__(self, credentials: Credentials, random_source: RandomSource) -> None:
        self._credentials = credentials
        self._random_source = random_source
        self._login: LinkLogin | None = None
        """The login in progress."""
        self._asked_ms = 0
        """Time of the last token, before which the session cannot have begun."""
        self._renews_ms: int | None = None
        self._held: list[Buffer] = []
        """Requests that wait for the login, in order."""
        self.held_bytes = 0
        self.is_open = False
        """Whether the first login is complete."""

    def begin(self) -> bytes:
        """Return the first frame of a login."""
        assert self._login is None, "one login at a time"
        self._login = LinkLogin(self._credentials)
        return self._login.begin()

    def send(self, buffers: Sequence[Buffer], size_bytes: int, now_ms: int) -> Sequence[Buffer]:
        """Return what to write for a request: itself, or a login if one is due."""
        begins = self._login is None and self._is_due(now_ms)
        if self._login is None and not begins:
            return buffers
        self._held += buffers
        self.held_bytes += size_bytes
        return [self.begin()] if begins else []

    def _is_due(self, now_ms: int) -> bool:
        return self._renews_ms is not None and now_ms >= self._renews_ms

    def owns(self, frame: Buffer) -> bool:
        """Return whether a frame belongs to a login; the others answer requests."""
        if self._login is None:
            return False
        return not self.is_open or frame[: len(_CORRELATION_ID)] == _CORRELATION_ID

    def take(self, frame: bytes, now_ms: int) -> Sequence[Buffer]:
        """Return what to write after a frame of a login: a token, or the requests that waited.

        Errors: LoginFailed.
        """
        login = self._login
        assert login is not None, "it owns no frame without a login"
        token = login.take(frame)
        if token is not None:
            self._asked_ms = now_ms
            return [token]
        renewal_ms = until_renewal_ms(login.lifetime_ms, self._random_source.below)
        self._renews_ms = None if renewal_ms is None else self._asked_ms + renewal_ms
        self._login, self.is_open = None, True
        held, self._held, self.held_bytes = self._held, [], 0
        return held
