"""The `ssl.*` keys of one listener: stores in PEM form, versions, ciphers, clients' certificates.

Key stores of the types JKS and PKCS12 are refused. The host reads the
files (`tls.contexts`).
"""

from typing import Final

from kraft_wire.node.config.listener_values import ListenerValues
from kraft_wire.node.config.security import PemStore, TlsSettings
from kraft_wire.node.security.principal_rules import (
    InvalidPrincipalRule,
    PrincipalRules,
    parse_principal_rules,
)

__all__ = ["read_tls"]

_PEM: Final = "PEM"
_CLIENT_AUTH: Final = "ssl.client.auth"
_PROTOCOLS: Final = "ssl.enabled.protocols"
_RULES: Final = "ssl.principal.mapping.rules"
_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_OLD_VERSIONS: Final = ("TLSv1", "TLSv1.1")


def read_tls(values: ListenerValues, *, has_sasl: bool, is_served: bool) -> TlsSettings:
    """Return the TLS settings of a listener, of this node or others. Errors: ConfigError."""
    key_store = _key_store(values, is_served=is_served)
    return TlsSettings(
        key_store,
        values.text("ssl.key.password") or None,
        _trust_store(values),
        _client_auth(values, has_sasl=has_sasl),
        _versions(values),
        values.strings("ssl.cipher.suites"),
        _rules(values),
        values.text("ssl.endpoint.identification.algorithm") != "",
    )


def _key_store(values: ListenerValues, *, is_served: bool) -> PemStore | None:
    location = values.text("ssl.keystore.location")
    key, chain = values.text("ssl.keystore.key"), values.text("ssl.keystore.certificate.chain")
    if not location and not key and not is_served:
        return None
    if not location and not key:
        raise values.error(
            "ssl.keystore.location", f"listener {values.listener} needs a key and a certificate"
        )
    _check_type(values, "ssl.keystore", "only the key password may be given")
    if location and (key or chain):
        raise values.error(
            "ssl.keystore.location", "the key is given twice: as a file and as ssl.keystore.key"
        )
    if key and not chain:
        raise values.error("ssl.keystore.certificate.chain", "the key has no certificate")
    return PemStore(location) if location else PemStore(text=f"{key}\n{chain}\n")


def _trust_store(values: ListenerValues) -> PemStore | None:
    location = values.text("ssl.truststore.location")
    certificates = values.text("ssl.truststore.certificates")
    if not location and not certificates:
        return None
    _check_type(values, "ssl.truststore", "certificates have none")
    if location and certificates:
        raise values.error(
            "ssl.truststore.location",
            "certificates are given twice: as a file and as ssl.truststore.certificates",
        )
    return PemStore(location) if location else PemStore(text=certificates)


def _check_type(values: ListenerValues, store: str, no_password: str) -> None:
    kind = values.text(f"{store}.type")
    if kind != _PEM:
        raise values.error(f"{store}.type", f"stores of the type {kind} are not supported; use PEM")
    if values.text(f"{store}.password"):
        raise values.error(f"{store}.password", f"a PEM store has no password: {no_password}")


def _client_auth(values: ListenerValues, *, has_sasl: bool) -> str:
    """Return `ssl.client.auth`; under SASL only the listener's own entry counts."""
    if has_sasl and not values.is_own(_CLIENT_AUTH):
        return "none"
    wanted = values.text(_CLIENT_AUTH)
    assert wanted is not None, "the key has a default"
    return wanted


def _versions(values: ListenerValues) -> tuple[str, ...]:
    wanted = values.strings(_PROTOCOLS)
    for name in wanted:
        if name not in _VERSIONS:
            problem = "is not secure" if name in _OLD_VERSIONS else "is no version of TLS"
            raise values.error(_PROTOCOLS, f"{name} {problem}; supported: {', '.join(_VERSIONS)}")
    return wanted or _VERSIONS


def _rules(values: ListenerValues) -> PrincipalRules:
    text = values.text(_RULES)
    try:
        return parse_principal_rules("DEFAULT" if text is None else text)
    except InvalidPrincipalRule as problem:
        raise values.error(_RULES, str(problem)) from problem
