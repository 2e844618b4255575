"""The `ssl.*` keys of one listener: stores, versions, ciphers, clients' certificates.

The host reads the files (`tls.contexts`).
"""

from typing import Final

from kraft_wire.keystores.store import STORE_TYPES, Store, is_pem_type
from kraft_wire.node.config.listener_values import ListenerValues
from kraft_wire.node.config.security import TlsSettings
from kraft_wire.node.security.principal_rules import (
    InvalidPrincipalRule,
    PrincipalRules,
    parse_principal_rules,
)

__all__ = ["read_tls"]

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
        values.value("ssl.allow.dn.changes") is True,
        values.value("ssl.allow.san.changes") is True,
    )


def _key_store(values: ListenerValues, *, is_served: bool) -> Store | None:
    location = values.text("ssl.keystore.location")
    key, chain = values.text("ssl.keystore.key"), values.text("ssl.keystore.certificate.chain")
    if not location and not key and not is_served:
        return None
    if not location and not key:
        raise values.error(
            "ssl.keystore.location", f"listener {values.listener} needs a key and a certificate"
        )
    if location and (key or chain):
        raise values.error(
            "ssl.keystore.location", "the key is given twice: as a file and as ssl.keystore.key"
        )
    if key and not chain:
        raise values.error("ssl.keystore.certificate.chain", "the key has no certificate")
    if not location:
        return _text_store(values, "ssl.keystore", f"{key}\n{chain}\n")
    store = _file_store(values, "ssl.keystore", location, "only the key password may be given")
    if not store.is_pem and not store.password:
        raise values.error("ssl.keystore.password", "a JKS or PKCS12 key store needs its password")
    return store


def _trust_store(values: ListenerValues) -> Store | None:
    location = values.text("ssl.truststore.location")
    certificates = values.text("ssl.truststore.certificates")
    if not location and not certificates:
        if values.text("ssl.truststore.password"):
            raise values.error(
                "ssl.truststore.password", "there is no ssl.truststore.location that it belongs to"
            )
        return None
    if location and certificates:
        raise values.error(
            "ssl.truststore.location",
            "certificates are given twice: as a file and as ssl.truststore.certificates",
        )
    if certificates:
        return _text_store(values, "ssl.truststore", certificates)
    assert location, "one of both is given"
    return _file_store(values, "ssl.truststore", location, "certificates have none")


def _file_store(values: ListenerValues, store: str, location: str, no_password: str) -> Store:
    password = values.text(f"{store}.password") or None
    is_pem = _is_pem(values, store)
    if is_pem and password:
        raise values.error(f"{store}.password", f"a PEM store has no password: {no_password}")
    return Store(location, is_pem=is_pem, password=password)


def _text_store(values: ListenerValues, store: str, text: str) -> Store:
    if not _is_pem(values, store):
        raise values.error(f"{store}.type", "keys and certificates in the settings are PEM")
    if values.text(f"{store}.password"):
        raise values.error(f"{store}.password", f"there is no {store}.location that it belongs to")
    return Store(text=text)


def _is_pem(values: ListenerValues, store: str) -> bool:
    kind = values.text(f"{store}.type") or ""
    is_pem = is_pem_type(kind)
    if is_pem is None:
        raise values.error(f"{store}.type", f"it is none of {', '.join(STORE_TYPES)}")
    return is_pem


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
            problem = "is not secure" if name in _OLD_VERSIONS else "is not a version of TLS"
            raise values.error(_PROTOCOLS, f"{name} {problem}; supported: {', '.join(_VERSIONS)}")
    return wanted or _VERSIONS


def _rules(values: ListenerValues) -> PrincipalRules:
    text = values.text(_RULES)
    try:
        return parse_principal_rules("DEFAULT" if text is None else text)
    except InvalidPrincipalRule as problem:
        raise values.error(_RULES, str(problem)) from problem
