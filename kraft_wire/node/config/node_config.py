"""The configuration of one node: Kafka's keys from a file, the environment and the command line.

Later sources override earlier ones: `server.properties`, `KAFKA_…` variables as Apache's container
image takes them (KAFKA_NUM_PARTITIONS is num.partitions, two underscores are one, three are a
dash), `--override`. Without a file the node is embedded: one broker and controller on 127.0.0.1,
with replication factors of 1, that formats its own directory. An invalid value stops the start
before any file changes.

Not here: what the keys mean (`settings`), dynamic values (`node`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from kraft_wire.frozen import frozen
from kraft_wire.node.config.authorizer import (
    AUTHORIZER_KEYS,
    AuthorizerSettings,
    read_authorizer,
)
from kraft_wire.node.config.directories import metadata_log_dir, read_log_dirs
from kraft_wire.node.config.group_bounds import check_groups
from kraft_wire.node.config.listener_endpoints import BETWEEN_NAME, BETWEEN_PROTOCOL
from kraft_wire.node.config.listener_values import ListenerValues
from kraft_wire.node.config.listeners import (
    Listener,
    Listeners,
    inter_broker_listener,
    loopback,
    read_listeners,
)
from kraft_wire.node.config.log_times import check_log_times
from kraft_wire.node.config.quorum_rules import (
    QuorumAddress,
    check_quorum,
    read_bootstrap_servers,
    read_roles,
    read_voters,
)
from kraft_wire.node.config.security import LinkSecurity, ListenerSecurity
from kraft_wire.node.config.sources import (
    ConfigError,
    ConfigReader,
    Setting,
    settings_of_environment,
    settings_of_file,
)
from kraft_wire.node.limits import UNBOUNDED, ServerLimits, listener_entries, server_limits
from kraft_wire.settings.broker import BROKER_KEYS, is_listener_key
from kraft_wire.settings.joint_rules import joint_problem
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.settings.values import InvalidConfigValue, parse_value
from kraft_wire.wire.structs import DecodeLimits

__all__ = [
    "LISTEN_OPTION",
    "ConfigError",
    "Listener",
    "NodeConfig",
    "Setting",
    "load_config",
    "settings_of_file",
]

_BUILDER: Final = "principal.builder.class"
_KNOWN_BUILDER: Final = "DefaultKafkaPrincipalBuilder"
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
_NAMES_OF_LISTENERS: Final = (BETWEEN_NAME, BETWEEN_PROTOCOL, "early.start.listeners")


@frozen
class NodeConfig:
    """A checked configuration."""

    settings: NodeSettings
    node_id: int
    log_dirs: tuple[str, ...]
    """`log.dirs`, else `log.dir`, each once."""
    listeners: tuple[Listener, ...]
    """For clients; none on a node that is only a controller."""
    metrics_port: int | None
    """Where `/metrics` is served on the first listener's host, 0 for a free port."""
    is_embedded: bool
    """Whether the node may format its own directory."""
    roles: tuple[str, ...] = ("broker", "controller")
    """`process.roles`, in alphabetic order."""
    controller_listeners: tuple[Listener, ...] = ()
    """Those of `controller.listener.names`, in that order; none on a node that is only a broker,
    and an embedded node may have none."""
    voters: tuple[QuorumAddress, ...] = ()
    """`controller.quorum.voters`."""
    bootstrap_servers: tuple[QuorumAddress, ...] = ()
    """`controller.quorum.bootstrap.servers`."""
    authorizer: AuthorizerSettings | None = None
    """None where every operation is allowed."""
    security: Mapping[str, ListenerSecurity] = field(default_factory=dict, repr=False)
    """The security of each listener, by name."""
    links: Mapping[str, LinkSecurity] = field(default_factory=dict, repr=False)
    """The security of this node's links, by listener; "": the controllers'. Plaintext is absent."""
    reader: ConfigReader | None = field(default=None, repr=False)
    """The entries themselves if a listener is not plaintext: its stores may change (KIP-226)."""
    listener_entries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Limits of connections that a listener has for itself, as text, by listener and key."""
    unknown_keys: tuple[str, ...] = ()
    """Keys without effect: unknown ones, and those that are valid only for one listener."""
    connections_possible: int = UNBOUNDED
    """Connections that the process has descriptors for, an upper limit of `max.connections`."""

    @property
    def limits(self) -> ServerLimits:
        """The limits of the sockets, without dynamic settings."""
        return server_limits(
            self.settings, self.connections_possible, listener_entries=self.listener_entries
        )

    @property
    def decode_limits(self) -> DecodeLimits:
        """The limits of decoding one message of a peer."""
        return DecodeLimits(
            elements=self.settings.integer("request.max.elements"),
            tagged_fields=self.settings.integer("request.tagged.fields.max"),
            tagged_bytes=self.settings.integer("request.tagged.fields.max.bytes"),
        )

    @property
    def metadata_dir(self) -> str:
        """The directory of the metadata log: `metadata.log.dir`, or the first of `log_dirs`."""
        return metadata_log_dir(self.settings, self.log_dirs)

    @property
    def all_dirs(self) -> tuple[str, ...]:
        """Every directory of this node, those of `log.dirs` first."""
        return tuple(dict.fromkeys([*self.log_dirs, self.metadata_dir]))

    @property
    def is_broker(self) -> bool:
        """Whether clients' records are served here."""
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        """Whether this node is a controller; other nodes only follow the metadata."""
        return "controller" in self.roles

    @property
    def controller_listener(self) -> Listener | None:
        """The listeners for the quorum's peers and for brokers."""
        return next(iter(self.controller_listeners), None)

    @property
    def all_listeners(self) -> tuple[Listener, ...]:
        """All bound listeners, those for clients first."""
        return self.listeners + self.controller_listeners

    @property
    def protected_listeners(self) -> frozenset[str]:
        """Listeners whose connections others cannot keep out: between brokers, of controllers.

        A listener for everybody is not protected.
        """
        protected = [each.name for each in self.controller_listeners if self.is_broker]
        between = inter_broker_listener(self.settings, self.listeners)
        if between is not None and len(self.listeners) > 1:
            protected.append(between.name)
        return frozenset(protected)

    @property
    def listener_protocols(self) -> dict[str, str]:
        """The security protocol of each listener, by name."""
        return {each.name: each.protocol for each in self.all_listeners}

    def with_ports(self, ports: Mapping[str, int]) -> "NodeConfig":
        """Return the configuration with the ports that the operating system chose."""
        return replace(
            self,
            listeners=_with_ports(self.listeners, ports),
            controller_listeners=_with_ports(self.controller_listeners, ports),
        )


