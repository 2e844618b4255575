"""The `sasl.oauthbearer.*` keys of one listener, and the options of its login entry (KIP-255, 768).

Kafka's class of the handler says whether tokens are signed. Without a class Kafka takes unsecured
tokens, from anyone; here the login entry must ask for that by an option of its own.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from kraft_wire.keystores.store import Store, is_pem_type
from kraft_wire.node.config.listener_values import ListenerValues
from kraft_wire.node.config.token_settings import (
    SignedTokenSettings,
    TokenSettings,
    UnsecuredTokenSettings,
)

__all__ = ["ALLOWED_URLS", "read_tokens"]

ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
_SIGNED: Final = (
    f"{_PACKAGE}OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
)
"""Kafka's class for signed tokens, and its name in releases before 4."""
_UNSECURED: Final = f"{_PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_HANDLER: Final = "sasl.server.callback.handler.class"
_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_VALIDATORS: Final = tuple(f"{_PACKAGE}{name}JwtValidator" for name in ("Default", "Broker"))
_VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
_SKEW: Final = "sasl.oauthbearer.clock.skew.seconds"
_REFRESH: Final = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
_RETRY: Final = "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"
_RETRY_MAX: Final = "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
_ENTRY: Final = "sasl.jaas.config"
_JAVA: Final = "Java classes cannot be loaded"
_NUMBER_DIGITS_MAX: Final = 9


def read_tokens(values: ListenerValues, options: Mapping[str, str]) -> TokenSettings:
    """Return how tokens are checked; `options` are the login entry's. Errors: ConfigError."""
    handler = values.own_text(_HANDLER)
    if handler in _SIGNED:
        return _signed(values, options)
    if handler not in (None, _UNSECURED):
        raise values.own_error(_HANDLER, _JAVA)
    if values.text(_URL):
        raise values.own_error(
            _HANDLER, f"{_URL} has no effect without the class for signed tokens, {_SIGNED[0]}"
        )
    if handler is None and not any(name.startswith("unsecured") for name in options):
        raise values.own_error(
            _HANDLER,
            f"name the class for signed tokens, {_SIGNED[0]}; or let the login entry ask for "
            "unsecured ones, which anyone can make, by an option such as "
            'unsecuredValidatorAllowableClockSkewMs="0"',
        )
    return _unsecured(values, options)


def _signed(values: ListenerValues, options: Mapping[str, str]) -> SignedTokenSettings:
    if values.text(_VALIDATOR) not in _VALIDATORS:
        raise values.error(_VALIDATOR, _JAVA)
    return SignedTokenSettings(
        url := _url(values),
        _trust_store(values, options) if url.startswith("https:") else None,
        _not_negative(values, _REFRESH),
        _not_negative(values, _RETRY),
        _not_negative(values, _RETRY_MAX),
        values.strings("sasl.oauthbearer.expected.audience"),
        values.text("sasl.oauthbearer.expected.issuer") or None,
        _not_negative(values, _SKEW),
        _claim(values, "sasl.oauthbearer.sub.claim.name"),
        _claim(values, "sasl.oauthbearer.scope.claim.name"),
    )


def _url(values: ListenerValues) -> str:
    url = (values.text(_URL) or "").strip()
    if not url:
        raise values.error(_URL, f"listener {values.listener} needs the key set of its tokens")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise values.error(_URL, f"it is not a URL: {error}") from error
    if parts.scheme not in ("file", "http", "https"):
        raise values.error(_URL, "it must be a URL of the scheme file, http or https")
    if not (parts.path if parts.scheme == "file" else host):
        raise values.error(_URL, "the URL names neither a file nor a host")
    if url not in values.strings(ALLOWED_URLS):
        raise values.error(_URL, f"list it in {ALLOWED_URLS}, which has the permitted URLs")
    return url


def _trust_store(values: ListenerValues, options: Mapping[str, str]) -> Store | None:
    """Return the trust store of the login entry, as Kafka takes it for the key set's address."""
    location, kind = options.get("ssl.truststore.location"), options.get("ssl.truststore.type")
    if location is None:
        return None
    is_pem = is_pem_type(kind or "JKS")
    if is_pem is None:
        raise values.own_error(_ENTRY, "its option ssl.truststore.type is not a type of stores")
    return Store(location, is_pem=is_pem, password=options.get("ssl.truststore.password"))


def _unsecured(values: ListenerValues, options: Mapping[str, str]) -> UnsecuredTokenSettings:
    given = {
        name.removeprefix("unsecuredValidator"): text.strip()
        for name, text in options.items()
        if name.startswith("unsecuredValidator") and text.strip()
    }
    skew = given.get("AllowableClockSkewMs", "0")
    if not (skew.isascii() and skew.isdecimal() and len(skew) <= _NUMBER_DIGITS_MAX):
        raise values.own_error(
            _ENTRY, "its option unsecuredValidatorAllowableClockSkewMs is not a number from 0"
        )
    return UnsecuredTokenSettings(
        given.get("PrincipalClaimName", "sub"),
        given.get("ScopeClaimName", "scope"),
        tuple(given.get("RequiredScope", "").split()),
        int(skew),
    )


def _not_negative(values: ListenerValues, key: str) -> int:
    number = values.integer(key)
    if number < 0:
        raise values.error(key, "it must not be negative")
    return number


def _claim(values: ListenerValues, key: str) -> str:
    name = (values.text(key) or "").strip()
    if not name:
        raise values.error(key, "it must name a claim")
    return name
