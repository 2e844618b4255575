"""Key sets of signed tokens (RFC 7517) as bytes: out of a file, or from a server by HTTP.

A fetch blocks its thread. It is bounded in bytes and in time, follows no redirect, and goes only to
the address that it was given. A file is read only if it has changed.
"""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Timer
from typing import Final, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from kraft_wire.keystores.loading import load_trust
from kraft_wire.keystores.store import Store

__all__ = ["KeySetSource", "UnusableKeySet", "key_set_source"]

KeySetSource: TypeAlias = Callable[[], bytes | None]
"""Returns a key set, None if it has not changed; raises OSError and UnusableKeySet."""

_BYTES_MAX: Final = 1 << 20
_STEP_SECONDS: Final = 5.0
_TOTAL_SECONDS: Final = 10.0
_OK: Final = 200


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
        context = ssl.create_default_context()
        if trust_store is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            load_trust(context, trust_store)
    target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    assert parts.hostname is not None, "the settings have been checked"
    return _Server(parts.hostname, parts.port, target, context).fetch


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
            data = _bounded(file.read(_BYTES_MAX + 1))
        self._seen = seen
        return data


class _Server:
    """A key set behind HTTP or HTTPS."""

    def __init__(
        self, host: str, port: int | None, target: str, context: ssl.SSLContext | None
    ) -> None:
        self._host, self._port, self._target, self._context = host, port, target, context

    def fetch(self) -> bytes | None:
        connection = self._connection()
        deadline = Timer(_TOTAL_SECONDS, _cut, [connection])
        deadline.daemon = True
        deadline.start()
        try:
            connection.request("GET", self._target, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            if answer.status != _OK:
                raise UnusableKeySet(f"the server answers with status {answer.status}")
            data = _bounded(answer.read(_BYTES_MAX + 1))
            if answer.length:
                raise UnusableKeySet("the server's answer ends too early")
            return data
        except HTTPException as error:
            raise UnusableKeySet(f"the server's answer is none: {type(error).__name__}") from error
        except UnicodeError as error:
            raise UnusableKeySet(f"{self._host} is not a host name") from error
        finally:
            deadline.cancel()
            connection.close()

    def _connection(self) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=_STEP_SECONDS)
        return HTTPSConnection(self._host, self._port, timeout=_STEP_SECONDS, context=self._context)


def _cut(connection: HTTPConnection) -> None:
    """End a fetch that takes too long, in whatever it waits for."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _bounded(data: bytes) -> bytes:
    if len(data) > _BYTES_MAX:
        raise UnusableKeySet(f"it has more than {_BYTES_MAX} bytes")
    return data
