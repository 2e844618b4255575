"""Listeners from `listeners`, `advertised.listeners` and related keys, checked together.

The rules are those of Kafka's KafkaConfig: names are unique, advertised listeners exist, clients
get an address that they can reach, and a node that is only a controller has no listener for
clients. A listener without a host is bound to all addresses and advertises the machine's name.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from kraft_wire.node.config.sources import ConfigReader, is_number_up_to
from kraft_wire.settings.node_settings import NodeSettings

__all__ = [
    "SECURITY_PROTOCOLS",
    "Listener",
    "Listeners",
    "inter_broker_listener",
    "loopback",
    "protocol_of",
    "read_listeners",
]

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""By the number that registrations have for them."""

_UNROUTABLE: Final = ("0.0.0.0", "::")
_PORT_MAX: Final = 65_535
_LISTENERS: Final = "listeners"
_ADVERTISED: Final = "advertised.listeners"
_CONTROLLER_NAMES: Final = "controller.listener.names"
_PROTOCOLS: Final = "listener.security.protocol.map"


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


def loopback() -> str:
    """Return the advertised host if the machine's name is not known."""
    return "127.0.0.1"


def read_listeners(
    reader: ConfigReader,
    host_name: Callable[[], str],
    *,
    is_broker: bool,
    is_controller: bool,
    is_embedded: bool,
) -> Listeners:
    """Return the listeners; `host_name` returns the machine's name. Errors: ConfigError."""
    bound = _endpoints(reader, _LISTENERS)
    if not bound:
        raise reader.error(_LISTENERS, "at least one listener is required")
    controller_names = [name.upper() for name in reader.strings(_CONTROLLER_NAMES)]
    advertised = {name: (host, port) for name, host, port in _endpoints(reader, _ADVERTISED)}
    names = [name for name, _, _ in bound]
    for name in advertised:
        if name not in names:
            raise reader.error(
                _ADVERTISED, f"{name} is in advertised.listeners, but not in listeners"
            )
    listeners = {}
    for name, host, port in bound:
        protocol = protocol_of(reader, name, _LISTENERS)
        shown_host, shown_port = advertised.get(name, (host, port))
        if shown_host in _UNROUTABLE and name not in controller_names:
            raise reader.error(
                _LISTENERS,
                f"{name} listens on all addresses, so advertised.listeners must contain an "
                "address that clients can reach",
            )
        shown_host = shown_host or host_name()
        listeners[name] = Listener(name, host or "0.0.0.0", port, shown_host, shown_port, protocol)
    found = Listeners(
        tuple(each for each in listeners.values() if each.name not in controller_names),
        tuple(listeners[name] for name in controller_names if name in listeners),
    )
    if not is_controller:
        _check_controllers_elsewhere(reader, found, controller_names)
    _check_kinds(reader, found, is_broker, is_controller and not is_embedded)
    if found.controller:
        return found._replace(controllers_protocol=found.controller[0].protocol)
    if is_controller:
        return found
    protocol = protocol_of(reader, controller_names[0], _CONTROLLER_NAMES)
    return found._replace(controllers_protocol=protocol)


def _check_controllers_elsewhere(
    reader: ConfigReader, found: Listeners, controller_names: list[str]
) -> None:
    """Check that a node that is only a broker has the controllers' protocols, and no controller."""
    if not controller_names:
        raise reader.error(
            _CONTROLLER_NAMES, "a broker needs the name of the controllers' listener"
        )
    if found.controller:
        raise reader.error(
            _CONTROLLER_NAMES,
            f"{found.controller[0].name} is in listeners, and this node is only a broker",
        )
    for name in controller_names:
        protocol_of(reader, name, _CONTROLLER_NAMES)


def _check_kinds(
    reader: ConfigReader, found: Listeners, is_broker: bool, needs_controller_listener: bool
) -> None:
    if is_broker and not found.clients:
        raise reader.error(_LISTENERS, "there is no listener for clients")
    if not is_broker and found.clients:
        raise reader.error(
            _LISTENERS,
            f"{found.clients[0].name} is not in controller.listener.names, and a node that is "
            "only a controller has no listener for clients",
        )
    if needs_controller_listener and not found.controller:
        raise reader.error(
            _CONTROLLER_NAMES,
            "a controller needs one of these names in listeners"
            if reader.strings(_CONTROLLER_NAMES)
            else "a controller needs its own listener, here and in listeners",
        )


def _endpoints(reader: ConfigReader, key: str) -> list[tuple[str, str, int]]:
    endpoints = [_endpoint(reader, key, text) for text in reader.strings(key)]
    names = [name for name, _, _ in endpoints]
    if len(set(names)) != len(names):
        raise reader.error(key, "each listener must have a different name")
    return endpoints


def _endpoint(reader: ConfigReader, key: str, text: str) -> tuple[str, str, int]:
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not (separator and colon and name and is_number_up_to(port, _PORT_MAX)):
        raise reader.error(key, f"{text!r} is not NAME://host:port")
    return name.upper(), host.strip("[]"), int(port)


def protocol_of(reader: ConfigReader, name: str, key: str) -> str:
    """Return a listener's security protocol: by the map, else its name. Errors: ConfigError.

    As in Kafka, a controller listener is PLAINTEXT if no map is set.
    """
    protocol = name
    for text in reader.strings(_PROTOCOLS):
        listed, _, mapped = text.partition(":")
        if listed.strip().upper() == name:
            protocol = mapped.strip().upper()
    is_controllers = name in [each.upper() for each in reader.strings(_CONTROLLER_NAMES)]
    if protocol == name and is_controllers and not reader.is_set(_PROTOCOLS):
        return SECURITY_PROTOCOLS[0]
    if protocol not in SECURITY_PROTOCOLS:
        choices = ", ".join(SECURITY_PROTOCOLS)
        raise reader.error(
            key, f"{name} has security protocol {protocol}, which is none: {choices}"
        )
    return protocol


def inter_broker_listener(
    settings: NodeSettings, listeners: tuple[Listener, ...]
) -> Listener | None:
    """Return the listener for requests between brokers, None on a node that is only a controller.

    Kafka refuses to start without a listener of that name; here the first one is used instead.
    """
    wanted = settings.text("inter.broker.listener.name")
    name = (wanted or settings.text("security.inter.broker.protocol") or "").upper()
    named = [each for each in listeners if each.name == name]
    return next(iter([*named, *listeners]), None)
