"""TLS for listeners and for the node's own links: OpenSSL contexts from settings.

Stores are read once, when the node starts (`keystores`).
"""

import re
import ssl
from typing import Final

from kraft_wire.keystores.loading import load_identity, load_trust
from kraft_wire.keystores.reading import CERTIFICATE, identity_of
from kraft_wire.keystores.store import Store
from kraft_wire.node.config.security import TlsSettings
from kraft_wire.node.disks.opening import StartError

__all__ = ["client_context", "server_context"]

_VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----")
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
    store, password = settings.key_store, settings.key_password
    if store is None:
        return
    if store.is_pem:
        _check_form(identity_of(store, password)[0], password)
    load_identity(context, store, password)


def _check_form(pem: bytes, password: str | None) -> None:
    """Refuse what Kafka refuses in a PEM store. Errors: ValueError."""
    kinds = _KEY.findall(pem)
    if len(kinds) != 1:
        raise ValueError(f"the key store has {len(kinds)} private keys, and needs one")
    if kinds[0] not in _PKCS8:
        form = kinds[0].decode().strip()
        raise ValueError(f"the private key has the form of {form}; convert it to PKCS#8")
    if kinds[0] and password is None:
        raise ValueError("the private key is encrypted, and ssl.key.password is not set")
    if not CERTIFICATE.search(pem):
        raise ValueError("the key store has no certificate")


def _load_trust(context: ssl.SSLContext, store: Store | None) -> None:
    if store is not None:
        load_trust(context, store)
        return
    is_server = context.protocol == ssl.PROTOCOL_TLS_SERVER
    context.load_default_certs(ssl.Purpose.CLIENT_AUTH if is_server else ssl.Purpose.SERVER_AUTH)


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
