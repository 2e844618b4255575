"""Listeners from `listeners`, `advertised.listeners` and related keys, checked together.

The rules are those of Kafka's KafkaConfig: names are unique, advertised listeners exist, clients
get an address that they can reach, and a node that is only a controller has no listener for
clients. A listener without a host is bound to all addresses and advertises the machine's name; the
first listener of a static voter advertises the voter's address instead.
"""

from collections.abc import Callable

from kraft_wire.node.config.listener_endpoints import (
    ADVERTISED,
    BETWEEN_NAME,
    BETWEEN_PROTOCOL,
    CONTROLLER_NAMES,
    EVERY_ADDRESS,
    LISTENERS,
    Listener,
    Listeners,
    endpoints,
)
from kraft_wire.node.config.listener_protocols import protocol_of
from kraft_wire.node.config.listener_rules import (
    check_advertised,
    check_between,
    check_controllers_elsewhere,
    check_early,
    check_kinds,
)
from kraft_wire.node.config.sources import ConfigReader
from kraft_wire.settings.node_settings import NodeSettings

__all__ = [
    "Listener",
    "Listeners",
    "inter_broker_listener",
    "loopback",
    "read_listeners",
]


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
    check_advertised(reader, found, is_broker=is_broker)
    controller_names = [name.upper() for name in reader.strings(CONTROLLER_NAMES)]
    if not is_controller:
        check_controllers_elsewhere(reader, found, controller_names)
    check_kinds(reader, found, is_broker, is_controller and not is_embedded)
    check_between(reader, found, is_broker=is_broker)
    check_early(reader, found)
    if found.controller:
        return found._replace(controllers_protocol=found.controller[0].protocol)
    if is_controller:
        return found
    protocol = protocol_of(reader, controller_names[0], CONTROLLER_NAMES)
    return found._replace(controllers_protocol=protocol)


def _all_listeners(
    reader: ConfigReader, host_name: Callable[[], str], voter_address: tuple[str, int] | None
) -> Listeners:
    bound = endpoints(reader, LISTENERS)
    if not bound:
        raise reader.error(LISTENERS, "at least one listener is required")
    controllers = [name.upper() for name in reader.strings(CONTROLLER_NAMES)]
    advertised = {name: (host, port) for name, host, port in endpoints(reader, ADVERTISED)}
    listeners = {}
    for name, host, port in bound:
        protocol = protocol_of(reader, name, LISTENERS)
        own = voter_address if controllers[:1] == [name] else None
        of_all = (own or ("", port)) if name in controllers else (host, port)
        shown = advertised.get(name, of_all if host in ("", *EVERY_ADDRESS) else (host, port))
        if shown[0] in EVERY_ADDRESS and name not in advertised:
            raise reader.error(
                LISTENERS,
                f"{name} listens on all addresses, so advertised.listeners must contain an "
                "address that clients can reach",
            )
        address = host or EVERY_ADDRESS[0], port, shown[0] or host_name(), shown[1]
        listeners[name] = Listener(name, *address, protocol)
    return Listeners(
        tuple(each for each in listeners.values() if each.name not in controllers),
        tuple(listeners[name] for name in controllers if name in listeners),
    )


def inter_broker_listener(
    settings: NodeSettings, listeners: tuple[Listener, ...]
) -> Listener | None:
    """Return the listener for requests between brokers, None on a node that is only a controller.

    If neither key names it and none is PLAINTEXT, which is the default, it is the first one; Kafka
    refuses to start.
    """
    wanted = settings.text(BETWEEN_NAME)
    name = (wanted or settings.text(BETWEEN_PROTOCOL) or "").upper()
    named = [each for each in listeners if each.name == name]
    return next(iter([*named, *listeners]), None)
