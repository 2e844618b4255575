"""Key sets of signed tokens, brought from a file or a server, each in a thread (KIP-768).

The first fetch is part of the start, later ones are off the loop's thread. A file is read again
within a second of its change. Not here: how a fetch works (`keystores.key_sets`).
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import Final, TypeAlias

from kraft_wire.keystores.key_sets import KeySetSource, UnusableKeySet, key_set_source
from kraft_wire.keystores.store import UnusableStore
from kraft_wire.model import ReportEvent
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.event_log import Line
from kraft_wire.node.security.oauth.key_set import KeySet
from kraft_wire.node.security.oauth.signatures import VerificationKey, read_key_set
from kraft_wire.server.clock import now_ms

__all__ = ["KeySets"]


_LOOK_SECONDS: Final = 1.0


class KeySets:
    """The key sets of one node, fetched as long as its loop runs."""

    def __init__(
        self, key_sets: Sequence[KeySet], loop: asyncio.AbstractEventLoop, report: ReportEvent
    ) -> None:
        """Bring each key set for the first time. Errors: StartError."""
        self._loop, self._report = loop, report
        self._sources = [(each, _start_source(each)) for each in key_sets]
        self._fetching: set[str] = set()
        self._failing: set[str] = set()
        for each, source in self._sources:
            found = _brought(source)
            if isinstance(found, str):
                name = each.listener
                raise StartError(f"the key set of listener {name} cannot be used: {found}")
            self._note(each, found)
        if self._sources:
            loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Begin the fetches that are due."""
        now = now_ms()
        for each, source in self._sources:
            if each.listener not in self._fetching and each.is_due(now):
                self._fetching.add(each.listener)
                Thread(target=self._fetch, args=(each, source), daemon=True).start()
        self._loop.call_later(_LOOK_SECONDS, self._look)

    def _fetch(self, keys: KeySet, source: KeySetSource) -> None:
        found = _brought(source)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self._fetched, keys, found)

    def _fetched(self, keys: KeySet, found: "_Brought") -> None:
        self._fetching.discard(keys.listener)
        self._note(keys, found)

    def _note(self, keys: KeySet, found: "_Brought") -> None:
        listener = keys.listener
        if isinstance(found, str):
            keys.failed(now_ms())
            if listener not in self._failing:
                self._report("key_set_failed", listener=listener, reason=Line(found))
            self._failing.add(listener)
            return
        self._failing.discard(listener)
        if found is None:
            keys.unchanged(now_ms())
        else:
            keys.arrived(found, now_ms())
            self._report("key_set_fetched", listener=listener, keys=len(found))


_Brought: TypeAlias = tuple[VerificationKey, ...] | str | None
"""Keys; None: those that are in use; a text: why there are none."""


def _brought(source: KeySetSource) -> _Brought:
    try:
        data = source()
        return None if data is None else read_key_set(data)
    except (OSError, UnusableKeySet) as problem:
        return str(problem) or type(problem).__name__


def _start_source(keys: KeySet) -> KeySetSource:
    try:
        return key_set_source(keys.settings.url, keys.settings.trust_store)
    except UnusableStore as error:
        text = f"the trust store for the key set of listener {keys.listener}: {error}"
        raise StartError(text) from error
