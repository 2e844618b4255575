"""The content of a store as PEM text, whichever of the three forms the file has.

JKS and PKCS12 are told apart by the first bytes, whichever of both the settings name, as Java does.
A key of theirs is in the clear afterwards, in memory only.
"""

import re
from base64 import encodebytes
from typing import Final

from kraft_wire.keystores.jks import MAGIC as JKS
from kraft_wire.keystores.jks import jks_identity, jks_trusted
from kraft_wire.keystores.pkcs12 import pkcs12_identity, pkcs12_trusted
from kraft_wire.keystores.store import Store, UnusableStore

__all__ = ["CERTIFICATE", "identity_of", "trusted_of"]

CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.S)
_JCEKS: Final = bytes.fromhex("cececece")
_BYTES_MAX: Final = 16 << 20
"""Bound on a store's size; a setting may name any file."""
_SEQUENCE: Final = b"\x30"
"""The first byte of a PKCS12 store."""


def identity_of(store: Store, key_password: str | None) -> tuple[bytes, str]:
    """Return a key with its chain as PEM text, and the password that the key still has.

    Errors: UnusableStore.
    """
    data = _content(store)
    if store.is_pem:
        return data, key_password or ""
    password = store.password or ""
    read = jks_identity if _is_jks(store, data) else pkcs12_identity
    try:
        key, chain = read(data, password, key_password or password)
    except UnusableStore as problem:
        raise UnusableStore(f"{store.location}: {problem}") from problem
    parts = [_pem("PRIVATE KEY", key), *(_pem("CERTIFICATE", each) for each in chain)]
    return b"".join(parts), ""


def trusted_of(store: Store) -> str:
    """Return the certificates of a trust store as PEM text. Errors: UnusableStore."""
    data = _content(store)
    if store.is_pem:
        found = CERTIFICATE.findall(data)
    else:
        read = jks_trusted if _is_jks(store, data) else pkcs12_trusted
        try:
            found = [_pem("CERTIFICATE", each) for each in read(data, store.password)]
        except UnusableStore as problem:
            raise UnusableStore(f"{store.location}: {problem}") from problem
    if not found:
        raise UnusableStore("the trust store has no certificate")
    return "\n".join(each.decode("ascii", "replace") for each in found)


def _content(store: Store) -> bytes:
    if store.location is None:
        assert store.text is not None, "a store is a file or a text"
        return store.text.encode()
    try:
        with open(store.location, "rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise UnusableStore(f"{store.location}: {error.strerror or error}") from error
    if len(data) > _BYTES_MAX:
        raise UnusableStore(f"{store.location}: the file is too large for a store")
    return data


def _is_jks(store: Store, data: bytes) -> bool:
    """Return whether a file is a JKS store, not a PKCS12 store."""
    if data.startswith(JKS):
        return True
    if data.startswith(_SEQUENCE):
        return False
    if data.startswith(_JCEKS):
        raise UnusableStore(f"{store.location}: stores of the type JCEKS are not supported")
    problem = "the file is neither a JKS nor a PKCS12 store; of PEM files the type is PEM"
    raise UnusableStore(f"{store.location}: {problem}")


def _pem(label: str, data: bytes) -> bytes:
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (
        label.encode(),
        encodebytes(data),
        label.encode(),
    )
