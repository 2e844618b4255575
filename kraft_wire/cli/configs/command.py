"""`kraft-wire configs`: describe, change and explain settings of topics, brokers and groups.

Options are those of kafka-configs. Exit codes: 0 done, 1 the cluster refused, 2 could not run.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kraft_wire.cli.bootstrap import Controllers, Servers, connect_any, given_or_default
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.configs.output import print_settings
from kraft_wire.cli.known_keys import unknown_key
from kraft_wire.cli.output import (
    AsJson,
    WrongInput,
    clustered,
    new_table,
    print_json,
    print_table,
    refusals,
)
from kraft_wire.cli.properties_options import pairs_of
from kraft_wire.cli.suggestions import unknown_name
from kraft_wire.cli.topics.admin import alter_configs, describe_configs
from kraft_wire.client import BrokerConnection
from kraft_wire.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kraft_wire.settings.broker import BROKER_KEYS, OWN_DEFAULTS, OWN_KEYS
from kraft_wire.settings.definition import ConfigKey
from kraft_wire.settings.topic import TOPIC_KEYS

__all__ = ["app", "explained"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

_TYPES: Final = {
    "topics": TOPIC_RESOURCE,
    "brokers": BROKER_RESOURCE,
    "groups": GROUP_RESOURCE,
    "client-metrics": CLIENT_METRICS_RESOURCE,
}

Topic = Annotated[str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="A topic.")]
Broker = Annotated[int | None, typer.Option("--broker", min=0, metavar="ID", help="A broker.")]
BrokerDefaults = Annotated[
    bool, typer.Option("--broker-defaults", help="The cluster-wide settings of brokers.")
]
Group = Annotated[str | None, typer.Option("--group", "-g", metavar="GROUP", help="A group.")]
EntityType = Annotated[
    str | None,
    typer.Option("--entity-type", metavar="TYPE", help=f"As in Kafka: {', '.join(_TYPES)}."),
]
EntityName = Annotated[
    str | None, typer.Option("--entity-name", metavar="NAME", help="With --entity-type.")
]
EntityDefault = Annotated[
    bool, typer.Option("--entity-default", help="With --entity-type brokers: cluster-wide.")
]


@dataclass(frozen=True, slots=True)
class _Entity:
    """The entity of settings."""

    type: int
    name: str
    """Empty for the cluster-wide settings of brokers."""


@app.command("describe")
def describe_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    topic: Topic = None,
    broker: Broker = None,
    broker_defaults: BrokerDefaults = False,
    group: Group = None,
    entity_type: EntityType = None,
    entity_name: EntityName = None,
    entity_default: EntityDefault = False,
    show_all: Annotated[
        bool, typer.Option("--all", "-a", help="Include defaults and descriptions.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show settings that are not the default, with their source."""
    with refusals("configs"):
        entity = _entity(topic, broker, broker_defaults, group)
        entity = entity or _kafkas_entity(entity_type, entity_name, entity_default)
        with _connection(entity, bootstrap_server, bootstrap_controller) as connection:
            found = describe_configs(connection, entity.name, entity.type)
    print_settings(found, show_all=show_all, as_json=as_json)


