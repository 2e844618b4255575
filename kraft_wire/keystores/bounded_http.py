"""One exchange with a server by HTTP or HTTPS, bounded in bytes and in time.

It blocks its thread, follows no redirect, and goes only to the address that it was given.
"""

import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Timer
from typing import Final, NamedTuple
from urllib.parse import urlsplit

__all__ = ["ANSWER_BYTES_MAX", "HttpAnswer", "HttpServer", "UnusableAnswer"]

ANSWER_BYTES_MAX: Final = 1 << 20
_STEP_SECONDS: Final = 5.0
_TOTAL_SECONDS: Final = 10.0


class UnusableAnswer(Exception):
    """A server does not answer as it should; the text is one line."""


class HttpAnswer(NamedTuple):
    """An answer of any status."""

    status: int
    body: bytes


class HttpServer:
    """The server of one address."""

    def __init__(self, url: str, context: ssl.SSLContext | None) -> None:
        """`url` is of http or https and has a host; `context` is for https."""
        parts = urlsplit(url)
        assert parts.hostname is not None, "the settings have been checked"
        self._host, self._port = parts.hostname, parts.port
        self._target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        self._context = context if parts.scheme == "https" else None

    def ask(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> HttpAnswer:
        """Send a request, and return the answer. Errors: OSError, UnusableAnswer."""
        connection = self._connection()
        deadline = Timer(_TOTAL_SECONDS, _cut, [connection])
        deadline.daemon = True
        deadline.start()
        try:
            connection.request(method, self._target, body, dict(headers))
            answer = connection.getresponse()
            data = answer.read(ANSWER_BYTES_MAX + 1)
            if len(data) > ANSWER_BYTES_MAX:
                raise UnusableAnswer(f"it has more than {ANSWER_BYTES_MAX} bytes")
            if answer.length:
                raise UnusableAnswer("the server's answer ends too early")
            return HttpAnswer(answer.status, data)
        except HTTPException as error:
            raise UnusableAnswer(f"the server's answer is none: {type(error).__name__}") from error
        except UnicodeError as error:
            raise UnusableAnswer(f"{self._host} is not a host name") from error
        finally:
            deadline.cancel()
            connection.close()

    def _connection(self) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=_STEP_SECONDS)
        return HTTPSConnection(self._host, self._port, timeout=_STEP_SECONDS, context=self._context)


def _cut(connection: HTTPConnection) -> None:
    """End an exchange that takes too long, in whatever it waits for."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
