"""What 4.3.1 refuses about listeners that are readable one by one: `KafkaConfig.validateValues`.

Errors are ConfigError, naming the entry to change.
"""

from typing import Final

from kraft_wire.node.config.listener_endpoints import (
    ADVERTISED,
    BETWEEN_NAME,
    BETWEEN_PROTOCOL,
    CONTROLLER_NAMES,
    EVERY_ADDRESS,
    LISTENERS,
    Listeners,
    endpoints,
)
from kraft_wire.node.config.listener_protocols import SECURITY_PROTOCOLS, protocol_of
from kraft_wire.node.config.sources import ConfigReader

__all__ = [
    "check_advertised",
    "check_between",
    "check_controllers_elsewhere",
    "check_early",
    "check_kinds",
]

_EARLY: Final = "early.start.listeners"


def check_advertised(reader: ConfigReader, found: Listeners, *, is_broker: bool) -> None:
    """Check that a broker binds what it advertises; it may name a controllers' listener."""
    names = {each.name for each in found.clients + found.controller}
    elsewhere = [name.upper() for name in reader.strings(CONTROLLER_NAMES)]
    for name, host, _ in endpoints(reader, ADVERTISED):
        if host in EVERY_ADDRESS:
            raise reader.error(ADVERTISED, f"{host} is not an address that clients can reach")
        protocol_of(reader, name, ADVERTISED)
        if is_broker and name not in names and name not in elsewhere:
            raise reader.error(
                ADVERTISED, f"{name} is in advertised.listeners, but not in listeners"
            )


def check_between(reader: ConfigReader, found: Listeners, *, is_broker: bool) -> None:
    """Check the listener between brokers, if one is named: `interBrokerListenerName`."""
    name = reader.settings.text(BETWEEN_NAME)
    key = BETWEEN_PROTOCOL if name is None else BETWEEN_NAME
    if not reader.is_set(key):
        return
    if name is not None and reader.is_set(BETWEEN_PROTOCOL):
        reason = f"only one of {BETWEEN_NAME} and {BETWEEN_PROTOCOL} should be set"
        raise reader.error(BETWEEN_PROTOCOL, reason)
    wanted = (reader.settings.text(key) or "").upper()
    if name is not None:
        protocol_of(reader, wanted, BETWEEN_NAME)
    elif wanted not in SECURITY_PROTOCOLS:
        raise reader.error(key, f"{wanted} is not a security protocol")
    if name is not None and wanted in [each.name for each in found.controller]:
        raise reader.error(key, f"{wanted} is a listener of controllers")
    names = [each.name for each in found.clients]
    if is_broker and wanted not in names:
        reason = f"{wanted} is none of the listeners for clients: {', '.join(names)}"
        raise reader.error(key, reason)


def check_early(reader: ConfigReader, found: Listeners) -> None:
    names = [each.name for each in found.clients + found.controller]
    for name in reader.strings(_EARLY):
        if name not in names:
            raise reader.error(_EARLY, f"{name} is not in listeners")


def check_controllers_elsewhere(
    reader: ConfigReader, found: Listeners, controller_names: list[str]
) -> None:
    """Check that a node that is only a broker has the controllers' protocols, and no controller."""
    if not controller_names:
        raise reader.error(CONTROLLER_NAMES, "a broker needs the name of the controllers' listener")
    if found.controller:
        raise reader.error(
            CONTROLLER_NAMES,
            f"{found.controller[0].name} is in listeners, and this node is only a broker",
        )
    for name in controller_names:
        protocol_of(reader, name, CONTROLLER_NAMES)


def check_kinds(
    reader: ConfigReader, found: Listeners, is_broker: bool, needs_controller_listener: bool
) -> None:
    if is_broker and not found.clients:
        raise reader.error(LISTENERS, "there is no listener for clients")
    if not is_broker and found.clients:
        raise reader.error(
            LISTENERS,
            f"{found.clients[0].name} is not in controller.listener.names, and a node that is "
            "only a controller has no listener for clients",
        )
    if needs_controller_listener:
        _check_own_controller(reader, found)


def _check_own_controller(reader: ConfigReader, found: Listeners) -> None:
    names = reader.strings(CONTROLLER_NAMES)
    if not found.controller:
        raise reader.error(
            CONTROLLER_NAMES,
            "a controller needs one of these names in listeners"
            if names
            else "a controller needs its own listener, here and in listeners",
        )
    bound = [each.name for each in found.controller]
    absent = [name for name in names if name.upper() not in bound]
    if absent:
        raise reader.error(CONTROLLER_NAMES, f"{absent[0]} is not in listeners")
