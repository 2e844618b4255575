"""Listeners from `listeners`, `advertised.listeners` and related keys, checked together.

The rules are those of Kafka's KafkaConfig: names are unique, advertised listeners exist, clients
get an address that they can reach, and a node that is only a controller has no listener for
clients. A listener without a host is bound to all addresses and advertises the machine's name; the
first listener of a static voter advertises the voter's address instead.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from kraft_wire.node.config.listener_protocols import SECURITY_PROTOCOLS, protocol_of
from kraft_wire.node.config.sources import ConfigReader, is_number_up_to
from kraft_wire.settings.joint_rules import HOST
from kraft_wire.settings.node_settings import NodeSettings

__all__ = [
    "Listener",
    "Listeners",
    "inter_broker_listener",
    "loopback",
    "read_listeners",
]

_EVERY_ADDRESS: Final = ("0.0.0.0", "::")
_PORT_MAX: Final = 65_535
_LISTENERS: Final = "listeners"
_ADVERTISED: Final = "advertised.listeners"
_CONTROLLER_NAMES: Final = "controller.listener.names"
_BETWEEN_NAME: Final = "inter.broker.listener.name"
_BETWEEN_PROTOCOL: Final = "security.inter.broker.protocol"
_EARLY: Final = "early.start.listeners"
_ADDRESS: Final = re.compile(rf"(\[{HOST}\]|{HOST}):([0-9]+)")


class Listener(NamedTuple):
    """A listener: the address that the server binds, and the one that clients get."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: str = "PLAINTEXT"
    """Its security protocol; `config.security` has its settings."""
    is_advertised: bool = True
    """Whether clients are told of it: not if `advertised.listeners` has only others."""


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
    voter_address: tuple[str, int] | None = None,
    *,
    is_broker: bool,
    is_controller: bool,
    is_embedded: bool,
) -> Listeners:
    """Return the listeners. Errors: ConfigError.

    `host_name` returns the machine's name, `voter_address` is this node's in
    `controller.quorum.voters`.
    """
    found = _all_listeners(reader, host_name, voter_address)
    _check_advertised(reader, found, is_broker=is_broker)
    controller_names = [name.upper() for name in reader.strings(_CONTROLLER_NAMES)]
    if not is_controller:
        _check_controllers_elsewhere(reader, found, controller_names)
    _check_kinds(reader, found, is_broker, is_controller and not is_embedded)
    _check_between(reader, found, is_broker=is_broker)
    _check_early(reader, found)
    if found.controller:
        return found._replace(controllers_protocol=found.controller[0].protocol)
    if is_controller:
        return found
    protocol = protocol_of(reader, controller_names[0], _CONTROLLER_NAMES)
    return found._replace(controllers_protocol=protocol)


def _all_listeners(
    reader: ConfigReader, host_name: Callable[[], str], voter_address: tuple[str, int] | None
) -> Listeners:
    bound = _endpoints(reader, _LISTENERS)
    if not bound:
        raise reader.error(_LISTENERS, "at least one listener is required")
    controller_names = [name.upper() for name in reader.strings(_CONTROLLER_NAMES)]
    advertised = {name: (host, port) for name, host, port in _endpoints(reader, _ADVERTISED)}
    listeners = {}
    for name, host, port in bound:
        protocol = protocol_of(reader, name, _LISTENERS)
        is_controllers = name in controller_names
        shown_host, shown_port = advertised.get(name, (host, port))
        if is_controllers and name not in advertised and host in ("", *_EVERY_ADDRESS):
            own = voter_address if name == controller_names[0] else None
            shown_host, shown_port = own or ("", port)
        is_advertised = is_controllers or not advertised or name in advertised
        if is_advertised and shown_host in _EVERY_ADDRESS and name not in advertised:
            raise reader.error(
                _LISTENERS,
                f"{name} listens on all addresses, so advertised.listeners must contain an "
                "address that clients can reach",
            )
        listeners[name] = Listener(
            name,
            host or _EVERY_ADDRESS[0],
            port,
            shown_host or host_name(),
            shown_port,
            protocol,
            is_advertised,
        )
    return Listeners(
        tuple(each for each in listeners.values() if each.name not in controller_names),
        tuple(listeners[name] for name in controller_names if name in listeners),
    )


