"""Stores of keytool: read, used by OpenSSL, and refused with one line that shows no secret."""

from __future__ import annotations

import hashlib
import os
import ssl
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kraft_wire.keystores.jks import jks_identity, jks_trusted
from kraft_wire.keystores.loading import load_identity, load_trust
from kraft_wire.keystores.reading import identity_of, trusted_of
from kraft_wire.keystores.store import Store, UnusableStore
from tests.certificates import Authority
from tests.keystores.java_stores import PASSWORD, pkcs12_of
from tests.keystores.recorded import CERTIFICATE, KEY_PASSWORD, STORE_PASSWORD, written


def store(file: Path, password: str | None = STORE_PASSWORD) -> Store:
    return Store(str(file), is_pem=False, password=password)


def key_password(name: str) -> str | None:
    return KEY_PASSWORD if name.endswith(".jks") else None


def certificate() -> str:
    """Return the recorded certificate's text without its line ends."""
    return "".join(CERTIFICATE.split())


def test_a_store_shows_no_secret() -> None:
    """A trace or an assertion may show it."""
    shown = repr(Store("/etc/own.jks", text="-----BEGIN PRIVATE KEY-----", password="hush"))
    assert "/etc/own.jks" in shown
    assert "hush" not in shown
    assert "PRIVATE" not in shown


