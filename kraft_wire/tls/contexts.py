"""TLS for listeners and for the node's own links: OpenSSL contexts from settings.

Stores are read once, when the node starts. Python passes a key to OpenSSL only by a file's name, so
a key in the properties is written to a file in memory, and never to a disk.
"""

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Final

from kraft_wire.node.config.security import PemStore, TlsSettings
from kraft_wire.node.disks.opening import StartError

__all__ = ["client_context", "server_context"]

_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----")
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.S)
_PKCS8: Final = (b"", b"ENCRYPTED ")
"""The forms of a key that Kafka takes."""
_TLS_1_3_SUITES: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
_TLS_1_2_SUITES: Final = {
    f"TLS_{exchange}_WITH_{cipher}": f"{exchange.replace('_', '-')}-{openssl}"
    for exchange in ("ECDHE_ECDSA", "ECDHE_RSA", "DHE_RSA")
    for cipher, openssl in (
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
"""OpenSSL's names by IANA's: suites with forward secrecy and authenticated encryption."""


def server_context(settings: TlsSettings, listener: str) -> ssl.SSLContext:
    """Return the context of a listener. Errors: StartError."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings, listener)
    context.verify_mode = _VERIFY[settings.client_auth]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 0
    return context


def client_context(settings: TlsSettings, listener: str) -> ssl.SSLContext:
    """Return the context of this node's connections to a listener. Errors: StartError."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings, listener)
    context.check_hostname = settings.checks_host_name
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _context(protocol: int, settings: TlsSettings, listener: str) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    versions = [_VERSIONS[name] for name in settings.versions]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    try:
        _load_key(context, settings)
        _load_trust(context, settings.trust_store)
        _choose_ciphers(context, settings.cipher_suites)
    except (OSError, ValueError) as error:  # ssl's errors are of both kinds
        reason = getattr(error, "strerror", None) or error
        raise StartError(f"listener {listener} cannot speak TLS: {reason}") from error
    return context


def _load_key(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.key_store is None:
        return
    pem = _read(settings.key_store)
    kinds = _KEY.findall(pem)
    if len(kinds) != 1:
        raise ValueError(f"the key store has {len(kinds)} private keys, and needs one")
    if kinds[0] not in _PKCS8:
        form = kinds[0].decode().strip()
        raise ValueError(f"the private key has the form of {form}; convert it to PKCS#8")
    if kinds[0] and settings.key_password is None:
        raise ValueError("the private key is encrypted, and ssl.key.password is not set")
    if not _CERTIFICATE.search(pem):
        raise ValueError("the key store has no certificate")
    with _named(pem) as path:
        try:
            context.load_cert_chain(path, password=settings.key_password or "")
        except ssl.SSLError as error:
            raise ValueError(f"the key store cannot be used: {_words(error)}") from error


def _load_trust(context: ssl.SSLContext, store: PemStore | None) -> None:
    if store is None:
        is_server = context.protocol == ssl.PROTOCOL_TLS_SERVER
        context.load_default_certs(
            ssl.Purpose.CLIENT_AUTH if is_server else ssl.Purpose.SERVER_AUTH
        )
        return
    certificates = _CERTIFICATE.findall(_read(store))
    if not certificates:
        raise ValueError("the trust store has no certificate")
    try:
        context.load_verify_locations(cadata="\n".join(each.decode() for each in certificates))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError(f"the trust store cannot be used: {_words(error)}") from error


def _choose_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    """Allow these suites of TLS 1.2; those of 1.3 can only be allowed or forbidden together."""
    old = [name for name in names if name not in _TLS_1_3_SUITES]
    for name in old:
        if name not in _TLS_1_2_SUITES:
            raise ValueError(f"ssl.cipher.suites: {name} is not known, or not secure")
    if old:
        context.set_ciphers(":".join(_TLS_1_2_SUITES[name] for name in old))
    if names and not old:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    elif names and len(old) == len(names):
        context.maximum_version = ssl.TLSVersion.TLSv1_2


def _read(store: PemStore) -> bytes:
    if store.location is None:
        assert store.text is not None, "a store is a file or a text"
        return store.text.encode()
    try:
        with open(store.location, "rb") as file:
            return file.read()
    except OSError as error:
        raise ValueError(f"{store.location}: {error.strerror or error}") from error


@contextmanager
def _named(pem: bytes) -> Iterator[str]:
    """Yield the name of a file with these bytes, in memory if the system supports it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("key")
        try:
            os.write(descriptor, pem)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with NamedTemporaryFile(suffix=".pem") as file:
            file.write(pem)
            file.flush()
            yield file.name


def _words(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