def _check_advertised(reader: ConfigReader, found: Listeners, *, is_broker: bool) -> None:
    """Check that a broker binds what it advertises; it may name a controllers' listener."""
    names = {each.name for each in found.clients + found.controller}
    elsewhere = [name.upper() for name in reader.strings(_CONTROLLER_NAMES)]
    for name, host, _ in _endpoints(reader, _ADVERTISED):
        if host in _EVERY_ADDRESS:
            raise reader.error(_ADVERTISED, f"{host} is not an address that clients can reach")
        protocol_of(reader, name, _ADVERTISED)
        if is_broker and name not in names and name not in elsewhere:
            raise reader.error(
                _ADVERTISED, f"{name} is in advertised.listeners, but not in listeners"
            )


def _check_between(reader: ConfigReader, found: Listeners, *, is_broker: bool) -> None:
    """Check the listener between brokers, if one is named: `interBrokerListenerName`."""
    name = reader.settings.text(_BETWEEN_NAME)
    key = _BETWEEN_PROTOCOL if name is None else _BETWEEN_NAME
    if not reader.is_set(key):
        return
    if name is not None and reader.is_set(_BETWEEN_PROTOCOL):
        reason = f"only one of {_BETWEEN_NAME} and {_BETWEEN_PROTOCOL} should be set"
        raise reader.error(_BETWEEN_PROTOCOL, reason)
    wanted = (reader.settings.text(key) or "").upper()
    if name is not None:
        protocol_of(reader, wanted, _BETWEEN_NAME)
    elif wanted not in SECURITY_PROTOCOLS:
        raise reader.error(key, f"{wanted} is not a security protocol")
    if name is not None and wanted in [each.name for each in found.controller]:
        raise reader.error(key, f"{wanted} is a listener of controllers")
    advertised = [each.name for each in found.clients if each.is_advertised]
    if is_broker and wanted not in advertised:
        reason = f"{wanted} is none of the advertised listeners: {', '.join(advertised)}"
        raise reader.error(key, reason)


def _check_early(reader: ConfigReader, found: Listeners) -> None:
    names = [each.name for each in found.clients + found.controller]
    for name in reader.strings(_EARLY):
        if name not in names:
            raise reader.error(_EARLY, f"{name} is not in listeners")


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
    if is_broker and not any(each.is_advertised for each in found.clients):
        raise reader.error(_ADVERTISED, "there is no listener for clients")
    if not is_broker and found.clients:
        raise reader.error(
            _LISTENERS,
            f"{found.clients[0].name} is not in controller.listener.names, and a node that is "
            "only a controller has no listener for clients",
        )
    if needs_controller_listener:
        _check_own_controller(reader, found)


def _check_own_controller(reader: ConfigReader, found: Listeners) -> None:
    names = reader.strings(_CONTROLLER_NAMES)
    if not found.controller:
        raise reader.error(
            _CONTROLLER_NAMES,
            "a controller needs one of these names in listeners"
            if names
            else "a controller needs its own listener, here and in listeners",
        )
    bound = [each.name for each in found.controller]
    absent = [name for name in names if name.upper() not in bound]
    if absent:
        raise reader.error(_CONTROLLER_NAMES, f"{absent[0]} is not in listeners")


def _endpoints(reader: ConfigReader, key: str) -> list[tuple[str, str, int]]:
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


def inter_broker_listener(
    settings: NodeSettings, listeners: tuple[Listener, ...]
) -> Listener | None:
    """Return the listener for requests between brokers, None on a node that is only a controller.

    If neither key names it and none is PLAINTEXT, which is the default, it is the first one; Kafka
    refuses to start.
    """
    wanted = settings.text(_BETWEEN_NAME)
    name = (wanted or settings.text(_BETWEEN_PROTOCOL) or "").upper()
    advertised = [each for each in listeners if each.is_advertised]
    named = [each for each in advertised if each.name == name]
    return next(iter([*named, *advertised]), None)
