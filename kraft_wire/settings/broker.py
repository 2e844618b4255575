"""The configuration keys of a node: those of release 4.3.1, and our own.

`BROKER_KEYS` are the keys of a properties file. `OWN_KEYS` are the ones that Kafka does not have:
limits that protect the server, on by default. `OWN_DEFAULTS` are Kafka's keys whose default is
stricter here, for the same reason, and one that is not stricter: the server's only thread accepts
sockets, so that more of them may have to wait. Everything else has Kafka's default.
"""

import re
from dataclasses import replace
from typing import Final

from kraft_wire.settings.definition import ConfigKey, UpdateMode
from kraft_wire.settings.key_tables import load_keys

__all__ = [
    "BROKER_KEYS",
    "CLUSTER_LISTENER_KEYS",
    "DYNAMIC_BROKER_KEYS",
    "FIXED_WHILE_RUNNING",
    "OWN_DEFAULTS",
    "OWN_KEYS",
    "STORE_KEYS",
    "is_listener_key",
    "listener_base_name",
    "node_number",
]

OWN_DEFAULTS: Final[dict[str, int]] = {
    "sasl.server.max.receive.size": 65_536,
    "queued.max.request.bytes": 268_435_456,
    "max.connections.per.ip": 1_000,
    "max.connection.creation.rate": 1_000,
    "socket.listen.backlog.size": 511,
}

OWN_KEYS: Final[dict[str, ConfigKey]] = load_keys("own_keys.json")

BROKER_KEYS: Final[dict[str, ConfigKey]] = {
    name: replace(key, default=OWN_DEFAULTS[name]) if name in OWN_DEFAULTS else key
    for name, key in sorted((load_keys("broker_keys.json") | OWN_KEYS).items())
}

DYNAMIC_BROKER_KEYS: Final[dict[str, ConfigKey]] = {
    name: key for name, key in BROKER_KEYS.items() if key.scope is not UpdateMode.READ_ONLY
} | load_keys("dynamic_broker_keys.json")
"""Keys that IncrementalAlterConfigs may set on a broker; three quotas are only here (KIP-73)."""

STORE_KEYS: Final = frozenset(
    {
        *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"),
        *("ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.password"),
        *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password"),
        "ssl.truststore.certificates",
    }
)
"""Keys of a listener's stores, which change while the node runs, with the prefix only (KIP-226)."""

CLUSTER_LISTENER_KEYS: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
"""Keys of a listener that may be set for all brokers, too."""

_NUMBER: Final = re.compile(r"[+-]?0*([0-9]{1,10})")
_NUMBER_LIMIT: Final = 1 << 31

FIXED_WHILE_RUNNING: Final = frozenset({"listeners", "listener.security.protocol.map"})
"""Dynamic in Kafka, which opens and closes sockets while it runs; here the file's value counts."""


def is_listener_key(name: str) -> bool:
    """Whether a name is a key of one listener: `listener.name.{listener}.{key}`."""
    return name.startswith("listener.name.") and name.count(".") >= 3


def listener_base_name(name: str) -> str:
    """Return the key that `listener.name.{listener}.{key}` overrides for its listener."""
    assert is_listener_key(name), name
    return name.split(".", 3)[3]


def node_number(name: str) -> int | None:
    """Return the number in a resource's name as Java's `parseInt` reads it, None without one."""
    found = _NUMBER.fullmatch(name)
    if found is None:
        return None
    number = -int(found[1]) if name.startswith("-") else int(found[1])
    return number if -_NUMBER_LIMIT <= number < _NUMBER_LIMIT else None
