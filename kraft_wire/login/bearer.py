"""Tokens that a client shows by OAUTHBEARER, as Kafka's clients get them (KIP-255, KIP-768).

Three ways: an unsecured token that the client makes itself of its login entry's options, with a new
time for each login; a token in a file, read for each login; and one of an identity provider,
fetched for each login (`token_endpoint`).
"""

import json
import re
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from typing import Final, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from kraft_wire.login.token_endpoint import ENDPOINT_KEYS, ClientCredentials, InvalidTokenSource

__all__ = [
    "HANDLERS",
    "TOKEN_KEYS",
    "InvalidTokenSource",
    "TokenSource",
    "check_token_source",
    "token_source",
    "unsecured_token",
]

TokenSource: TypeAlias = Callable[[], str]
"""Returns the token of a new login; raises OSError and ValueError."""

_HANDLER: Final = "sasl.login.callback.handler.class"
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
TOKEN_KEYS: Final = (_HANDLER, _URL, *ENDPOINT_KEYS)
"""Client keys that say where tokens are."""
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
HANDLERS: Final = (
    f"{_PACKAGE}OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerLoginCallbackHandler",
)
"""Kafka's class for tokens of a file or a provider, and its name in releases before 4."""
_PREFIX: Final = "unsecuredLogin"
_LIFETIME: Final = f"{_PREFIX}LifetimeSeconds"
_USER_CLAIM: Final = f"{_PREFIX}PrincipalClaimName"
_RESERVED: Final = ("exp", "iat")
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*", re.ASCII)


def token_source(
    config: Mapping[str, str],
    options: Mapping[str, str],
    trusting: Callable[[Mapping[str, str]], ssl.SSLContext],
) -> TokenSource:
    """Return where a client's tokens come from; `options` are its login entry's.

    `trusting` makes the TLS of an https address from those options. Errors: InvalidTokenSource,
    and those of `trusting`.
    """
    handler, url = config.get(_HANDLER), config.get(_URL)
    if handler is not None and handler not in HANDLERS:
        raise InvalidTokenSource(f"{_HANDLER}: Java classes cannot be loaded")
    if handler is None and url is not None:
        raise InvalidTokenSource(f"{_URL} needs {_HANDLER}={HANDLERS[0]}")
    if handler is None:
        unsecured_token(options, 0)  # fails now if it ever will
        return lambda: unsecured_token(options, int(time()))
    parts = urlsplit(url or "")
    if parts.scheme == "file" and parts.path:
        path = Path(url2pathname(parts.path))
        return lambda: _of_file(path)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidTokenSource(f"{_URL} must be an address of file, http or https")
    context = trusting(options) if parts.scheme == "https" else None
    return _checked(ClientCredentials(config, options, url or "", context).token)


def check_token_source(config: Mapping[str, str], options: Mapping[str, str]) -> None:
    """Check a client's keys as `token_source` does, without a file. Errors: InvalidTokenSource."""
    token_source(config, options, lambda _: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _checked(fetch: TokenSource) -> TokenSource:
    def token() -> str:
        found = fetch()
        if _TOKEN.fullmatch(found) is None:
            raise ValueError("what the token endpoint gives is not a token")
        return found

    return token


def unsecured_token(options: Mapping[str, str], now_seconds: int) -> str:
    """Return a token that is not signed; its times are whole seconds.

    A fraction could be in the future for the broker, whose clock counts milliseconds. Errors:
    InvalidTokenSource.
    """
    try:
        lifetime = int(options.get(_LIFETIME, "3600"))
        claims = {"exp": now_seconds + lifetime, "iat": now_seconds, **_claims(options)}
    except ValueError:
        raise InvalidTokenSource("sasl.jaas.config has an option that is not a number") from None
    user = claims.get(options.get(_USER_CLAIM, "").strip() or "sub")
    if not isinstance(user, str) or not user.strip():
        raise InvalidTokenSource(
            f'sasl.jaas.config names no user; add {_PREFIX}StringClaim_sub="NAME"'
        )
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _claims(options: Mapping[str, str]) -> dict[str, object]:
    """Return the claims that the options name; their kind is in the option's name."""
    found: dict[str, object] = {}
    for option, text in options.items():
        kind, _, name = option.removeprefix(_PREFIX).partition("Claim_")
        if not option.startswith(_PREFIX) or not name:
            continue
        if name in _RESERVED:
            raise InvalidTokenSource(f"sasl.jaas.config cannot set the claim {name}")
        if kind == "String":
            found[name] = text
        elif kind == "Number":
            found[name] = float(text)
        elif kind == "List":
            found[name] = text[1:].split(text[0]) if len(text) > 1 else []
    return found


def _encoded(part: object) -> str:
    return urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def _of_file(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if _TOKEN.fullmatch(text) is None:
        raise ValueError(f"{path} has no token")
    return text
