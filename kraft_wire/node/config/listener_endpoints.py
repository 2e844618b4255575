"""A node's listeners, and the endpoints that `listeners` and `advertised.listeners` list."""

import re
from typing import Final, NamedTuple

from kraft_wire.node.config.sources import ConfigReader, is_number_up_to
from kraft_wire.settings.values import HOST

__all__ = [
    "ADVERTISED",
    "BETWEEN_NAME",
    "BETWEEN_PROTOCOL",
    "CONTROLLER_NAMES",
    "EVERY_ADDRESS",
    "LISTENERS",
    "Listener",
    "Listeners",
    "endpoints",
]

LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
CONTROLLER_NAMES: Final = "controller.listener.names"
BETWEEN_NAME: Final = "inter.broker.listener.name"
BETWEEN_PROTOCOL: Final = "security.inter.broker.protocol"
EVERY_ADDRESS: Final = ("0.0.0.0", "::")
"""Hosts that bind a listener to all addresses; no host does, too."""
_ADDRESS: Final = re.compile(rf"(\[{HOST}\]|{HOST}):([0-9]+)")
_PORT_MAX: Final = 65_535


class Listener(NamedTuple):
    """A listener: the address that the server binds, and the one that clients get."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: str = "PLAINTEXT"
    """Its security protocol; `config.security` has its settings."""


class Listeners(NamedTuple):
    """The listeners of a node."""

    clients: tuple[Listener, ...]
    controller: tuple[Listener, ...]
    """In the order of `controller.listener.names`: peers use the first."""
    controllers_protocol: str = "PLAINTEXT"
    """The protocol of the first one, on this node or another."""


def endpoints(reader: ConfigReader, key: str) -> list[tuple[str, str, int]]:
    """Return name in capitals, host without brackets, and port of each. Errors: ConfigError."""
    endpoints = [_endpoint(reader, key, text) for text in reader.strings(key)]
    names = [name for name, _, _ in endpoints]
    if len(set(names)) != len(names):
        raise reader.error(key, "each listener must have a different name")
    return endpoints


def _endpoint(reader: ConfigReader, key: str, text: str) -> tuple[str, str, int]:
    name, separator, address = text.rpartition("://")
    parts = _ADDRESS.fullmatch(address)
    if not (separator and name and parts and is_number_up_to(parts[2], _PORT_MAX)):
        raise reader.error(key, f"{text!r} is not NAME://host:port")
    return name.upper(), parts[1].strip("[]"), int(parts[2])
