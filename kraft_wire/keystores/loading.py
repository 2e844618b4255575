"""Stores into OpenSSL contexts.

Python passes a key to OpenSSL only by a file's name. So a key goes through a file in memory, which
has no name outside this process. Where the system has none, the file is in a folder that only this
user may enter, and is removed at once.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kraft_wire.keystores.reading import identity_of, trusted_of
from kraft_wire.keystores.store import Store, UnusableStore

__all__ = ["load_identity", "load_trust"]

_OWN_ALONE: Final = 0o600


def load_identity(context: ssl.SSLContext, store: Store, key_password: str | None) -> None:
    """Let a context use the key and the chain of a store. Errors: UnusableStore."""
    pem, password = identity_of(store, key_password)
    with _named(pem) as path:
        try:
            context.load_cert_chain(path, password=password)
        except (ssl.SSLError, ValueError) as error:
            raise UnusableStore(f"the key store cannot be used: {_words(error)}") from error


def load_trust(context: ssl.SSLContext, store: Store) -> None:
    """Let a context trust what a store has, as Java does: each certificate is an anchor.

    Errors: UnusableStore.
    """
    certificates = trusted_of(store)
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        raise UnusableStore(f"the trust store cannot be used: {_words(error)}") from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


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
        return
    with TemporaryDirectory() as directory:  # its mode is 0700
        path = Path(directory, "key")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWN_ALONE)
        with open(descriptor, "wb") as file:
            file.write(pem)
        yield str(path)


def _words(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
