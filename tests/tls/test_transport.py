"""The transport between a socket and OpenSSL: bounded memory, names of clients, ends."""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_wire.keystores.store import Store
from kraft_wire.model import FileSlice
from kraft_wire.node.config.security import ListenerSecurity, TlsSettings
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.outputs import Peer
from kraft_wire.node.security.principal_rules import parse_principal_rules
from kraft_wire.tls.contexts import client_context, server_context
from kraft_wire.tls.encryption import encryption_of
from kraft_wire.tls.transport import TlsTransport
from tests.certificates import Authority, Certificate
from tests.waiting import HANG_S

HELD_MAX = 80 * 1024
"""Ciphertext of four records."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def settings(authority: Authority, store: Path, **changed: object) -> TlsSettings:
    made = {
        "key_store": Store(str(store)),
        "key_password": None,
        "trust_store": Store(str(authority.trusted)),
        "client_auth": "requested",
        "versions": ("TLSv1.2", "TLSv1.3"),
        "cipher_suites": (),
        "principal_rules": parse_principal_rules("DEFAULT"),
        "checks_host_name": True,
    }
    return TlsSettings(**(made | changed))  # type: ignore[arg-type]  # fields by name


class Pair:
    """Our side of a connection, and OpenSSL's client in a thread of its own."""

    def __init__(self, tls: TlsSettings, authority: Authority, own: Certificate | None) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.settimeout(HANG_S)
        self.peer = Peer(1, "h", 2, "L")
        encrypt = encryption_of({"L": ListenerSecurity("SSL", tls)})["L"]
        self.transport: TlsTransport = encrypt(ours, self.peer)
        context = ssl.create_default_context(cafile=str(authority.trusted))
        if own is not None:
            context.load_cert_chain(own.chain, own.key)
        self.client = context.wrap_socket(
            theirs, server_hostname="localhost", do_handshake_on_connect=False
        )

    def shake_hands(self) -> None:
        """Finish the handshake, and receive one byte."""
        thread = threading.Thread(
            target=lambda: (self.client.do_handshake(), self.client.send(b"x"))
        )
        thread.start()
        room = memoryview(bytearray(100))
        while True:
            try:
                assert self.transport.recv_into(room) == 1
                break
            except BlockingIOError:
                threading.Event().wait(0.001)
        thread.join()

    def close(self) -> None:
        self.transport.close()
        self.client.close()


@pytest.mark.parametrize(
    ("subject", "rules", "name"),
    [
        ("/O=Acme/OU=Dev/CN=ann", "DEFAULT", "CN=ann,OU=Dev,O=Acme"),
        ("/O=Acme, Inc/CN=a=b", "DEFAULT", "CN=a\\=b,O=Acme\\, Inc"),
        ("/DC=org/CN=Änn", "DEFAULT", "CN=Änn,DC=org"),
        ("/O=Acme/CN=Ann", "RULE:^CN=(.*?),.*$/$1/L,DEFAULT", "ann"),
        ("/emailAddress=a@b.c/CN=x", "DEFAULT", "CN=x,1.2.840.113549.1.9.1=#16056140622e63"),
    ],
)
def test_a_client_is_named_by_its_certificate(
    authority: Authority, subject: str, rules: str, name: str
) -> None:
    """SEC-TLS-14, SEC-TLS-15: texts as 4.3.1 was seen to write them."""
    server = authority.signed("server")
    tls = settings(authority, server.store, principal_rules=parse_principal_rules(rules))
    pair = Pair(tls, authority, authority.signed("client", subject=subject))
    pair.shake_hands()
    assert (pair.peer.principal.type, pair.peer.principal.name) == ("User", name)
    pair.close()


def test_without_a_certificate_a_client_is_anonymous(authority: Authority) -> None:
    """SEC-TLS-07: where one is only requested."""
    pair = Pair(settings(authority, authority.signed("server").store), authority, None)
    pair.shake_hands()
    assert pair.peer.principal.name == "ANONYMOUS"
    pair.close()


