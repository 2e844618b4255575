"""A client's security settings: the keys of Kafka's client configuration.

TLS by PEM files or PEM texts, and SASL by PLAIN and SCRAM (`sasl`). Other kinds of key stores
and mechanisms are refused; keys that are not about security are ignored, and named.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from kraft_wire.login.jaas import LOGIN_MODULES, InvalidJaas, parse_jaas
from kraft_wire.properties import parse_properties

__all__ = ["Credentials", "Security", "UnusableConfig", "read_client_config"]

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PEM: Final = "PEM"
_KNOWN: Final = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
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


@dataclass(frozen=True, slots=True)
class Security:
    """The security of a new connection, applied before its first request."""

    tls: ssl.SSLContext | None = None
    credentials: Credentials | None = None


def read_client_config(path: Path) -> tuple[Security, list[str]]:
    """Read a file of Kafka's client keys; return also the keys that are ignored.

    Raises UnusableConfig.
    """
    try:
        config = _properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableConfig(f"cannot read {path}: {error}") from error
    others = sorted(set(config) - _KNOWN)
    for key in others:
        if key.startswith(_ABOUT_SECURITY):
            raise UnusableConfig(f"{path}: {key} is not supported; remove it")
    protocol = config.get("security.protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        raise UnusableConfig(f"{path}: security.protocol={protocol}: use {_or(_PROTOCOLS)}")
    try:
        tls = _tls(config) if protocol.endswith("SSL") else None
        credentials = _credentials(config) if protocol.startswith("SASL") else None
    except UnusableConfig as error:
        raise UnusableConfig(f"{path}: {error}") from error
    except (OSError, ValueError) as error:  # ssl's errors are of both kinds
        raise UnusableConfig(f"{path}: a PEM store cannot be used: {error}") from error
    return Security(tls, credentials), others


def _properties(text: str) -> dict[str, str]:
    """Return keys and values; Kafka strips the values of all its client keys."""
    return {each.key: each.value.strip() for each in parse_properties(text)}


def _tls(config: Mapping[str, str]) -> ssl.SSLContext:
    for store in ("truststore", "keystore"):
        kind = config.get(f"ssl.{store}.type", _PEM if _is_inline(config, store) else "JKS")
        if kind != _PEM and any(key.startswith(f"ssl.{store}.") for key in config):
            raise UnusableConfig(f"ssl.{store}.type={kind} is not supported; use PEM")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.get("ssl.endpoint.identification.algorithm", "https") != ""
    location = config.get("ssl.truststore.location")
    certificates = config.get("ssl.truststore.certificates")
    if location or certificates:
        context.load_verify_locations(cafile=location or None, cadata=certificates or None)
    else:
        context.load_default_certs()
    _load_own(context, config)
    return context


def _is_inline(config: Mapping[str, str], store: str) -> bool:
    keys = {"truststore": "ssl.truststore.certificates", "keystore": "ssl.keystore.key"}
    return keys[store] in config


def _load_own(context: ssl.SSLContext, config: Mapping[str, str]) -> None:
    """Load the client's own certificate, if any; `ssl` reads it only from files."""
    password = config.get("ssl.key.password", "")
    if location := config.get("ssl.keystore.location"):
        context.load_cert_chain(location, password=password)
    elif key := config.get("ssl.keystore.key"):
        chain = config.get("ssl.keystore.certificate.chain", "")
        with NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{key}\n{chain}\n")
            file.flush()
            context.load_cert_chain(file.name, password=password)


def _credentials(config: Mapping[str, str]) -> Credentials:
    mechanism = config.get("sasl.mechanism", "GSSAPI")
    if mechanism not in LOGIN_MODULES:
        supported = _or(tuple(LOGIN_MODULES))
        raise UnusableConfig(f"sasl.mechanism={mechanism} is not supported; use {supported}")
    entry = config.get("sasl.jaas.config")
    try:
        options = parse_jaas(entry).options if entry else {}
    except InvalidJaas as problem:
        raise UnusableConfig(f"sasl.jaas.config: {problem}") from problem
    if "username" not in options or "password" not in options:
        raise UnusableConfig("sasl.jaas.config names no username and password")
    return Credentials(mechanism, options["username"], options["password"])


def _or(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