def _with_ports(listeners: tuple[Listener, ...], ports: Mapping[str, int]) -> tuple[Listener, ...]:
    bound = [each._replace(port=ports.get(each.name, each.port)) for each in listeners]
    return tuple(each._replace(advertised_port=each.advertised_port or each.port) for each in bound)


def load_config(
    file: Mapping[str, Setting] | None,
    environment: Mapping[str, str],
    overrides: Sequence[tuple[str, Setting]] = (),
    *,
    file_name: str = "configuration",
    host_name: Callable[[], str] = loopback,
) -> NodeConfig:
    """Merge the sources and check all values that can be checked without files or network.

    `host_name` is called for a listener without a host. Errors: ConfigError for the first invalid
    value; for a missing one it names `file_name`.
    """
    merged: dict[str, Setting] = {}
    if file is None:
        merged = {key: Setting(value, "embedded default") for key, value in _EMBEDDED.items()}
    merged |= file or {}
    merged |= settings_of_environment(environment)
    for key, setting in overrides:
        merged[key] = setting
        if setting.place == LISTEN_OPTION:
            _keep_controllers(merged, file or {})
    known = {key: each for key, each in merged.items() if key in BROKER_KEYS}
    _check(known)
    settings = NodeSettings({key: each.value for key, each in known.items()})
    reader = ConfigReader(settings, merged, file_name)
    return _read(reader, merged, host_name, is_embedded=file is None)


def _keep_controllers(merged: dict[str, Setting], file: Mapping[str, Setting]) -> None:
    """Replace the listeners for clients by those of `--listen`."""
    names = [name.strip().upper() for name in _texts(merged, "controller.listener.names")]
    option, place = merged["listeners"]
    for key in ("listeners", "advertised.listeners"):
        kept = [
            text for text in _texts(file, key) if text.strip().partition("://")[0].upper() in names
        ]
        if kept or key == "listeners":
            merged[key] = Setting(",".join([option, *kept]), place)
        else:
            merged.pop(key, None)
    for key in _NAMES_OF_LISTENERS:
        if key in file and merged[key] == file[key]:
            del merged[key]  # it may name one that was replaced


def _texts(entries: Mapping[str, Setting], key: str) -> list[str]:
    return entries[key].value.split(",") if key in entries else []


