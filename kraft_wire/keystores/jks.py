"""Java's own store, JKS: trusted certificates, and keys hidden by a stream of SHA-1 digests.

The format is a few records, so it is read here: the packages for it are not maintained. A digest
at the end of the file, keyed by the password, shows a wrong password and damage alike. JCEKS, which
Kafka does not read either, is refused. Stores are never written.
"""

import hashlib
import hmac
from collections.abc import Iterator
from struct import Struct, error
from typing import Final, NamedTuple

from kraft_wire.keystores.der import elements
from kraft_wire.keystores.store import UnusableStore

__all__ = ["MAGIC", "jks_identity", "jks_trusted"]

MAGIC: Final = bytes.fromhex("feedfeed")
_KEY: Final = 1
_TRUSTED: Final = 2
_HEAD: Final = Struct(">4sII")
_INT: Final = Struct(">I")
_SHORT: Final = Struct(">H")
_TIME: Final = Struct(">Q")
_DIGEST_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"
_PROTECTION: Final = bytes.fromhex("2b060104012a02110101")
"""The object identifier of JKS' own protection of keys, 1.3.6.1.4.1.42.2.17.1.1."""
_TYPED_VERSION: Final = 2
"""The first version in which each certificate names its type."""


class _Entry(NamedTuple):
    protected_key: bytes | None
    certificates: tuple[bytes, ...]


def jks_identity(data: bytes, password: str, key_password: str) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the one key of a store, as PKCS#8, and its chain. Errors: UnusableStore."""
    keys = [each for each in _entries(data, password) if each.protected_key is not None]
    if len(keys) != 1:
        raise UnusableStore(f"the store has {len(keys)} private keys, and needs one")
    protected, chain = keys[0]
    assert protected is not None, "filtered above"
    return _unprotected(protected, key_password), chain


def jks_trusted(data: bytes, password: str | None) -> tuple[bytes, ...]:
    """Return what Java trusts: trusted certificates, and the first one of each key's chain.

    Without a password the integrity of the store is not checked. Errors: UnusableStore.
    """
    return tuple(each.certificates[0] for each in _entries(data, password) if each.certificates)


def _entries(data: bytes, password: str | None) -> list[_Entry]:
    try:
        magic, version, count = _HEAD.unpack_from(data)
        if magic != MAGIC or version not in (1, _TYPED_VERSION):
            raise UnusableStore("the file is not a JKS store")
        reader = _Reader(data, _HEAD.size, version)
        found = [reader.entry() for _ in range(count)]
    except (error, UnicodeDecodeError) as problem:
        raise UnusableStore("the file is damaged: it ends within an entry") from problem
    content, digest = data[: reader.position], data[reader.position :]
    if len(digest) != _DIGEST_BYTES:
        raise UnusableStore("the file is damaged: its end is not a digest")
    if password is not None:
        expected = hashlib.sha1(_utf16(password) + _WHITENER + content).digest()
        if not hmac.compare_digest(digest, expected):
            raise UnusableStore("the password of the store is wrong, or the file is damaged")
    return found


class _Reader:
    """Reads entries from a position on."""

    def __init__(self, data: bytes, position: int, version: int) -> None:
        self._data = data
        self.position = position
        self._version = version

    def entry(self) -> _Entry:
        (tag,) = self._next(_INT)
        self._sized(_SHORT)  # the alias
        self._next(_TIME)
        if tag == _KEY:
            protected = self._sized(_INT)
            (count,) = self._next(_INT)
            return _Entry(protected, tuple(self._certificates(count)))
        if tag == _TRUSTED:
            return _Entry(None, tuple(self._certificates(1)))
        raise UnusableStore(f"the file is damaged: an entry has the tag {tag}")

    def _certificates(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            if self._version == _TYPED_VERSION:
                self._sized(_SHORT)
            yield self._sized(_INT)

    def _next(self, form: Struct) -> tuple[int, ...]:
        found = form.unpack_from(self._data, self.position)
        self.position += form.size
        return found

    def _sized(self, form: Struct) -> bytes:
        (size,) = self._next(form)
        begin, self.position = self.position, self.position + size
        if self.position > len(self._data):
            raise UnusableStore("the file is damaged: it ends within an entry")
        return self._data[begin : self.position]


def _unprotected(protected: bytes, password: str) -> bytes:
    """Return a key in the clear; the digest behind it shows whether the password is right."""
    try:
        algorithm, hidden = elements(next(elements(protected)).content)
        identifier = next(elements(algorithm.content)).content
    except (IndexError, StopIteration, ValueError) as problem:
        raise UnusableStore("the file is damaged: its key has no known form") from problem
    if identifier != _PROTECTION:
        raise UnusableStore("the key is not protected as those of JKS stores are")
    secret = _utf16(password)
    salt, check = hidden.content[:_DIGEST_BYTES], hidden.content[-_DIGEST_BYTES:]
    cipher = hidden.content[_DIGEST_BYTES:-_DIGEST_BYTES]
    stream, digest = b"", salt
    while len(stream) < len(cipher):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    key = bytes(one ^ other for one, other in zip(cipher, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise UnusableStore("the password of the key is wrong")
    return key


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")
