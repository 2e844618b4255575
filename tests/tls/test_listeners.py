"""A listener that speaks TLS, as OpenSSL's client and the openssl program see it.

Certificates are of `tests/certificates.py`; the clients are Python's `ssl` and raw sockets.
"""

import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kraft_wire.keystores.loading import load_identity
from kraft_wire.keystores.store import Store
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header
from kraft_wire.wire.message import Message
from tests.certificates import Authority
from tests.keystores.java_stores import pkcs12_of
from tests.keystores.recorded import KEY_PASSWORD, STORE_PASSWORD, written
from tests.ports import free_port
from tests.server_process import ServerProcess
from tests.tls.key_updates import KeyUpdater
from tests.waiting import HANG_S, until

HANDSHAKE_S = 2
STALLED_S = 1.0
UNBOUNDED_BYTES = 32 << 20
"""More than the sockets of both sides hold."""


class TlsNode(ServerProcess):
    """A node with a listener in plain text and one that speaks TLS."""

    def __init__(self, directory: Path, authority: Authority, **settings: str) -> None:
        super().__init__(directory)
        self.tls_port, self.plain_port = free_port(), free_port()
        self.overrides = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.plain_port},TLS://127.0.0.1:{self.tls_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(authority.signed("server").store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.trusted),
            "connection.handshake.timeout.ms": str(HANDSHAKE_S * 1000),
            **{key.replace("_", "."): value for key, value in settings.items()},
        }

    def rejections(self, reason: str) -> list[str]:
        """Return the log lines of a refusal."""
        return [line for line in self.log.read_text().splitlines() if f"reason={reason}" in line]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def node(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsNode]:
    with TlsNode(tmp_path_factory.mktemp("node"), authority, ssl_client_auth="requested") as node:
        yield node


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.trusted))


def opened(port: int, context: ssl.SSLContext | None = None) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
    return sock if context is None else context.wrap_socket(sock, server_hostname="127.0.0.1")


def ask(sock: socket.socket, request: Message, version: int) -> bytes:
    """Send a request and return its whole answer."""
    header = RequestHeader(request.API_KEY, version, 1, "c")
    payload = encode_request_header(header) + request.encode(version)
    sock.sendall(struct.pack(">i", len(payload)) + payload)
    size = int.from_bytes(exactly(sock, 4), "big")
    return exactly(sock, size)


def exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        assert more, "the connection ended"
        data += more
    return data


def rest(sock: socket.socket) -> bytes:
    """Return everything until the end."""
    data = b""
    with suppress(ConnectionError):
        while more := sock.recv(4096):
            data += more
    return data


VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_today_are_spoken(
    node: TlsNode, authority: Authority, version: ssl.TLSVersion
) -> None:
    """SEC-TLS-01, SEC-TLS-03: from the first byte, TLS 1.2 and 1.3 by default."""
    context = trusting(authority)
    context.minimum_version = context.maximum_version = version
    with opened(node.tls_port, context) as sock:
        assert isinstance(sock, ssl.SSLSocket)
        assert sock.version() == {771: "TLSv1.2", 772: "TLSv1.3"}[version]
        assert len(ask(sock, VERSIONS, 3)) > 100
        assert len(ask(sock, MetadataRequest(topics=[]), 9)) > 20
        if version is ssl.TLSVersion.TLSv1_3:
            assert sock.session is not None
            assert not sock.session.has_ticket, "none are sent"


def test_many_requests_in_one_record_and_one_request_in_many(
    node: TlsNode, authority: Authority
) -> None:
    """SEC-TLS-01: where records end is of no matter."""
    header = RequestHeader(3, 9, 1, "c")
    payload = encode_request_header(header) + MetadataRequest(topics=[]).encode(9)
    frame = struct.pack(">i", len(payload)) + payload
    with opened(node.tls_port, trusting(authority)) as sock:
        one = ask(sock, MetadataRequest(topics=[]), 9)
        sock.sendall(frame * 200)
        assert exactly(sock, 200 * (4 + len(one))) == (struct.pack(">i", len(one)) + one) * 200
        for byte in frame:
            sock.sendall(bytes([byte]))
        assert exactly(sock, 4 + len(one))[4:] == one