class LogFile:
    """A file that is larger than any memory."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        assert size_bytes <= HELD_MAX, "more is read than can be sent"
        return bytes(size_bytes)

    def fileno(self) -> int:
        raise AssertionError("no kernel sends this")


def test_a_large_answer_takes_no_more_memory_than_a_few_records(authority: Authority) -> None:
    """SEC-TLS-01: a client that reads nothing holds 80 KiB at the most, whatever is asked for."""
    pair = Pair(settings(authority, authority.signed("server").store), authority, None)
    pair.shake_hands()
    whole = FileSlice(LogFile(), 0, 1 << 40)
    sent = 0
    while not pair.transport.unsent_bytes:
        sent += pair.transport.sendfile(whole)
    assert pair.transport.unsent_bytes <= HELD_MAX
    with pytest.raises(BlockingIOError):
        pair.transport.sendfile(whole)
    assert pair.transport.unsent_bytes
    received = len(pair.client.recv(1000))
    while received < sent:
        with suppress(BlockingIOError):
            pair.transport.flush()
        received += len(pair.client.recv(1 << 20))
    assert pair.transport.unsent_bytes == 0
    pair.close()


@pytest.mark.parametrize(("head_bytes", "is_held"), [(75, True), (1024, True), (1025, False)])
def test_the_head_of_an_answer_leaves_with_what_follows(
    authority: Authority, head_bytes: int, is_held: bool
) -> None:
    """One wake-up of the client instead of two; what is held is short."""
    pair = Pair(settings(authority, authority.signed("server").store), authority, None)
    pair.shake_hands()
    head, rest = b"h" * head_bytes, b"r" * 500
    assert pair.transport.send([head], True) == len(head)
    assert (pair.transport.unsent_bytes > len(head)) is is_held
    assert pair.transport.send([rest], False) == len(rest)
    assert pair.transport.unsent_bytes == 0
    received = b""
    while len(received) < len(head + rest):
        received += pair.client.recv(10_000)
    assert received == head + rest
    pair.close()


def test_a_client_is_told_the_end(authority: Authority) -> None:
    """SEC-TLS-01: no truncation is taken for an end."""
    pair = Pair(settings(authority, authority.signed("server").store), authority, None)
    pair.shake_hands()
    pair.transport.close()
    assert pair.client.recv(10) == b""
    pair.client.close()


@pytest.mark.parametrize("sent", [b"", b"abc"])
def test_what_a_client_has_sent_comes_before_its_end(authority: Authority, sent: bytes) -> None:
    """RFC 8446, section 6.1: data before close_notify count; the end is seen by the next call."""
    pair = Pair(settings(authority, authority.signed("server").store), authority, None)
    pair.shake_hands()
    if sent:
        pair.client.send(sent)
    pair.client.settimeout(0.05)
    with suppress(OSError):
        pair.client.unwrap()  # the alert is sent, and no other one awaited
    room = memoryview(bytearray(100))
    if sent:
        assert pair.transport.recv_into(room) == len(sent)
        assert (bytes(room[:3]), pair.transport.has_pending) == (sent, True)
    assert pair.transport.recv_into(room) == 0
    pair.close()


def test_a_socket_that_ends_without_an_alert_is_an_end_too(authority: Authority) -> None:
    """A peer that was killed; what came before it was received."""
    pair = Pair(settings(authority, authority.signed("server").store), authority, None)
    pair.shake_hands()
    pair.client.shutdown(socket.SHUT_WR)
    assert pair.transport.recv_into(memoryview(bytearray(100))) == 0
    pair.close()


@pytest.mark.parametrize(
    ("suites", "lowest", "highest"),
    [
        ((), "TLSv1_2", "TLSv1_3"),
        (("TLS_AES_128_GCM_SHA256",), "TLSv1_3", "TLSv1_3"),
        (("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",), "TLSv1_2", "TLSv1_2"),
        (
            ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            "TLSv1_2",
            "TLSv1_3",
        ),
    ],
)
def test_suites_of_one_version_leave_no_other_version(
    authority: Authority, suites: tuple[str, ...], lowest: str, highest: str
) -> None:
    """SEC-TLS-04: Java negotiates no version of which no suite is enabled."""
    tls = settings(authority, authority.signed("server").store, cipher_suites=suites)
    context = server_context(tls, "L")
    versions = ssl.TLSVersion[lowest], ssl.TLSVersion[highest]
    assert (context.minimum_version, context.maximum_version) == versions


@pytest.mark.parametrize("context_of", [server_context, client_context])
def test_a_trust_store_is_trusted_and_nothing_else(
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    context_of: Callable[[TlsSettings, str], ssl.SSLContext],
) -> None:
    """The platform's authorities are for those that name no trust store."""
    other = Authority(tmp_path / "other", name="other authority")
    monkeypatch.setenv("SSL_CERT_FILE", str(other.trusted))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    tls = settings(authority, authority.signed("server").store)

    def trusted(store: Store | None) -> list[bytes]:
        return context_of(replace(tls, trust_store=store), "L").get_ca_certs(binary_form=True)

    (own,) = trusted(Store(str(authority.trusted)))
    (default,) = trusted(None)
    assert own != default


