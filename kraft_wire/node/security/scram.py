"""The server's side of SCRAM-SHA-256 and -512 (RFC 5802, KIP-84), by credentials of the metadata.

With the extension `tokenauth=true` the user name is the id of a delegation token, and the login is
one of its owner (KIP-48).

No key is derived from a user's password here, so that a login costs microseconds for any number of
iterations. The nonce of the client's last message must be the whole one (CVE-2024-56128), `c=` the
header that was sent, and the signed text the received bytes. The answer shows only at the end
whether a user exists: unknown users get a salt that is constant for their name.
"""

import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from typing import Final, NamedTuple

from kraft_wire.metadata.image import ScramImage
from kraft_wire.model import RandomSource
from kraft_wire.node.security.mechanisms import LoginRefused

__all__ = ["FindCredential", "FindToken", "ScramServer", "TokenLogin", "derived_credential"]

FindCredential = Callable[[str], ScramImage | None]
"""Returns the credential of a user for the mechanism."""


class TokenLogin(NamedTuple):
    """A delegation token, as a login needs it."""

    credential: ScramImage
    owner: str
    expires_ms: int


FindToken = Callable[[str], TokenLogin | None]
"""Returns a token by its id."""

_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*)"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<user>{_SASL_NAME}),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<signed>c=(?P<header>[A-Za-z0-9+/=]+),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_BY_TOKEN: Final = re.compile(r",tokenauth=true(?:,|$)", re.IGNORECASE)
_OTHER_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_ITERATIONS_MIN: Final = 4096
_NONCE_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramServer:
    """One login by SCRAM."""

    def __init__(
        self,
        mechanism: str,
        find: FindCredential,
        random_source: RandomSource,
        secret: bytes,
        find_token: FindToken = lambda _: None,
    ) -> None:
        """`secret` is the node's own: it makes the salts of unknown users."""
        self._digest = _digest_of(mechanism)
        self._find = find
        self._find_token = find_token
        self._random_source = random_source
        self._secret = secret
        self.user: str | None = None
        self.by_token = False
        self.expires_ms: int | None = None
        self._owner: str | None = None
        """The owner of the token that the client names."""
        self._claimed: str | None = None
        """The user name of the client's first message, None before it."""
        self._credential: ScramImage | None = None
        self._header = b""
        self._nonce = ""
        self._signed = ""
        """The messages so far, as signed."""

    def step(self, token: bytes, _wall_ms: int) -> bytes:
        """Answer the client's first message, then its last."""
        try:
            message = token.decode("ascii")
        except UnicodeDecodeError:
            raise LoginRefused from None
        if self.user is not None:
            raise LoginRefused
        return self._challenge(message) if self._claimed is None else self._verdict(message)

    def _challenge(self, message: str) -> bytes:
        first = _CLIENT_FIRST.fullmatch(message)
        if first is None:
            raise LoginRefused
        user = _name(first["user"])
        if first["authzid"] is not None and _name(first["authzid"]) != user:
            raise LoginRefused(_OTHER_ID)
        self._claimed = user
        self._header = first["header"].encode()
        self._nonce = first["nonce"] + _base_36(self._random_source.below(1 << _NONCE_BITS))
        self.by_token = _BY_TOKEN.search(first["extensions"]) is not None
        found = self._found_token(user) if self.by_token else self._find(user)
        if self.by_token and found is None:
            raise LoginRefused  # ids of tokens are random: unlike names they need no disguise
        salt, iterations = _constant_salt(self._secret, user, self._digest), _ITERATIONS_MIN
        if found is not None and found.iterations >= _ITERATIONS_MIN:
            self._credential = found
            salt, iterations = found.salt, found.iterations
        answer = f"r={self._nonce},s={b64encode(salt).decode()},i={iterations}"
        self._signed = f"{first['bare']},{answer},"
        return answer.encode()

    def _verdict(self, message: str) -> bytes:
        final = _CLIENT_FINAL.fullmatch(message)
        credential, self._credential = self._credential, None
        if final is None or not hmac.compare_digest(final["nonce"], self._nonce):
            raise LoginRefused
        proof, header = _decoded(final["proof"]), _decoded(final["header"])
        if credential is None or header != self._header:
            raise LoginRefused
        signed = (self._signed + final["signed"]).encode()
        signature = hmac.digest(credential.stored_key, signed, self._digest)
        if len(proof) != len(signature):
            raise LoginRefused
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        stored_key = new_hash(self._digest, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise LoginRefused
        self.user = self._owner if self.by_token else self._claimed
        return b"v=" + b64encode(hmac.digest(credential.server_key, signed, self._digest))

    def _found_token(self, token_id: str) -> ScramImage | None:
        found = self._find_token(token_id)
        if found is None:
            return None
        self._owner, self.expires_ms = found.owner, found.expires_ms
        return found.credential


def derived_credential(mechanism: str, user: str, password: str, secret: bytes) -> ScramImage:
    """Return the credential of a password that the metadata does not have salted.

    The salt is that of unknown users.
    """
    digest = _digest_of(mechanism)
    salt = _constant_salt(secret, user, digest)
    salted = pbkdf2_hmac(digest, password.encode(), salt, _ITERATIONS_MIN)
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored_key = new_hash(digest, client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", digest)
    return ScramImage(salt, stored_key, server_key, _ITERATIONS_MIN)


def _digest_of(mechanism: str) -> str:
    return mechanism.removeprefix("SCRAM-").replace("-", "").lower()


def _constant_salt(secret: bytes, user: str, digest: str) -> bytes:
    """Return a salt of the form that Kafka's tools make, the same for the same name."""
    made = hmac.digest(secret, user.encode(), digest)
    return _base_36(int.from_bytes(made, "big") % (1 << _NONCE_BITS)).encode()


def _name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise LoginRefused from None


def _base_36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
