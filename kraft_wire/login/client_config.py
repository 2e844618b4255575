"""A client's security settings: the keys of Kafka's client configuration.

TLS by stores (`keystores`), and SASL by PLAIN, SCRAM and OAUTHBEARER (`sasl`, `bearer`). Other
mechanisms are refused; keys that are not about security are ignored, and named.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kraft_wire.keystores.loading import load_identity, load_trust
from kraft_wire.keystores.store import STORE_TYPES, Store, UnusableStore, is_pem_type
from kraft_wire.login.bearer import TOKEN_KEYS, InvalidTokenSource, TokenSource, token_source
from kraft_wire.login.jaas import LOGIN_MODULES, InvalidJaas, parse_jaas
from kraft_wire.properties import parse_properties

__all__ = [
    "Credentials",
    "Security",
    "UnusableConfig",
    "is_about_security",
    "read_client_config",
    "read_client_keys",
    "security_of",
    "tls_of",
]

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TEXTS: Final = {
    "ssl.truststore": ("ssl.truststore.certificates",),
    "ssl.keystore": ("ssl.keystore.key", "ssl.keystore.certificate.chain"),
}
"""The keys of each store in the settings themselves."""
_KNOWN: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        *TOKEN_KEYS,
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    }
)
_ABOUT_SECURITY: Final = ("ssl.", "sasl.", "security.")


class UnusableConfig(Exception):
    """A client configuration that is invalid or not supported; the text is one line."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user who logs in by SASL."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    token: TokenSource | None = field(default=None, repr=False)
    """Returns the token to show, for OAUTHBEARER."""
    by_delegation_token: bool = False
    """Whether the username is the id of a delegation token, and the password its HMAC."""


@dataclass(frozen=True, slots=True)
class Security:
    """The security of a new connection, applied before its first request."""

    tls: ssl.SSLContext | None = None
    credentials: Credentials | None = None


def read_client_config(path: Path) -> tuple[Security, list[str]]:
    """Read a file of Kafka's client keys; return also the keys that are ignored.

    Raises UnusableConfig.
    """
    config = read_client_keys(path)
    about_security = {key: value for key, value in config.items() if is_about_security(key)}
    others = sorted(set(config) - set(about_security))
    try:
        return security_of(about_security), others
    except UnusableConfig as error:
        raise UnusableConfig(f"{path}: {error}") from error


def read_client_keys(path: Path) -> dict[str, str]:
    """Return keys and values of a file; Kafka strips all values. Raises UnusableConfig."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableConfig(f"cannot read {path}: {error}") from error
    return {each.key: each.value.strip() for each in parse_properties(text)}


def security_of(config: Mapping[str, str]) -> Security:
    """Return the security that client keys ask for. Raises UnusableConfig.

    Errors in this order: a key that is not supported, the protocol, stores, the login.
    """
    unknown = sorted(set(config) - _KNOWN)
    if unknown:
        raise UnusableConfig(f"{unknown[0]} is not supported; remove it")
    protocol = config.get("security.protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        raise UnusableConfig(f"security.protocol={protocol}: use {_or(_PROTOCOLS)}")
    try:
        tls = tls_of(config) if protocol.endswith("SSL") else None
        credentials = _credentials(config) if protocol.startswith("SASL") else None
    except UnusableStore as error:
        raise UnusableConfig(f"a store cannot be used: {error}") from error
    return Security(tls, credentials)


def is_about_security(key: str) -> bool:
    """Return whether a client key is about encryption or the login."""
    return key.startswith(_ABOUT_SECURITY)


def tls_of(config: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS that client keys `ssl.*` ask for. Errors: UnusableConfig, UnusableStore."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.get("ssl.endpoint.identification.algorithm", "https") != ""
    if trusted := _store(config, "ssl.truststore"):
        load_trust(context, trusted)
    else:
        context.load_default_certs()
    if own := _store(config, "ssl.keystore"):
        load_identity(context, own, config.get("ssl.key.password"))
    return context


def _store(config: Mapping[str, str], store: str) -> Store | None:
    """Return a store of the settings, None if they name none."""
    location = config.get(f"{store}.location")
    texts = [config[key] for key in _TEXTS[store] if config.get(key)]
    kind = config.get(f"{store}.type", "PEM" if texts else "JKS")
    is_pem = is_pem_type(kind)
    if is_pem is None or (texts and not is_pem):
        raise UnusableConfig(f"{store}.type={kind}: use {_or(tuple(STORE_TYPES))}")
    if location:
        return Store(location, is_pem=is_pem, password=config.get(f"{store}.password"))
    return Store(text="\n".join([*texts, ""])) if texts else None


def _credentials(config: Mapping[str, str]) -> Credentials:
    mechanism = config.get("sasl.mechanism", "GSSAPI")
    if mechanism not in LOGIN_MODULES:
        supported = _or(tuple(LOGIN_MODULES))
        raise UnusableConfig(f"sasl.mechanism={mechanism} is not supported; use {supported}")
    entry = config.get("sasl.jaas.config")
    try:
        options = parse_jaas(entry).options if entry else {}
        if mechanism == "OAUTHBEARER":
            return Credentials(mechanism, "", "", token_source(config, options, tls_of))
    except InvalidJaas as problem:
        raise UnusableConfig(f"sasl.jaas.config: {problem}") from problem
    except InvalidTokenSource as problem:
        raise UnusableConfig(str(problem)) from problem
    if given := [key for key in TOKEN_KEYS if key in config]:
        raise UnusableConfig(f"{given[0]} is only for OAUTHBEARER; remove it")
    if "username" not in options or "password" not in options:
        raise UnusableConfig("sasl.jaas.config names no username and password")
    by_token = mechanism != "PLAIN" and options.get("tokenauth", "").lower() == "true"
    return Credentials(
        mechanism, options["username"], options["password"], by_delegation_token=by_token
    )


def _or(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