@app.command("alter")
def alter_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    topic: Topic = None,
    broker: Broker = None,
    broker_defaults: BrokerDefaults = False,
    group: Group = None,
    entity_type: EntityType = None,
    entity_name: EntityName = None,
    entity_default: EntityDefault = False,
    add_config: Annotated[
        list[str] | None,
        typer.Option("--add-config", metavar="KEY=VALUE,...", help="Set keys; [a,b] is a list."),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="KEY,...", help="Remove settings."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set or remove settings."""
    with refusals("configs"):
        entity = _entity(topic, broker, broker_defaults, group)
        entity = entity or _kafkas_entity(entity_type, entity_name, entity_default)
        values = pairs_of([pair for text in add_config or () for pair in _split(text)])
        removed = [key for text in delete_config or () for key in text.split(",")]
        if not values and not removed:
            raise WrongInput("nothing to do: give --add-config or --delete-config")
        if entity.type == BROKER_RESOURCE:  # a broker accepts unknown keys
            _check_keys([*values, *removed])
        values = {key: value.removeprefix("[").removesuffix("]") for key, value in values.items()}
        with _connection(entity, bootstrap_server, bootstrap_controller) as connection:
            alter_configs(connection, entity.name, values, removed, entity.type)
    if as_json:
        print_json({"set": values, "deleted": removed})
        return
    for key, value in values.items():
        print(f"{key}: set to {value}")
    for key in removed:
        print(f"{key}: removed")


@app.command("explain")
def explain_command(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY", help="Keys; none means all that only kraft-wire has."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain keys of server.properties and topics."""
    with refusals("configs"):
        found = explained(keys or ())
    if as_json:
        print_json(found)
        return
    table = new_table("key", "scope", "type", "default", "limits", "meaning")
    for each in found:
        table.add_row(*each.values())
    print_table(table)


def explained(names: Sequence[str]) -> list[dict[str, str]]:
    """Return Kafka's facts of keys, none for our own. Errors: WrongInput for an unknown key."""
    known: list[tuple[str, ConfigKey]] = [("node", key) for key in BROKER_KEYS.values()]
    known += [("topic", key) for key in TOPIC_KEYS.values()]
    for name in names:
        if all(key.name != name for _, key in known):
            raise WrongInput(unknown_name("key", name, [key.name for _, key in known]))
    wanted = set(names) or {*OWN_KEYS, *OWN_DEFAULTS}
    return [
        {
            "key": key.name,
            "scope": scope,
            "type": key.kind.name.lower(),
            "default": _default_text(key),
            "limits": "" if key.valid is None else str(key.valid),
            "meaning": key.documentation,
        }
        for scope, key in known
        if key.name in wanted
    ]


def _check_keys(keys: Sequence[str]) -> None:
    """Refuse a key that no node knows. Errors: WrongInput."""
    for key in keys:
        problem = unknown_key(key)
        if problem is not None:
            raise WrongInput(problem)


def _default_text(key: ConfigKey) -> str:
    default = key.default
    if isinstance(default, tuple):
        return ",".join(default)
    if isinstance(default, bool):
        return str(default).lower()
    return "-" if default is None else str(getattr(default, "value", default))


def _entity(
    topic: str | None, broker: int | None, broker_defaults: bool, group: str | None
) -> _Entity | None:
    """Return the entity of the short options, None without one. Errors: WrongInput for several."""
    found = []
    if topic is not None:
        found.append(_Entity(TOPIC_RESOURCE, topic))
    if broker is not None:
        found.append(_Entity(BROKER_RESOURCE, str(broker)))
    if broker_defaults:
        found.append(_Entity(BROKER_RESOURCE, ""))
    if group is not None:
        found.append(_Entity(GROUP_RESOURCE, group))
    if len(found) > 1:
        raise WrongInput("give one of --topic, --broker, --broker-defaults and --group")
    return found[0] if found else None


def _kafkas_entity(kind: str | None, name: str | None, is_default: bool) -> _Entity:
    """Return the entity of --entity-type and --entity-name. Errors: WrongInput."""
    if kind is None:
        raise WrongInput("give --topic, --broker, --broker-defaults, --group or --entity-type")
    if kind not in _TYPES:
        raise WrongInput(f"--entity-type: {unknown_name('type', kind, _TYPES)}")
    if (name is None) != is_default or (is_default and _TYPES[kind] != BROKER_RESOURCE):
        raise WrongInput("give --entity-name, or --entity-default for brokers")
    return _Entity(_TYPES[kind], name or "")


@contextmanager
def _connection(
    entity: _Entity, servers: str | None, controllers: str | None
) -> Iterator[BrokerConnection]:
    """Connect to the broker that answers for an entity, or to a controller."""
    controllers, servers = given_or_default(controllers, servers)
    if controllers is not None:
        with connect_any(controllers) as connection:
            yield connection
        return
    with clustered("configs", servers or "") as cluster:
        is_of_broker = entity.type == BROKER_RESOURCE and entity.name.isdecimal()
        yield cluster.broker(int(entity.name)) if is_of_broker else cluster.any_broker()


def _split(text: str) -> list[str]:
    """Split `a=1,b=[x,y]` at the commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


secured(app)