def test_tls_of_old_is_refused(node: TlsNode, authority: Authority) -> None:
    """SEC-TLS-03: an alert."""
    context = trusting(authority)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match="protocol version"):
        opened(node.tls_port, context)


@pytest.mark.parametrize(
    "data", [b"\0\0\0\x12\0\x12\0\0\0\0\0\x01\xff\xff", b"GET / HTTP/1.1\r\n\r\n"]
)
def test_plain_bytes_on_a_tls_listener_get_an_alert_and_a_line(node: TlsNode, data: bytes) -> None:
    """SEC-TLS-01, SEC-TLS-24: fatal, closed at once."""
    before = len(node.rejections("tls_handshake_failed"))
    with opened(node.tls_port) as sock:
        sock.sendall(data)
        answer = rest(sock)
    assert answer[:1] == b"\x15", answer
    assert answer[5:6] == b"\x02", "a fatal alert"
    until(lambda: len(node.rejections("tls_handshake_failed")) > before)


def test_tls_on_a_plain_listener_is_closed_with_a_line(node: TlsNode, authority: Authority) -> None:
    """SEC-TLS-01: the line says what is wrong."""
    with pytest.raises((ssl.SSLError, ConnectionError)):
        opened(node.plain_port, trusting(authority))
    until(lambda: node.rejections("tls_on_a_plain_listener"))


def test_clients_with_a_certificate_of_no_use_are_refused(
    node: TlsNode, authority: Authority, tmp_path: Path
) -> None:
    """SEC-TLS-07: where one is only requested, none is fine, and a bad one is none."""
    stranger = Authority(tmp_path / "stranger", "stranger").signed("ann")
    expired = authority.signed("late", is_expired=True)
    for each, words in ((stranger, "unknown ca"), (expired, "certificate expired")):
        context = trusting(authority)
        context.load_cert_chain(each.chain, each.key)
        with pytest.raises(ssl.SSLError, match=words), opened(node.tls_port, context) as sock:
            ask(sock, VERSIONS, 3)


def test_who_must_show_a_certificate_and_has_none_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    """SEC-TLS-05, SEC-TLS-07: required."""
    with TlsNode(tmp_path, authority, ssl_client_auth="required") as node:
        with pytest.raises(ssl.SSLError), opened(node.tls_port, trusting(authority)) as sock:
            ask(sock, VERSIONS, 3)
        own = authority.signed("known")
        context = trusting(authority)
        context.load_cert_chain(own.chain, own.key)
        with opened(node.tls_port, context) as sock:
            assert ask(sock, VERSIONS, 3)


def test_a_name_that_no_rule_matches_is_refused(authority: Authority, tmp_path: Path) -> None:
    """SEC-TLS-16: closed, with the reason in the log."""
    rules = {"ssl_principal_mapping_rules": "RULE:^CN=known.*$/known/"}
    with TlsNode(tmp_path, authority, ssl_client_auth="required", **rules) as node:
        for name, is_known in (("known", True), ("unknown", False)):
            own = authority.signed(name)
            context = trusting(authority)
            context.load_cert_chain(own.chain, own.key)
            with opened(node.tls_port, context) as sock:
                if is_known:
                    assert ask(sock, VERSIONS, 3)
                else:
                    assert rest(sock) == b""
        lines = node.rejections("tls_handshake_failed")
        assert any("ssl.principal.mapping.rules" in line for line in lines)