@pytest.mark.parametrize("identity", ["identity.jks", "identity.p12"])
@pytest.mark.parametrize("trusted", ["trust.jks", "trust.p12"])
def test_openssl_speaks_with_the_stores(tmp_path: Path, identity: str, trusted: str) -> None:
    """SEC-TLS-10: a handshake between a key store and a trust store, in memory."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_identity(server, store(written(tmp_path, identity)), key_password(identity))
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_trust(client, store(written(tmp_path, trusted)))
    ends = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2)]
    hello = client.wrap_bio(*ends[0], server_hostname="localhost")
    answer = server.wrap_bio(*ends[1], server_side=True)
    for side in (hello, answer) * 2:
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
        ends[1][0].write(ends[0][1].read())
        ends[0][0].write(ends[1][1].read())
    found = hello.getpeercert()
    assert found is not None
    assert found["subject"] == ((("commonName", "recorded"),),)


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "identity.p12", "identity.jks"])
def test_certificates_are_those_that_keytool_exports(tmp_path: Path, name: str) -> None:
    """SEC-TLS-10: trusted entries, and the first certificate of a key."""
    found = trusted_of(store(written(tmp_path, name)))
    assert "".join(found.split()) == certificate()


@pytest.mark.parametrize(
    ("name", "password", "key", "words"),
    [
        ("identity.jks", "hunter2", None, "the password of the store is wrong, or the file is"),
        ("identity.p12", "hunter2", None, "the password of the store is wrong, or the file is"),
        ("identity.jks", STORE_PASSWORD, "hunter2", "the password of the key is wrong"),
        ("identity.jks", STORE_PASSWORD, None, "the password of the key is wrong"),
        ("identity.p12", STORE_PASSWORD, "hunter2", "the password of the key is wrong"),
        ("trust.jks", STORE_PASSWORD, None, "the store has 0 private keys, and needs one"),
        ("trust.p12", STORE_PASSWORD, None, "the store has 0 private keys, and needs one"),
        ("two.jks", STORE_PASSWORD, KEY_PASSWORD, "the store has 2 private keys, and needs one"),
    ],
)
def test_a_key_store_of_no_use_is_refused_with_its_file(
    tmp_path: Path, name: str, password: str, key: str | None, words: str
) -> None:
    """SEC-TLS-13: the line names the file and what is wrong, and no password."""
    file = written(tmp_path, name)
    with pytest.raises(UnusableStore) as refusal:
        identity_of(store(file, password), key)
    assert f"{file}: {words}" in str(refusal.value)
    for secret in ("hunter2", STORE_PASSWORD, KEY_PASSWORD):
        assert secret not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [("trust.p12", "the password of the store is not set"), ("trust.jks", "")],
)
def test_a_trust_store_without_its_password(tmp_path: Path, name: str, words: str) -> None:
    """SEC-TLS-11: JKS certificates are not encrypted, those of PKCS12 are."""
    file = written(tmp_path, name)
    if not words:
        assert "".join(trusted_of(store(file, None)).split()) == certificate()
        return
    with pytest.raises(UnusableStore, match=words):
        trusted_of(store(file, None))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bytes.fromhex("cececece") + b"\0" * 50, "stores of the type JCEKS are not supported"),
        (CERTIFICATE.encode(), "neither a JKS nor a PKCS12 store; of PEM files the type is PEM"),
        (b"", "neither a JKS nor a PKCS12 store"),
        (b"\x30\x03abc", "the file is damaged: it is not a PKCS12 store"),
        (bytes.fromhex("feedfeed00000009"), "the file is damaged: it ends within an entry"),
        (bytes.fromhex("feedfeed0000000900000000"), "the file is not a JKS store"),
        (bytes.fromhex("feedfeed0000000200000000"), "the file is damaged: its end is not a digest"),
        (
            bytes.fromhex("feedfeed000000020000000100000003") + b"\0" * 10,
            "the file is damaged: an entry has the tag 3",
        ),
    ],
)
def test_other_content_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    """SEC-TLS-10: by its first bytes."""
    file = tmp_path / "store"
    file.write_bytes(content)
    with pytest.raises(UnusableStore, match=words):
        trusted_of(store(file))


def test_a_store_cut_or_changed_anywhere_is_refused(tmp_path: Path) -> None:
    """SEC-TLS-10: every prefix, and every byte changed, with the one declared error."""
    whole = written(tmp_path, "identity.jks").read_bytes()
    for size in range(4, len(whole)):
        with pytest.raises(UnusableStore):
            jks_identity(whole[:size], STORE_PASSWORD, KEY_PASSWORD)
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 0x41
        with pytest.raises(UnusableStore):
            jks_identity(bytes(changed), STORE_PASSWORD, KEY_PASSWORD)


def test_without_a_password_a_changed_alias_is_not_noticed(tmp_path: Path) -> None:
    """SEC-TLS-11: nothing but the digest at the end shows such a change, in Java too."""
    whole = bytearray(written(tmp_path, "trust.jks").read_bytes())
    whole[whole.index(b"trusted")] ^= 1
    assert len(jks_trusted(bytes(whole), None)) == 1
    with pytest.raises(UnusableStore):
        jks_trusted(bytes(whole), STORE_PASSWORD)


def test_a_missing_package_is_one_line_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-TLS-10: PKCS12 needs the extra `security`; JKS and PEM do not."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UnusableStore, match=r"needs the package cryptography; install: .*pip inst"):
        trusted_of(store(written(tmp_path, "trust.p12")))
    assert trusted_of(store(written(tmp_path, "trust.jks")))


class Watched(ssl.SSLContext):
    """A context that notes the file of a key: its name, and who may read it and its folder."""

    def load_cert_chain(self, certfile: str, *_: object, **named: object) -> None:  # type: ignore[override]  # called so
        self.path = Path(certfile)
        self.modes = [each.stat().st_mode & 0o777 for each in (self.path, self.path.parent)]
        super().load_cert_chain(certfile, password="")


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_key_is_on_no_disk_or_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_memory_files: bool
) -> None:
    """SEC-TLS-13: in a file in memory; else in a folder of this user's, which is removed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "private"))
    (tmp_path / "private").mkdir()
    if not has_memory_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    context = Watched(ssl.PROTOCOL_TLS_SERVER)
    load_identity(context, store(written(tmp_path, "identity.jks")), KEY_PASSWORD)
    if has_memory_files and sys.platform == "linux":
        assert context.path.parent == Path("/proc/self/fd")
    else:
        assert context.modes == [0o600, 0o700]
        assert context.path.is_relative_to(tmp_path / "private")
    assert not context.path.exists()
    assert list((tmp_path / "private").iterdir()) == []


def test_what_completes_a_chain_is_not_trusted(tmp_path: Path) -> None:
    """SEC-TLS-10: of a PKCS12 store with a key, its own certificate, as Java does."""
    authority = Authority(tmp_path / "ca")
    signed = authority.signed("server")
    file = pkcs12_of(tmp_path, signed, authority.trusted)
    pem, password = identity_of(store(file), None)
    assert (pem.count(b"BEGIN CERTIFICATE"), password) == (2, "")
    found = trusted_of(store(file))
    assert "".join(found.split()) == "".join(signed.chain.read_text().split())


