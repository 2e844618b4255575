"""The security protocol of each listener: `listener.security.protocol.map`, or a listener's name.

`AbstractKafkaConfig.effectiveListenerSecurityProtocolMap` of release 4.3.1 (KIP-103, KIP-801).
Errors are ConfigError.
"""

from typing import Final

from kraft_wire.node.config.sources import ConfigReader
from kraft_wire.settings.values import comma_entries

__all__ = ["SECURITY_PROTOCOLS", "protocol_of", "protocols_by_name"]

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""By the number that registrations have for them."""

_PROTECTED: Final = frozenset(SECURITY_PROTOCOLS[1:])
_MAP: Final = "listener.security.protocol.map"


def protocol_of(reader: ConfigReader, name: str, key: str) -> str:
    """Return the protocol of a listener that `key` names."""
    protocol = protocols_by_name(reader).get(name)
    if protocol is None:
        reason = f"{name} has no security protocol: add {name} to {_MAP}, as {name}:PLAINTEXT"
        raise reader.error(key, reason)
    return protocol


def protocols_by_name(reader: ConfigReader) -> dict[str, str]:
    """Return the protocols of all names that have one, in capitals."""
    found: dict[str, str] = {}
    for entry in comma_entries(str(reader.settings.value(_MAP) or "")):
        name, colon, protocol = (part.strip().upper() for part in entry.rpartition(":"))
        if not (colon and name):
            raise reader.error(_MAP, f"{entry!r} is not NAME:PROTOCOL")
        if protocol not in SECURITY_PROTOCOLS:
            reason = f"{protocol} is not a security protocol: {', '.join(SECURITY_PROTOCOLS)}"
            raise reader.error(_MAP, reason)
        if name in found:
            raise reader.error(_MAP, f"{name} is listed twice")
        found[name] = protocol
    if not reader.is_set(_MAP):
        found |= dict.fromkeys(_plaintext_controllers(reader), SECURITY_PROTOCOLS[0])
    return found


def _plaintext_controllers(reader: ConfigReader) -> list[str]:
    """Return the controllers' listeners if no listener is protected: then those need no map."""
    names = [name.upper() for name in reader.strings("controller.listener.names")]
    bound = [text.partition(":")[0].upper() for text in reader.strings("listeners")]
    return names if _PROTECTED.isdisjoint([*names, *bound]) else []
