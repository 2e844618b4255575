"""Key sets as the host brings them: from a file that changes, and from servers of every temper.

The servers are Python's `http.server` and raw sockets; certificates are OpenSSL's.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kraft_wire.keystores import bounded_http
from kraft_wire.keystores.key_sets import UnusableKeySet, key_set_source
from kraft_wire.keystores.store import Store
from kraft_wire.node.security.oauth.signatures import read_key_set
from tests.certificates import Authority
from tests.node.security.tokens import EC, key_set, public

KEYS = key_set(public(EC))


class Answers(BaseHTTPRequestHandler):
    """Answers each path in its own way."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked: list[str] = self.server.asked  # type: ignore[attr-defined]  # set by `serving`
        asked.append(self.path)
        match self.path:
            case "/keys?v=1":
                self._send(200, KEYS)
            case "/moved":
                self._send(302, b"", Location="/keys?v=1")
            case "/elsewhere":
                self._send(307, b"", Location="file:///etc/passwd")
            case "/largest":
                self._send(200, KEYS.ljust(1 << 20))
            case "/large":
                self._send(200, b" " * ((1 << 20) + 1))
            case "/endless":
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    while True:
                        self.wfile.write(b" " * 65_536)
            case _:
                self._send(500, b"broken")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a server, and the paths that it is asked for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        asked: list[str] = []
        server.asked = asked  # type: ignore[attr-defined]  # read by `Answers`
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        scheme = "http" if context is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def fetched(url: str, trust_store: Store | None = None) -> bytes | None:
    return key_set_source(url, trust_store)()


def test_a_key_set_comes_from_a_server() -> None:
    """SEC-OAUTH-07: by http, with its query."""
    with serving() as (address, asked):
        assert fetched(f"{address}/keys?v=1") == KEYS
        assert fetched(f"{address}/largest") == KEYS.ljust(1 << 20), "the limit itself is allowed"
        assert asked == ["/keys?v=1", "/largest"]


def test_a_server_is_believed_by_its_certificate(tmp_path: Path) -> None:
    """SEC-OAUTH-07: by https, trusted by the store of the login entry, and by nothing else."""
    authority = Authority(tmp_path / "own")
    other = Authority(tmp_path / "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = authority.signed("server")
    context.load_cert_chain(certificate.chain, certificate.key)
    with serving(context) as (address, asked):
        url = f"{address}/keys?v=1"
        trusted = Store(str(authority.trusted), is_pem=True)
        assert fetched(url, trust_store=trusted) == KEYS
        for store in (None, Store(str(other.trusted), is_pem=True)):
            with pytest.raises(ssl.SSLError):
                fetched(url, trust_store=store)
        assert asked == ["/keys?v=1"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/moved", "status 302"),
        ("/elsewhere", "status 307"),
        ("/large", "more than 1048576 bytes"),
        ("/endless", "more than 1048576 bytes"),
        ("/none", "status 500"),
    ],
)
def test_other_answers_give_no_keys(path: str, reason: str) -> None:
    """SEC-OAUTH-07: no redirect is followed, and memory is bounded."""
    with serving() as (address, asked):
        with pytest.raises(UnusableKeySet, match=reason):
            fetched(address + path)
        assert asked == [path]


@pytest.mark.parametrize(
    "said", [b"", b"nothing of HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123"]
)
def test_servers_that_do_not_speak_http_give_no_keys(said: bytes) -> None:
    """SEC-OAUTH-07: an end before the whole answer is an error too."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            accepted, _ = server.accept()
            with accepted:
                accepted.recv(1000)
                accepted.sendall(said)

        Thread(target=answer, daemon=True).start()
        with pytest.raises((UnusableKeySet, ConnectionError)):
            fetched(f"http://127.0.0.1:{server.getsockname()[1]}/keys")


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"])
def test_a_slow_server_is_left_in_time(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-OAUTH-07: also one that sends a byte now and then."""
    monkeypatch.setattr(bounded_http, "_STEP_SECONDS", 30.0)
    monkeypatch.setattr(bounded_http, "_TOTAL_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def answer() -> None:
            held.append(server.accept()[0])
            held[0].sendall(said)

        answering = Thread(target=answer, daemon=True)
        answering.start()
        with pytest.raises((UnusableKeySet, OSError)) as left:
            fetched(f"http://127.0.0.1:{server.getsockname()[1]}/keys")
        assert not isinstance(left.value, TimeoutError), "the limit of the whole exchange ends it"
        answering.join()
        held[0].close()


def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    """SEC-OAUTH-07: only then; a file that is away or too large gives no keys."""
    file = tmp_path / "some keys.json"
    file.write_bytes(KEYS)
    fetch = key_set_source(file.as_uri())
    assert fetch() == KEYS
    assert fetch() is None
    other = tmp_path / "other"
    other.write_bytes(key_set())
    other.replace(file)
    found = fetch()
    assert found is not None
    assert len(read_key_set(found)) == 3
    file.unlink()
    with pytest.raises(FileNotFoundError):
        fetch()
    file.write_bytes(b" " * ((1 << 20) + 1))
    for attempt in (fetch, partial(fetched, f"file:{other.parent}/some%20keys.json")):
        with pytest.raises(UnusableKeySet, match="more than"):
            attempt()


def test_a_label_that_is_too_long_is_no_host_name() -> None:
    """RFC 1035: a label has 63 octets at most; Python's resolver raises a UnicodeError."""
    host = f"{'a' * 64}.example"
    with pytest.raises(UnusableKeySet, match=f"^{host} is not a host name$"):
        key_set_source(f"http://{host}/keys")()
