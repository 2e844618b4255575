"""What one node is told to be: Kafka's keys out of a file, the environment and the command line.

Later sources win: `server.properties`, `KAFKA_…` variables as Apache's container image takes them
(KAFKA_NUM_PARTITIONS is num.partitions, two underscores are one, three are a dash), `--override`.
Without a file the node is embedded: one broker and controller on 127.0.0.1, with replication
factors of 1, that formats its own directory. A wrong value stops the start before anything is
touched.

Not here: what the keys mean (`settings`), dynamic values (`node`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.properties import parse_properties
from kraft_wire.settings.broker import BROKER_KEYS, is_listener_key
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.settings.values import InvalidConfigValue, parse_value

__all__ = [
    "LISTEN_OPTION",
    "ConfigError",
    "Listener",
    "NodeConfig",
    "Setting",
    "load_config",
    "settings_of_file",
]

_EMBEDDED: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "kraft-wire-data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
LISTEN_OPTION: Final = "--listen"
_ENVIRONMENT_PREFIX: Final = "KAFKA_"
_NOT_SETTINGS: Final = frozenset(
    {
        *("KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS"),
        *("KAFKA_LOG4J_OPTS", "KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_LOG4J_LOGGERS"),
        *("KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_JMX_OPTS", "KAFKA_JMX_PORT", "KAFKA_JMX_HOSTNAME"),
        *("KAFKA_DEBUG", "KAFKA_HOME", "KAFKA_VERSION", "KAFKA_CLUSTER_ID"),
    }
)
"""Variables of the container image that are not broker keys."""
_UNROUTABLE: Final = ("0.0.0.0", "::")
_PORT_MAX: Final = 65_535


class ConfigError(Exception):
    """A value that a node cannot start with; its text is the whole line that the user sees."""

    def __init__(self, key: str, value: str, place: str, reason: str) -> None:
        super().__init__(f"{place}: {key}={value}: {reason}")
        self.key = key
        self.value = value
        self.place = place
        self.reason = reason


class Setting(NamedTuple):
    """One entry with the place that an error message names."""

    value: str
    place: str


class Listener(NamedTuple):
    """A listener: where the server binds, and what clients are told."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """A checked configuration."""

    settings: NodeSettings
    node_id: int
    log_dirs: tuple[str, ...]
    listeners: tuple[Listener, ...]
    controller_listener: Listener | None
    """What the registered controller names as its endpoint; not served yet."""
    limits: ServerLimits
    metrics_port: int | None
    """Where `/metrics` is served on the first listener's host, 0 for a free port."""
    is_embedded: bool
    """Whether the node may format its own directory."""
    unknown_keys: tuple[str, ...] = ()

    def with_ports(self, ports: Mapping[str, int]) -> "NodeConfig":
        """Return the configuration with the ports that the operating system gave."""
        listeners = tuple(
            each._replace(
                port=ports[each.name], advertised_port=each.advertised_port or ports[each.name]
            )
            for each in self.listeners
        )
        return replace(self, listeners=listeners)


def settings_of_file(text: str, file_name: str) -> dict[str, Setting]:
    """Return a properties file's entries."""
    return {
        entry.key: Setting(entry.value, f"{file_name}:{entry.line}")
        for entry in parse_properties(text)
    }


def _settings_of_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    found = {}
    for variable in sorted(environment):
        if variable.startswith(_ENVIRONMENT_PREFIX) and variable not in _NOT_SETTINGS:
            name = variable.removeprefix(_ENVIRONMENT_PREFIX).lower()
            key = name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
            found[key] = Setting(environment[variable], f"environment variable {variable}")
    return found


def load_config(
    file: Mapping[str, Setting] | None,
    environment: Mapping[str, str],
    overrides: Sequence[tuple[str, Setting]] = (),
) -> NodeConfig:
    """Merge the sources and check everything that can be checked without touching the world.

    Errors: ConfigError for the first wrong value.
    """
    merged: dict[str, Setting] = {}
    if file is None:
        merged = {key: Setting(value, "embedded default") for key, value in _EMBEDDED.items()}
    merged |= file or {}
    merged |= _settings_of_environment(environment)
    merged |= dict(overrides)
    if "listeners" in merged and merged["listeners"].place == LISTEN_OPTION:
        merged.pop("advertised.listeners", None)  # it told of the listeners that were overridden
    known = {key: each for key, each in merged.items() if key in BROKER_KEYS}
    _check(known)
    settings = NodeSettings({key: each.value for key, each in known.items()})
    reader = _Reader(settings, merged)
    unknown = [key for key in merged if key not in BROKER_KEYS and not is_listener_key(key)]
    listeners = reader.listeners()
    return NodeConfig(
        settings=settings,
        node_id=reader.node_id(),
        log_dirs=reader.log_dirs(),
        listeners=tuple(each for each in listeners if each.name not in reader.controller_names),
        controller_listener=next(
            (each for each in listeners if each.name in reader.controller_names), None
        ),
        limits=_limits(settings),
        metrics_port=_metrics_port(settings),
        is_embedded=file is None,
        unknown_keys=tuple(sorted(unknown)),
    )