def test_a_file_without_end_is_no_store() -> None:
    """SEC-TLS-10: reading is bounded."""
    with pytest.raises(UnusableStore, match="/dev/zero: the file is too large for a store"):
        trusted_of(store(Path("/dev/zero")))


def test_key_without_a_certificate_makes_nobody_trusted() -> None:
    """Java trusts the first certificate of a chain; this chain has none."""
    head = struct.pack(">4sIII", b"\xfe\xed\xfe\xed", 2, 1, 1)
    entry = struct.pack(">H1sQI3sI", 1, b"a", 0, 3, b"key", 0)
    assert jks_trusted(head + entry + bytes(20), None) == ()


def jks_of(protected: bytes) -> bytes:
    """Return a JKS store of one key, with its digest."""
    head = struct.pack(">4sIII", b"\xfe\xed\xfe\xed", 2, 1, 1)
    entry = struct.pack(">H1sQI", 1, b"a", 0, len(protected)) + protected + struct.pack(">I", 0)
    secret = STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return head + entry + hashlib.sha1(secret + head + entry).digest()


@pytest.mark.parametrize(
    ("protected", "words"),
    [
        (b"", "its key has no known form"),
        (b"\x30\x02\x30\x00", "its key has no known form"),
        (b"\x30\x05\x04\x03abc", "its key has no known form"),
        (
            bytes.fromhex("3012300d06092a864886f70d010503050004 01aa".replace(" ", "")),
            "the key is not protected as those of JKS stores are",
        ),
    ],
)
def test_a_key_of_another_protection_is_refused(
    tmp_path: Path, protected: bytes, words: str
) -> None:
    """JavaKeyStore reads keys of its own protection alone; the digest of the store is right."""
    file = tmp_path / "store.jks"
    file.write_bytes(jks_of(protected))
    with pytest.raises(UnusableStore, match=words):
        identity_of(store(file), KEY_PASSWORD)


def test_certificates_that_openssl_cannot_read_are_refused(tmp_path: Path) -> None:
    """SEC-TLS-13: with the reason, for keys and for what is trusted."""
    damaged = CERTIFICATE.replace("MII", "AAA", 1)
    trusted = Store(text=damaged)
    with pytest.raises(UnusableStore, match=r"^the trust store cannot be used: "):
        load_trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trusted)
    for nothing in ("", "no certificate"):
        with pytest.raises(UnusableStore, match=r"^the trust store has no certificate$"):
            load_trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), Store(text=nothing))
    with pytest.raises(UnusableStore, match=r"^the key store cannot be used: "):
        load_identity(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), trusted, None)


def test_a_key_without_its_certificate_is_no_identity(tmp_path: Path) -> None:
    """A PKCS12 store of which the certificate is another key's, as `-nocerts` makes it."""
    signed = Authority(tmp_path).signed("node")
    file = tmp_path / "bare.p12"
    command = ["openssl", "pkcs12", "-export", "-nocerts", "-inkey", str(signed.key)]
    made = subprocess.run([*command, "-out", str(file), "-passout", f"pass:{STORE_PASSWORD}"])
    assert made.returncode == 0
    with pytest.raises(UnusableStore, match="the private key has no certificate"):
        identity_of(store(file), None)
    with pytest.raises(UnusableStore, match="the trust store has no certificate"):
        trusted_of(store(file))


def test_an_issuer_of_the_same_name_with_another_key_completes_no_chain(tmp_path: Path) -> None:
    """Names prove nothing: the chain that a node shows has only those who have signed."""
    own, other = Authority(tmp_path / "own"), Authority(tmp_path / "other")
    signed = own.signed("node")
    file = pkcs12_of(tmp_path, signed, other.trusted)
    pem, _ = identity_of(store(file, PASSWORD), None)
    assert pem.count(b"BEGIN CERTIFICATE") == 1
    own_chain, _ = identity_of(store(pkcs12_of(tmp_path, signed, own.trusted), PASSWORD), None)
    assert own_chain.count(b"BEGIN CERTIFICATE") == 2
