"""Reads the security settings of a node's listeners: TLS, SASL, both or neither.

All checks that need no file are done here, so that an invalid value stops the start with one line.
A key for one listener overrides the same key for all.
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.login.jaas import LOGIN_MODULES, InvalidJaas, LoginEntry, parse_jaas
from kraft_wire.node.config.link_token_reading import read_link_tokens
from kraft_wire.node.config.listener_values import ListenerValues
from kraft_wire.node.config.listeners import Listener, Listeners, inter_broker_listener
from kraft_wire.node.config.oauth_reading import read_tokens
from kraft_wire.node.config.security import LinkSecurity, ListenerSecurity, SaslSettings
from kraft_wire.node.config.sources import ConfigReader
from kraft_wire.node.config.tls_reading import read_tls
from kraft_wire.node.security.mechanisms import OAUTHBEARER, PLAIN

__all__ = ["read_links", "read_security"]

_MECHANISMS: Final = "sasl.enabled.mechanisms"
_DELAY: Final = "connection.failed.authentication.delay.ms"
_SESSION: Final = "connections.max.reauth.ms"
_ENTRY: Final = "sasl.jaas.config"
_BROKERS_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
_CONTROLLERS_MECHANISM: Final = "sasl.mechanism.controller.protocol"
_CLASSES: Final = (
    "sasl.server.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "ssl.engine.factory.class",
)
"""Kafka's keys for Java plug-ins."""
_JAVA: Final = "Java classes cannot be loaded"


def read_security(
    reader: ConfigReader, listeners: tuple[Listener, ...]
) -> dict[str, ListenerSecurity]:
    """Return the security of listeners that are not plaintext, by name. Errors: ConfigError."""
    return {
        each.name: _read(ListenerValues(reader, each.name), each.protocol)
        for each in listeners
        if each.protocol != "PLAINTEXT"
    }


def read_links(
    reader: ConfigReader, listeners: Listeners, security: Mapping[str, ListenerSecurity]
) -> dict[str, LinkSecurity]:
    """Return the security of links: to brokers by their listener's name, to controllers by "".

    Errors: ConfigError.
    """
    links = {}
    brokers = inter_broker_listener(reader.settings, listeners.clients)
    if brokers is not None and brokers.protocol != "PLAINTEXT":
        sasl = security[brokers.name].sasl
        enabled = () if sasl is None else sasl.mechanisms
        values = ListenerValues(reader, brokers.name)
        links[brokers.name] = _read_link(values, brokers.protocol, _BROKERS_MECHANISM, enabled)
    if listeners.controllers_protocol != "PLAINTEXT":
        values = ListenerValues(reader, reader.strings("controller.listener.names")[0].upper())
        protocol = listeners.controllers_protocol
        links[""] = _read_link(values, protocol, _CONTROLLERS_MECHANISM, None)
    return links


def _read(values: ListenerValues, protocol: str) -> ListenerSecurity:
    for key in _CLASSES:
        if values.value(key) is not None:
            raise values.error(key, _JAVA)
    is_sasl = protocol.startswith("SASL")
    tls = read_tls(values, has_sasl=is_sasl, is_served=True) if protocol.endswith("SSL") else None
    return ListenerSecurity(protocol, tls, _read_sasl(values) if is_sasl else None)


def _read_sasl(values: ListenerValues) -> SaslSettings:
    mechanisms = values.strings(_MECHANISMS)
    supported = ", ".join(LOGIN_MODULES)
    for name in mechanisms:
        if name not in LOGIN_MODULES:
            raise values.error(
                _MECHANISMS,
                f"listener {values.listener} cannot offer {name}; supported: {supported}",
            )
    if not mechanisms:
        raise values.error(_MECHANISMS, f"listener {values.listener} needs one of {supported}")
    entries = {name: _entry(values, name) for name in mechanisms}
    accounts = entries[PLAIN].options if PLAIN in entries else {}
    tokens = None
    if OAUTHBEARER in entries:
        tokens = read_tokens(values.of_mechanism(OAUTHBEARER), entries[OAUTHBEARER].options)
    return SaslSettings(
        mechanisms,
        {
            key.removeprefix("user_"): password
            for key, password in accounts.items()
            if key.startswith("user_")
        },
        values.integer("sasl.server.max.receive.size"),
        values.integer(_DELAY),
        {name: max(0, values.of_mechanism(name).integer(_SESSION)) for name in mechanisms},
        tokens,
    )


def _read_link(
    values: ListenerValues, protocol: str, mechanism_key: str, enabled: tuple[str, ...] | None
) -> LinkSecurity:
    """Return the security of links to a listener; `enabled` are its mechanisms, if known.

    Errors: ConfigError.
    """
    is_sasl = protocol.startswith("SASL")
    tls = None
    if protocol.endswith("SSL"):
        tls = read_tls(values, has_sasl=is_sasl, is_served=False)
    if not is_sasl:
        return LinkSecurity(protocol, tls)
    mechanism = values.text(mechanism_key) or ""
    usable = [name for name in LOGIN_MODULES if enabled is None or name in enabled]
    if mechanism not in usable:
        choices = ", ".join(usable)
        raise values.error(
            mechanism_key, f"listener {values.listener} cannot be dialled so; use one of {choices}"
        )
    options = _entry(values, mechanism).options
    if mechanism == OAUTHBEARER:
        tokens = read_link_tokens(values.of_mechanism(mechanism), options)
        return LinkSecurity(protocol, tls, mechanism, tokens=tokens)
    if not options.get("username") or "password" not in options:
        key = f"{mechanism.lower()}.{_ENTRY}"
        raise values.own_error(key, "this node needs a username and a password of its own there")
    return LinkSecurity(protocol, tls, mechanism, options["username"], options["password"])


def _entry(values: ListenerValues, mechanism: str) -> LoginEntry:
    key = f"{mechanism.lower()}.{_ENTRY}"
    text = values.own_text(key)
    if text is None:
        raise values.own_error(key, f"the mechanism {mechanism} needs a login entry")
    try:
        entry = parse_jaas(text)
    except InvalidJaas as problem:
        raise values.own_error(key, str(problem)) from problem
    handler = f"{mechanism.lower()}.{_CLASSES[0]}"
    if mechanism != OAUTHBEARER and values.own_text(handler) is not None:
        raise values.own_error(handler, _JAVA)
    module = LOGIN_MODULES[mechanism]
    if entry.module != module:
        raise values.own_error(key, f"the login module of {mechanism} is {module}")
    return entry
