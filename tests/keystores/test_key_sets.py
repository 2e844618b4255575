"""Key sets as the host brings them: from a file that changes, and from good and bad servers.

The servers are those of `tests.key_server` and raw sockets; certificates are OpenSSL's.
"""

from __future__ import annotations

import socket
import ssl
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from kraft_wire.keystores import bounded_http
from kraft_wire.keystores.key_sets import UnusableKeySet, key_set_source
from kraft_wire.keystores.store import Store
from kraft_wire.node.security.oauth.signatures import read_key_set
from tests.certificates import Authority
from tests.key_server import KEYS, LIMIT_BYTES, serving
from tests.node.security.tokens import key_set


def fetched(url: str, trust_store: Store | None = None) -> bytes | None:
    return key_set_source(url, trust_store)()


def test_a_key_set_comes_from_a_server() -> None:
    """SEC-OAUTH-07: by http, with its query."""
    with serving() as server:
        address = server.address
        assert fetched(f"{address}/keys?v=1") == KEYS
        assert fetched(f"{address}/largest") == KEYS.ljust(LIMIT_BYTES), (
            "the limit itself is allowed"
        )
        assert server.asked == ["/keys?v=1", "/largest"]


def test_a_server_is_believed_by_its_certificate(tmp_path: Path) -> None:
    """SEC-OAUTH-07: by https, trusted by the store of the login entry, and by nothing else."""
    authority = Authority(tmp_path / "own")
    other = Authority(tmp_path / "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = authority.signed("server")
    context.load_cert_chain(certificate.chain, certificate.key)
    with serving(context) as server:
        url = f"{server.address}/keys?v=1"
        trusted = Store(str(authority.trusted), is_pem=True)
        assert fetched(url, trust_store=trusted) == KEYS
        for store in (None, Store(str(other.trusted), is_pem=True)):
            with pytest.raises(ssl.SSLError):
                fetched(url, trust_store=store)
        assert server.asked == ["/keys?v=1"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/moved", "status 302"),
        ("/to-a-file", "status 307"),
        ("/to-the-link", "status 301"),
        ("/large", "more than 1048576 bytes"),
        ("/endless", "more than 1048576 bytes"),
        ("/none", "status 500"),
    ],
)
def test_other_answers_give_no_keys(path: str, reason: str) -> None:
    """SEC-OAUTH-07: no redirect is followed, and memory is bounded."""
    with serving() as server:
        with pytest.raises(UnusableKeySet, match=reason):
            fetched(server.address + path)
        assert server.asked == [path]


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


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", id="a-head"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + KEYS, id="a-body-without-an-end"),
    ],
)
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
        with pytest.raises(UnusableKeySet, match=r"takes more than 0\.2 s"):
            fetched(f"http://127.0.0.1:{server.getsockname()[1]}/keys")
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
    file.write_bytes(b" " * (LIMIT_BYTES + 1))
    for attempt in (fetch, partial(fetched, f"file:{other.parent}/some%20keys.json")):
        with pytest.raises(UnusableKeySet, match="more than"):
            attempt()


def test_a_label_that_is_too_long_is_no_host_name() -> None:
    """RFC 1035: a label has 63 octets at most; Python's resolver raises a UnicodeError."""
    host = f"{'a' * 64}.example"
    with pytest.raises(UnusableKeySet, match=f"^{host} is not a host name$"):
        key_set_source(f"http://{host}/keys")()
