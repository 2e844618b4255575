"""One exchange with a server by HTTP or HTTPS, bounded in bytes and in time.

It blocks its thread, follows no redirect, and goes only to the address that it was given.
"""

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Event, Timer
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
        with closing(self._connection()) as connection:
            try:
                connection.connect()
                with _bounded_in_time(connection.sock):
                    connection.request(method, self._target, body, dict(headers))
                    answer = _read(connection.getresponse())
                return answer
            except HTTPException as error:
                name = type(error).__name__
                raise UnusableAnswer(f"the server's answer is none: {name}") from error
            except UnicodeError as error:
                raise UnusableAnswer(f"{self._host} is not a host name") from error

    def _connection(self) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=_STEP_SECONDS)
        return HTTPSConnection(self._host, self._port, timeout=_STEP_SECONDS, context=self._context)


def _read(answer: HTTPResponse) -> HttpAnswer:
    """Read the body, as far as it may go."""
    data = answer.read(ANSWER_BYTES_MAX + 1)
    if len(data) > ANSWER_BYTES_MAX:
        raise UnusableAnswer(f"it has more than {ANSWER_BYTES_MAX} bytes")
    if answer.length:
        raise UnusableAnswer("the server's answer ends too early")
    return HttpAnswer(answer.status, data)


@contextmanager
def _bounded_in_time(line: socket.socket) -> Iterator[None]:
    """End an exchange that takes too long, in whatever it waits for; what came is then dropped.

    The socket is passed, as an `HTTPConnection` lets go of its own when a body ends with the line.
    """
    is_over = Event()

    def end() -> None:
        is_over.set()
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    deadline = Timer(_TOTAL_SECONDS, end)
    deadline.daemon = True
    deadline.start()
    try:
        yield
    except (OSError, HTTPException, UnusableAnswer):
        if not is_over.is_set():
            raise
    finally:
        deadline.cancel()
    if is_over.is_set():
        raise UnusableAnswer(f"the server's answer takes more than {_TOTAL_SECONDS:g} s")
