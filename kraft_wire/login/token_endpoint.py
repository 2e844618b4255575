"""Tokens of an identity provider, fetched for each login by HTTP (KIP-768).

The request is that of RFC 6749 (4.4, client credentials) as 4.3.1 sends it: the client's id and
secret in the header, the scope in the body. Answers that may pass are asked for again, with growing
pauses; those of `_FINAL` are not.
"""

import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote_plus

from kraft_wire.foreign_text import json_value
from kraft_wire.keystores.bounded_http import HttpAnswer, HttpServer, UnusableAnswer

__all__ = ["ENDPOINT_KEYS", "ClientCredentials", "InvalidTokenSource", "refusal_of", "token_in"]

_CLIENT: Final = "sasl.oauthbearer.client.credentials.client"
_ID, _SECRET, _SCOPE = f"{_CLIENT}.id", f"{_CLIENT}.secret", "sasl.oauthbearer.scope"
_ENCODED: Final = "sasl.oauthbearer.header.urlencode"
_BACKOFF, _BACKOFF_MAX = "sasl.login.retry.backoff.ms", "sasl.login.retry.backoff.max.ms"
ENDPOINT_KEYS: Final = (_ID, _SECRET, _SCOPE, _ENCODED, _BACKOFF, _BACKOFF_MAX)
"""Client keys about the endpoint, but for its address."""
_FINAL: Final = frozenset(
    {*range(HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_TIMEOUT)}
    | {*range(HTTPStatus.CONFLICT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)}
    | {HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED}
)
_WORDS_MAX: Final = 200
"""Characters of a refusal that are shown."""


class InvalidTokenSource(Exception):
    """Settings that give no token; the text is one line."""


@dataclass(frozen=True, slots=True)
class _Retries:
    """Pauses after answers that may pass: the first one, and the time of all tries."""

    first_s: float = 0.1
    total_s: float = 10.0

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "_Retries":
        """Return those of a client's keys. Errors: InvalidTokenSource."""
        try:
            first, total = (
                int(config.get(key, default)) / 1_000
                for key, default in ((_BACKOFF, "100"), (_BACKOFF_MAX, "10000"))
            )
        except (ValueError, OverflowError):
            raise InvalidTokenSource(f"{_BACKOFF} and {_BACKOFF_MAX} are numbers") from None
        return cls(max(first, 0.001), total)


class ClientCredentials:
    """A client that gets its tokens by its id and its secret."""

    def __init__(
        self,
        config: Mapping[str, str],
        options: Mapping[str, str],
        url: str,
        context: ssl.SSLContext | None,
    ) -> None:
        """`options` are those of the login entry, which count where the keys are not given.

        Errors: InvalidTokenSource.
        """
        encodes = config.get(_ENCODED, "false").lower() == "true"
        form: Callable[[str], str] = _form_of_java if encodes else str
        client_id = config.get(_ID, options.get("clientId", "")).strip()
        secret = config.get(_SECRET, options.get("clientSecret", "")).strip()
        scope = config.get(_SCOPE, options.get("scope", "")).strip()
        for key, value in ((_ID, client_id), (_SECRET, secret)):
            if not value:
                raise InvalidTokenSource(f"{key} is missing")
        basic = b64encode(f"{form(client_id)}:{form(secret)}".encode()).decode()
        self._headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {basic}",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self._body = "grant_type=client_credentials" + (f"&scope={form(scope)}" if scope else "")
        self._server = HttpServer(url, context)
        self._retries = _Retries.of(config)

    def token(self) -> str:
        """Return a new token. Errors: ValueError (refused), OSError (not reached in time)."""
        until_s = time.monotonic() + self._retries.total_s
        pause_s = self._retries.first_s
        while True:
            try:
                answer = self._server.ask("POST", self._headers, self._body.encode())
                if answer.status in (HTTPStatus.OK, HTTPStatus.CREATED):
                    return token_in(answer.body)
                problem = f"the token endpoint answers {refusal_of(answer)}"
                if answer.status in _FINAL:
                    raise ValueError(problem)
            except (OSError, UnusableAnswer) as error:
                problem = f"the token endpoint cannot be used: {error}"
            if time.monotonic() + pause_s >= until_s:
                raise OSError(problem)
            time.sleep(pause_s)
            pause_s *= 2


def _form_of_java(text: str) -> str:
    """Return a text as Java's clients encode it for a form: `*` stays, `~` does not."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def token_in(body: bytes) -> str:
    """Return the token in a provider's answer. Errors: ValueError."""
    found = _object_in(body)
    for name in ("access_token", "id_token"):
        value = found.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    raise ValueError("the answer of the token endpoint has no token")


def refusal_of(answer: HttpAnswer) -> str:
    """Return the status, and the reason that RFC 6749 (5.2) gives a refusal."""
    found = _object_in(answer.body)
    words = [found.get(key) for key in ("error", "error_description")]
    shown = " - ".join(each for each in words if isinstance(each, str))
    printable = "".join(each if each.isprintable() else "?" for each in shown[:_WORDS_MAX])
    return f"with status {answer.status}" + (f": {printable}" if printable else "")


def _object_in(body: bytes) -> Mapping[str, object]:
    """Return the JSON object of an answer; anything else counts as an empty one."""
    try:
        found = json_value(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