def test_a_handshake_that_stalls_ends_and_harms_nobody(node: TlsNode, authority: Authority) -> None:
    """SEC-TLS-19: half a ClientHello is closed by the deadline; others are served meanwhile."""
    stalled = [opened(node.tls_port) for _ in range(50)]
    for sock in stalled:
        sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
    began = time.monotonic()
    with opened(node.tls_port, trusting(authority)) as sock:
        assert ask(sock, VERSIONS, 3)
    for sock in stalled:
        with sock:
            rest(sock)
    assert time.monotonic() - began >= HANDSHAKE_S - 1
    until(lambda: node.rejections("handshake_timeout"))


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    ],
)
def test_suites_are_narrowed(authority: Authority, tmp_path: Path, suite: str, name: str) -> None:
    """SEC-TLS-04: one suite of TLS 1.2 is one suite; without any of 1.3 there is no 1.3."""
    with TlsNode(tmp_path, authority, ssl_cipher_suites=suite) as node:
        with opened(node.tls_port, trusting(authority)) as sock:
            assert isinstance(sock, ssl.SSLSocket)
            cipher = sock.cipher()
            assert cipher is not None
            assert (cipher[0], sock.version()) == (name, "TLSv1.2")
        context = trusting(authority)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
        with pytest.raises(ssl.SSLError):
            opened(node.tls_port, context)


def test_a_node_with_the_stores_of_java(authority: Authority, tmp_path: Path) -> None:
    """SEC-TLS-10: a PKCS12 key store and a JKS trust store, for a client with a certificate."""
    stores = {
        "ssl_keystore_type": "JKS",
        "ssl_keystore_location": str(pkcs12_of(tmp_path, authority.signed("server"))),
        "ssl_keystore_password": STORE_PASSWORD,
        "ssl_truststore_type": "PKCS12",
        "ssl_truststore_location": str(written(tmp_path, "trust.jks")),
        "ssl_truststore_password": STORE_PASSWORD,
        "ssl_client_auth": "required",
    }
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own.load_verify_locations(authority.trusted)
    recorded = Store(str(written(tmp_path, "identity.jks")), is_pem=False, password=STORE_PASSWORD)
    load_identity(own, recorded, KEY_PASSWORD)
    with TlsNode(tmp_path, authority, **stores) as node:
        with opened(node.tls_port, own) as sock:
            assert len(ask(sock, VERSIONS, 3)) > 100
        stranger = trusting(authority)
        signed = authority.signed("stranger")
        stranger.load_cert_chain(signed.chain, signed.key)
        with opened(node.tls_port, stranger) as sock, pytest.raises(ssl.SSLError):
            ask(sock, VERSIONS, 3)
        assert STORE_PASSWORD not in node.log.read_text()


def test_renegotiation_is_refused(node: TlsNode, authority: Authority) -> None:
    """SEC-TLS-18: by an alert to the openssl program, which asks for it with R; TLS 1.2 has it."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{node.tls_port}", "-tls1_2"]
    command += ["-CAfile", str(authority.trusted)]
    done = subprocess.run(
        command, input="R\n", capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert "RENEGOTIATING" in done.stderr + done.stdout
    assert "no renegotiation" in done.stderr
    assert done.returncode != 0


def accepted_bytes(sock: socket.socket, client: KeyUpdater) -> int:
    """Ask for key updates until the node receives no more; return about how many bytes it took."""
    sent_bytes = 0
    with suppress(TimeoutError):
        while sent_bytes < UNBOUNDED_BYTES:
            sock.sendall(updates := client.updates(1_000))
            sent_bytes += len(updates)
    return sent_bytes


def test_key_updates_of_a_client_that_takes_no_answer_are_bounded(
    authority: Authority, tmp_path: Path
) -> None:
    """RFC 8446, section 4.6.3: each update that is asked for is one to send, and would be held.

    The node stops to receive, so the sockets fill up; others are served meanwhile.
    """
    patient = {"connection_handshake_timeout_ms": str(int(HANG_S * 1000))}
    with TlsNode(tmp_path, authority, **patient) as node, opened(node.tls_port) as sock:
        for kind in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, kind, 16 * 1024)
        client = KeyUpdater(sock)
        sock.settimeout(STALLED_S)
        assert accepted_bytes(sock, client) < UNBOUNDED_BYTES
        with opened(node.tls_port, trusting(authority)) as other:
            assert len(ask(other, VERSIONS, 3)) > 100