def _read(
    reader: ConfigReader,
    merged: Mapping[str, Setting],
    host_name: Callable[[], str],
    *,
    is_embedded: bool,
) -> NodeConfig:
    """Check the parts that depend on several keys."""
    roles = read_roles(reader)
    node_id = reader.settings.value("node.id")
    if not isinstance(node_id, int) or node_id < 0:
        raise reader.error("node.id", "a node id of 0 or more is required")
    voters, bootstrap_servers = read_voters(reader), read_bootstrap_servers(reader)
    is_controller = "controller" in roles
    check_quorum(
        reader,
        node_id,
        voters,
        bootstrap_servers,
        is_controller=is_controller,
        is_embedded=is_embedded,
    )
    check_log_times(reader)
    _check_together(reader, is_broker="broker" in roles)
    check_groups(reader)
    own_address = {voter.node_id: (voter.host, voter.port) for voter in voters}.get(node_id)
    listeners = read_listeners(
        reader,
        host_name,
        own_address,
        is_broker="broker" in roles,
        is_controller=is_controller,
        is_embedded=is_embedded,
    )
    known = (*BROKER_KEYS, *AUTHORIZER_KEYS)
    unknown = [key for key in merged if key not in known and not is_listener_key(key)]
    security, links = _read_security(reader, listeners)
    return NodeConfig(
        settings=reader.settings,
        node_id=node_id,
        log_dirs=read_log_dirs(reader, is_broker="broker" in roles),
        listeners=listeners.clients,
        metrics_port=_metrics_port(reader.settings),
        is_embedded=is_embedded,
        roles=roles,
        controller_listeners=listeners.controller,
        voters=voters,
        bootstrap_servers=bootstrap_servers,
        authorizer=read_authorizer(reader, merged),
        security=security,
        links=links,
        reader=reader if security else None,
        listener_entries=_listener_entries(reader, merged, listeners),
        unknown_keys=tuple(sorted([*unknown, *_without_effect(merged, security)])),
    )


def _check_together(reader: ConfigReader, *, is_broker: bool) -> None:
    """Raise ConfigError for settings that are valid one by one, but not together."""
    problem = joint_problem(reader.settings, is_broker=is_broker)
    if problem is not None:
        raise reader.error(problem.key, problem.words)


def _read_security(
    reader: ConfigReader, listeners: Listeners
) -> tuple[dict[str, ListenerSecurity], dict[str, LinkSecurity]]:
    """Return the security of listeners and of links; empty if all are plaintext."""
    for each in listeners.clients + listeners.controller:
        _refuse_other_principals(ListenerValues(reader, each.name))
    protocols = {each.protocol for each in listeners.clients + listeners.controller}
    if protocols | {listeners.controllers_protocol} == {"PLAINTEXT"}:
        return {}, {}
    from kraft_wire.node.config import security_reading as reading  # most nodes do not use it

    security = reading.read_security(reader, listeners.clients + listeners.controller)
    return security, reading.read_links(reader, listeners, security)


def _refuse_other_principals(values: ListenerValues) -> None:
    """Raise ConfigError if a listener's principals come from a class of Java, plaintext too.

    Its rules may be all that decides who is anonymous.
    """
    if not str(values.value(_BUILDER)).endswith(f".{_KNOWN_BUILDER}"):
        raise values.error(_BUILDER, f"only {_KNOWN_BUILDER} is supported")


def _listener_entries(
    reader: ConfigReader, merged: Mapping[str, Setting], listeners: Listeners
) -> dict[str, dict[str, str]]:
    """Return the limits of listeners. Errors: ConfigError."""
    names = [each.name for each in listeners.clients + listeners.controller]
    found = listener_entries(names, {key: each.value for key, each in merged.items()})
    for name, entries in found.items():
        for key in entries:
            ListenerValues(reader, name).value(key)
    return found


def _without_effect(
    merged: Mapping[str, Setting], security: Mapping[str, ListenerSecurity]
) -> list[str]:
    """Return keys that are valid only with the prefix of a listener (KIP-85, KIP-684)."""
    is_plain_tls = any(each.protocol == "SSL" for each in security.values())
    has_tls = any(each.tls is not None for each in security.values())
    keys = ["sasl.jaas.config"]
    if has_tls and not is_plain_tls:
        keys.append("ssl.client.auth")
    return [key for key in keys if key in merged]


def _check(known: Mapping[str, Setting]) -> None:
    for key, setting in known.items():
        try:
            parse_value(BROKER_KEYS[key], setting.value)
        except InvalidConfigValue as error:
            raise ConfigError(key, setting.value, setting.place, error.reason) from error


def _metrics_port(settings: NodeSettings) -> int | None:
    port = settings.integer("metrics.port")
    return None if port == 0 else max(0, port)
