"""Key sets of signed tokens (RFC 7517) as bytes: out of a file, or from a server by HTTP.

A fetch blocks its thread, and is bounded (`bounded_http`). A file is read only if it has changed.
"""

import ssl
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from kraft_wire.keystores.bounded_http import ANSWER_BYTES_MAX, HttpServer, UnusableAnswer
from kraft_wire.keystores.loading import load_trust
from kraft_wire.keystores.store import Store

__all__ = ["KeySetSource", "UnusableKeySet", "key_set_source"]

KeySetSource: TypeAlias = Callable[[], bytes | None]
"""Returns a key set, None if it has not changed; raises OSError and UnusableKeySet."""


class UnusableKeySet(Exception):
    """A key set cannot be used; the text is one line."""


def key_set_source(url: str, trust_store: Store | None = None) -> KeySetSource:
    """Return where a key set comes from; an https server is trusted by the store.

    Errors: UnusableStore.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _File(Path(url2pathname(parts.path))).fetch
    context = None
    if parts.scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if trust_store is None:
            context.load_default_certs()
        else:
            load_trust(context, trust_store)
    return _Server(HttpServer(url, context)).fetch


class _File:
    """A key set in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None

    def fetch(self) -> bytes | None:
        found = self._path.stat()
        seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if seen == self._seen:
            return None
        with self._path.open("rb") as file:
            data = _bounded(file.read(ANSWER_BYTES_MAX + 1))
        self._seen = seen
        return data


class _Server:
    """A key set behind HTTP or HTTPS."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server

    def fetch(self) -> bytes | None:
        try:
            answer = self._server.ask("GET", {"Accept": "application/json"})
        except UnusableAnswer as error:
            raise UnusableKeySet(str(error)) from error
        if answer.status != HTTPStatus.OK:
            raise UnusableKeySet(f"the server answers with status {answer.status}")
        return answer.body


def _bounded(data: bytes) -> bytes:
    if len(data) > ANSWER_BYTES_MAX:
        raise UnusableKeySet(f"it has more than {ANSWER_BYTES_MAX} bytes")
    return data