def _check(known: Mapping[str, Setting]) -> None:
    for key, setting in known.items():
        try:
            parse_value(BROKER_KEYS[key], setting.value)
        except InvalidConfigValue as error:
            raise ConfigError(key, setting.value, setting.place, error.reason) from error


class _Reader:
    """Takes the parts that need more than their own key out of the settings."""

    def __init__(self, settings: NodeSettings, merged: Mapping[str, Setting]) -> None:
        self._settings = settings
        self._merged = merged
        self.controller_names = frozenset(settings.strings("controller.listener.names"))

    def _error(self, key: str, reason: str) -> ConfigError:
        setting = self._merged.get(key, Setting("", "configuration"))
        return ConfigError(key, setting.value, setting.place, reason)

    def node_id(self) -> int:
        """Return `node.id`, and see that this process is broker and controller."""
        roles = sorted(self._settings.strings("process.roles"))
        if roles != ["broker", "controller"]:
            raise self._error("process.roles", "must be broker,controller: one node is both here")
        node_id = self._settings.value("node.id")
        if not isinstance(node_id, int) or node_id < 0:
            raise self._error("node.id", "a node id of 0 or more is required")
        return node_id

    def log_dirs(self) -> tuple[str, ...]:
        """Return `log.dirs`, else `log.dir`, without duplicates."""
        listed = self._strings("log.dirs") or self._strings("log.dir")
        if not listed:
            raise self._error("log.dirs", "at least one directory is required")
        metadata = self._settings.text("metadata.log.dir")
        if metadata and metadata.rstrip("/") != listed[0].rstrip("/"):
            raise self._error(
                "metadata.log.dir", f"the metadata log is in the first of log.dirs, {listed[0]}"
            )
        return tuple(dict.fromkeys(listed))

    def _strings(self, key: str) -> list[str]:
        """Return a value as a list, whether its key is a list or a text with commas."""
        value = self._settings.value(key)
        texts = value if isinstance(value, tuple) else str(value or "").split(",")
        return [text.strip() for text in texts if text.strip()]

    def listeners(self) -> list[Listener]:
        """Return the listeners with what is advertised of each."""
        bound = self._endpoints("listeners")
        if not bound:
            raise self._error("listeners", "at least one listener is required")
        advertised = {
            name: (host, port) for name, host, port in self._endpoints("advertised.listeners")
        }
        listeners = []
        for name, host, port in bound:
            self._check_protocol(name)
            shown_host, shown_port = advertised.get(name, (host or "127.0.0.1", port))
            if shown_host in _UNROUTABLE and name not in self.controller_names:
                raise self._error(
                    "listeners",
                    f"{name} listens on all addresses, so advertised.listeners must name one "
                    "that clients can reach",
                )
            listeners.append(Listener(name, host or "0.0.0.0", port, shown_host, shown_port))
        if all(each.name in self.controller_names for each in listeners):
            raise self._error("listeners", "no listener is left for clients")
        return listeners

    def _endpoints(self, key: str) -> list[tuple[str, str, int]]:
        endpoints = [self._endpoint(key, text) for text in self._strings(key)]
        names = [name for name, _, _ in endpoints]
        if len(set(names)) != len(names):
            raise self._error(key, "each listener must have a different name")
        return endpoints

    def _endpoint(self, key: str, text: str) -> tuple[str, str, int]:
        name, separator, address = text.partition("://")
        host, colon, port = address.rpartition(":")
        if not (separator and colon and name and port.isdecimal() and int(port) <= _PORT_MAX):
            raise self._error(key, f"{text!r} is not NAME://host:port")
        return name.upper(), host.strip("[]"), int(port)

    def _check_protocol(self, name: str) -> None:
        """Only plain text is served."""
        protocol = name
        for text in self._strings("listener.security.protocol.map"):
            listed, _, mapped = text.partition(":")
            if listed.upper() == name:
                protocol = mapped.upper()
        if protocol != "PLAINTEXT" and name not in self.controller_names:
            raise self._error("listeners", f"{name} asks for {protocol}; only PLAINTEXT is served")


def _metrics_port(settings: NodeSettings) -> int | None:
    port = settings.integer("metrics.port")
    return None if port == 0 else max(0, port)


def _limits(settings: NodeSettings) -> ServerLimits:
    number = settings.integer
    return ServerLimits(
        frame_bytes_max=number("socket.request.max.bytes"),
        metadata_frame_bytes_max=min(
            number("request.metadata.max.bytes"), number("socket.request.max.bytes")
        ),
        queued_bytes_max=number("queued.max.request.bytes"),
        unsent_bytes_max=number("connection.write.buffer.max.bytes"),
        idle_ms=number("connections.max.idle.ms"),
        handshake_ms=number("connection.handshake.timeout.ms"),
        read_bytes_per_second_min=number("connection.min.read.bytes.per.second"),
        connections_max=number("max.connections"),
        connections_per_ip_max=number("max.connections.per.ip"),
        connections_per_second_max=number("max.connection.creation.rate"),
    )
