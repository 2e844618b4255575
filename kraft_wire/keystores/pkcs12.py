"""PKCS12 stores, by the package `cryptography` (extra `security`).

The format is ASN.1 in layers of ciphers, old and new, so it is not read here. The package returns
the first key of a store; a key with another password than its store is refused, as keytool never
makes one. Java tells a trusted certificate from others by an attribute, which the package does not
show: all certificates are trusted but those that only complete the chain of a key.
"""

import warnings
from typing import TYPE_CHECKING

from kraft_wire.extras import install_command
from kraft_wire.keystores.store import UnusableStore

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

__all__ = ["pkcs12_identity", "pkcs12_trusted"]

_PACKAGE = "cryptography"


def pkcs12_identity(
    data: bytes, password: str, key_password: str
) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the key of a store, as PKCS#8, and its chain. Errors: UnusableStore."""
    found = _loaded(data, password)
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    if found.key is None:
        raise UnusableStore("the store has 0 private keys, and needs one")
    if found.cert is None:
        raise UnusableStore("the private key has no certificate")
    if key_password != password:
        raise UnusableStore("the password of the key is wrong: it is that of the PKCS12 store")
    key = found.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return key, tuple(each.public_bytes(Encoding.DER) for each in _chain(found))


def pkcs12_trusted(data: bytes, password: str | None) -> tuple[bytes, ...]:
    """Return the trusted certificates, and that of the key if there is one.

    Errors: UnusableStore.
    """
    found = _loaded(data, password)
    from cryptography.hazmat.primitives.serialization import Encoding

    chain = _chain(found)
    trusted = [each.certificate for each in found.additional_certs]
    trusted = [each for each in trusted if each not in chain] + chain[:1]
    return tuple(each.public_bytes(Encoding.DER) for each in trusted)


def _loaded(data: bytes, password: str | None) -> "PKCS12KeyAndCertificates":
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as missing:
        remedy = install_command("security", [_PACKAGE])
        raise UnusableStore(f"PKCS12 needs the package {_PACKAGE}; install: {remedy}") from missing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # BER, which Java reads too
            return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        if "password" in str(error):
            problem = "is wrong" if password is not None else "is not set"
            text = f"the password of the store {problem}, or the file is damaged"
            raise UnusableStore(text) from error
        raise UnusableStore("the file is damaged: it is not a PKCS12 store") from error
    except UnsupportedAlgorithm as error:
        raise UnusableStore(f"the store cannot be read: {error}") from error


def _chain(found: "PKCS12KeyAndCertificates") -> "list[Certificate]":
    """Return the certificate of the key, and its issuers as far as the store has them."""
    if found.cert is None:
        return []
    chain = [found.cert.certificate]
    others = [each.certificate for each in found.additional_certs]
    while issuer := next((each for each in others if _has_issued(each, chain[-1])), None):
        others.remove(issuer)
        chain.append(issuer)
    return chain


def _has_issued(issuer: "Certificate", certificate: "Certificate") -> bool:
    if issuer == certificate or issuer.subject != certificate.issuer:
        return False
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True
