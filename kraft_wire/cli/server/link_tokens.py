"""The tokens by which this node logs in to others, each replaced before it expires (KIP-255, 768).

The first one is part of the start; later ones come in threads, off the loop. Links show the newest
one. Not here: where tokens come from (`login.bearer`), when they are due (`login.token_refresh`).
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import random
from threading import Thread
from typing import Final

from kraft_wire.keystores.store import UnusableStore
from kraft_wire.login.bearer import InvalidTokenSource, TokenSource, token_source
from kraft_wire.login.client_config import UnusableConfig, tls_of
from kraft_wire.login.token_refresh import RETRY_MS, refresh_at_ms, times_of
from kraft_wire.model import ReportEvent
from kraft_wire.node.config.security import LinkSecurity
from kraft_wire.node.config.token_settings import LinkTokenSettings
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.event_log import Line
from kraft_wire.server.clock import wall_ms

__all__ = ["LinkToken", "link_tokens"]

_SECOND_MS: Final = 1_000


def link_tokens(
    links: Mapping[str, LinkSecurity], loop: asyncio.AbstractEventLoop, report: ReportEvent
) -> dict[str, TokenSource]:
    """Fetch the first tokens; return what shows the newest one, by listener. Errors: StartError."""
    return {
        name: LinkToken(each.tokens, name or "of the controllers", loop, report).shown
        for name, each in links.items()
        if each.tokens is not None
    }


class LinkToken:
    """The token of the links to one listener."""

    def __init__(
        self,
        settings: LinkTokenSettings,
        listener: str,
        loop: asyncio.AbstractEventLoop,
        report: ReportEvent,
        wall_ms: Callable[[], int] = wall_ms,
    ) -> None:
        """Fetch the first token. Errors: StartError."""
        self._listener, self._loop, self._report = listener, loop, report
        self._window = settings.window
        self._wall_ms = wall_ms
        self._is_failing = False
        try:
            self._source = token_source(settings.keys, settings.options, tls_of)
            token = self._source()
            self._taken(token)
        except (InvalidTokenSource, UnusableConfig, UnusableStore, OSError, ValueError) as error:
            reason = f"there is no token for links to listener {listener}: {error}"
            raise StartError(reason) from error

    def shown(self) -> str:
        """Return the newest token, which may have expired."""
        return self._token

    def _taken(self, token: str) -> None:
        """Show a token from here on, and plan its replacement. Errors: ValueError."""
        now_ms, times = self._wall_ms(), times_of(token)
        self._token = token
        if now_ms > times.expires_ms:
            self._note_failure("the token has expired; are the clocks the same?")
        else:
            self._is_failing = False
        self._refresh_in(refresh_at_ms(self._window, now_ms, times, random()) - now_ms)

    def _refresh_in(self, pause_ms: int) -> None:
        self._loop.call_later(pause_ms / _SECOND_MS, self._refresh)

    def _refresh(self) -> None:
        Thread(target=self._fetch, daemon=True).start()

    def _fetch(self) -> None:
        try:
            token, problem = self._source(), ""
        except (OSError, ValueError) as error:
            token, problem = "", str(error) or type(error).__name__
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._fetched, token, problem)

    def _fetched(self, token: str, problem: str) -> None:
        try:
            if not problem:
                self._taken(token)
                return
        except ValueError as error:
            problem = str(error)
        self._note_failure(problem)
        self._refresh_in(RETRY_MS)

    def _note_failure(self, problem: str) -> None:
        if not self._is_failing:
            self._report("link_token_failed", listener=self._listener, reason=Line(problem))
        self._is_failing = True
