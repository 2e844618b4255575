"""A server of key sets by HTTP, with good and bad answers: Python's `http.server`.

Each path is answered in its own way, or all of them as one. What was asked for is kept.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.node.security.tokens import EC, key_set, public

__all__ = ["ELSEWHERE", "KEYS", "LIMIT_BYTES", "KeyServer", "serving"]

KEYS = key_set(public(EC))
ELSEWHERE = "/keys?v=2"
"""Where ``/moved`` redirects to."""
LIMIT_BYTES = 1 << 20
"""A node takes so many bytes of a key set, and not one more."""
_STEP_S = 1.0


class KeyServer(ThreadingHTTPServer):
    """Gives its keys at every path that begins with ``/keys``."""

    daemon_threads = True

    def __init__(self, keys: bytes, context: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.keys = keys
        self.asked: list[str] = []
        self.answers_as = ""
        """The path that all requests are answered as; empty: each as its own."""
        self.scheme = "http" if context is None else "https"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def address(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: KeyServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        keys = self.server.keys
        match self.server.answers_as or self.path:
            case path if path.startswith("/keys"):
                self._send(200, keys)
            case "/moved":
                self._send(302, b"", Location=ELSEWHERE)
            case "/to-a-file":
                self._send(307, b"", Location="file:///etc/passwd")
            case "/to-the-link":
                self._send(301, b"", Location="http://169.254.169.254/latest/meta-data/")
            case "/largest":
                self._send(200, keys.ljust(LIMIT_BYTES))
            case "/large":
                self._send(200, b" " * (LIMIT_BYTES + 1))
            case "/endless":
                self._go_on(b" " * 65_536, 0.0)
            case "/slow":
                self._go_on(b" ", _STEP_S)
            case _:
                self._send(500, b"broken")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _go_on(self, piece: bytes, pause_s: float) -> None:
        """Send the same again and again, until the other side ends it."""
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(piece)
                time.sleep(pause_s)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving(context: ssl.SSLContext | None = None, keys: bytes = KEYS) -> Iterator[KeyServer]:
    """Serve on a port of this machine, by TLS where there is a context."""
    with KeyServer(keys, context) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