@pytest.mark.parametrize("context_of", [server_context, client_context])
def test_versions_may_be_listed_in_any_order(
    authority: Authority, context_of: Callable[[TlsSettings, str], ssl.SSLContext]
) -> None:
    store = authority.signed("server").store
    for versions in (("TLSv1.2", "TLSv1.3"), ("TLSv1.3", "TLSv1.2")):
        context = context_of(settings(authority, store, versions=versions), "L")
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
        assert context.maximum_version is ssl.TLSVersion.TLSv1_3


def test_links_verify_their_peer_and_its_name(authority: Authority) -> None:
    """Whatever a listener asks of its clients."""
    tls = settings(authority, authority.signed("server").store, client_auth="none")
    for checks_host_name in (True, False):
        context = client_context(replace(tls, checks_host_name=checks_host_name), "L")
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname is checks_host_name
    assert server_context(tls, "L").verify_mode is ssl.CERT_NONE


def test_inline_and_encrypted_stores_are_read(authority: Authority) -> None:
    """SEC-TLS-08, SEC-TLS-09: the same PEM as text; an encrypted key with its password."""
    plain, locked = authority.signed("plain"), authority.signed("locked", password="open")
    texts = Store(text=plain.store.read_text())
    server_context(settings(authority, plain.store, key_store=texts), "L")
    server_context(settings(authority, locked.store, key_password="open"), "L")


def test_stores_of_no_use_stop_the_start_with_a_line(authority: Authority, tmp_path: Path) -> None:
    """SEC-TLS-08: PKCS#8, one key, a chain, the right password; the line shows no secret."""
    good, locked = authority.signed("good"), authority.signed("shut", password="hunter2")
    pem = good.store.read_text()
    key = good.key.read_text()
    cases = {
        "No such file": None,
        "2 private keys": key + pem,
        "0 private keys": good.chain.read_text(),
        "no certificate": key,
        "convert it to PKCS#8": pem.replace("PRIVATE KEY", "EC PRIVATE KEY"),
        "ssl.key.password is not set": locked.store.read_text(),
        "cannot be used": pem.replace("M", "N"),
        "": authority.signed("other").key.read_text() + good.chain.read_text(),
    }
    for words, text in cases.items():
        store = tmp_path / "store.pem"
        store.unlink(missing_ok=True)
        if text is not None:
            store.write_text(text)
        with pytest.raises(StartError) as refusal:
            server_context(settings(authority, store), "L")
        assert words in str(refusal.value), refusal.value
        assert str(refusal.value).startswith("listener L cannot speak TLS: ")
    with pytest.raises(StartError) as refusal:
        server_context(settings(authority, locked.store, key_password="hunter3"), "L")
    assert "hunter" not in str(refusal.value)


def test_unknown_suites_stop_the_start(authority: Authority) -> None:
    """SEC-TLS-04: a name that is not known, or not secure."""
    tls = settings(authority, authority.signed("server").store, cipher_suites=("TLS_RSA_NULL",))
    with pytest.raises(StartError, match="TLS_RSA_NULL is not known"):
        server_context(tls, "L")


@pytest.mark.parametrize(("room_bytes", "pending"), [(9, True), (10, False), (11, False)])
def test_rest_of_a_record_is_pending_and_read_without_the_socket(
    authority: Authority, room_bytes: int, pending: bool
) -> None:
    """No event of the socket tells of bytes that OpenSSL has already read from it."""
    pair = Pair(settings(authority, authority.signed("server").store), authority, None)
    pair.shake_hands()
    pair.client.send(b"0123456789")
    room = memoryview(bytearray(room_bytes))
    count = pair.transport.recv_into(room)
    assert bytes(room[:count]) == b"0123456789"[:room_bytes]
    assert pair.transport.has_pending == pending
    if pending:
        assert pair.transport.recv_into(room) == 1
        assert (bytes(room[:1]), pair.transport.has_pending) == (b"9", False)
    pair.close()
