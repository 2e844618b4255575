"""SASL login on a connection, the client's side (KIP-152).

PLAIN (RFC 4616), SCRAM (RFC 5802, KIP-84) and OAUTHBEARER (RFC 7628, KIP-255).
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from contextlib import suppress
from secrets import token_urlsafe
from typing import Final, TypeAlias

from kraft_wire.login.bearer import TokenSource
from kraft_wire.login.client_config import Credentials

__all__ = ["Dialogue", "LoginFailed", "dialogue", "log_in"]

Send = Callable[[bytes], bytes]
"""Sends a token and returns the broker's; raises LoginFailed."""

Dialogue: TypeAlias = Generator[bytes, bytes, None]
"""Yields the client's tokens and is sent the broker's; raises LoginFailed."""

_PLAIN: Final = "PLAIN"
_NO_CHANNEL_BINDING: Final = "n,,"
_ITERATIONS_MAX: Final = 1_000_000


class LoginFailed(OSError):
    """The broker refuses the credentials, or fails to prove its identity; the text is one line."""


def log_in(credentials: Credentials, send: Send, nonce: str = "") -> None:
    """Exchange the tokens of the credentials' mechanism; raises LoginFailed.

    `nonce` is SCRAM's, which is drawn by default.
    """
    tokens = dialogue(credentials, nonce)
    token = next(tokens)
    with suppress(StopIteration):
        while True:
            token = tokens.send(send(token))


def dialogue(credentials: Credentials, nonce: str = "") -> Dialogue:
    """Return the client's side of a login."""
    if credentials.mechanism == _PLAIN:
        return _plain(credentials)
    if credentials.token is not None:
        return _bearer(credentials.token)
    return _scram(credentials, nonce or token_urlsafe(18))


def _plain(credentials: Credentials) -> Dialogue:
    yield f"\0{credentials.username}\0{credentials.password}".encode()


def _bearer(source: TokenSource) -> Dialogue:
    try:
        token = source()
    except (OSError, ValueError) as error:
        raise LoginFailed(f"there is no token: {error}") from error
    refusal = yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    if refusal:
        yield b"\x01"
        raise LoginFailed("the broker refuses the token")


def _scram(credentials: Credentials, nonce: str) -> Dialogue:
    name = credentials.username.replace("=", "=3D").replace(",", "=2C")
    extension = ",tokenauth=true" if credentials.by_delegation_token else ""
    first = f"n={name},r={nonce}{extension}"
    heard = _text((yield f"{_NO_CHANNEL_BINDING}{first}".encode()))
    wanted = _attributes(heard)
    try:
        server_nonce, salt, iterations = wanted["r"], b64decode(wanted["s"]), int(wanted["i"])
    except (KeyError, ValueError) as error:
        raise LoginFailed(f"the broker's first SCRAM message is none: {heard!r}") from error
    if not server_nonce.startswith(nonce) or not 0 < iterations <= _ITERATIONS_MAX:
        raise LoginFailed("the broker answered another client's SCRAM message")
    digest = credentials.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    salted = hashlib.pbkdf2_hmac(digest, credentials.password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    final = f"c={b64encode(_NO_CHANNEL_BINDING.encode()).decode()},r={server_nonce}"
    signed = f"{first},{heard},{final}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    answer = _attributes(_text((yield f"{final},p={b64encode(proof).decode()}".encode())))
    server_key = hmac.digest(salted, b"Server Key", digest)
    expected = b64encode(hmac.digest(server_key, signed, digest))
    if not hmac.compare_digest(answer.get("v", "").encode(), expected):
        raise LoginFailed("the broker does not know the password: its SCRAM signature is wrong")


def _text(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError as error:
        raise LoginFailed(f"the broker's SCRAM message is not UTF-8: {error}") from error


def _attributes(message: str) -> dict[str, str]:
    return dict(each.split("=", 1) for each in message.split(",") if "=" in each)
