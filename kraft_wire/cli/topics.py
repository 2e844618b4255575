"""`kraft-wire topics`: list, create, describe, delete and configure topics of any broker.

Tables for people, `--json` for machines. Exit codes: 0 done, 1 the broker refused, 2 could not run.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from kraft_wire.cli.topic_admin import (
    AdminRefused,
    ConfigFacts,
    CreatedTopic,
    TopicFacts,
    alter_configs,
    create_topic,
    delete_topics,
    describe_configs,
    topics,
)
from kraft_wire.client import BrokerConnection, CannotTalk
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import UnencodableMessage

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

_REFUSED: Final = 1
_COULD_NOT_RUN: Final = 2

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server", "-b", help="A broker, as host:port.", envvar="KRAFT_WIRE_BOOTSTRAP"
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="The topic.")]
Pairs = Annotated[list[str] | None, typer.Option("--config", "-c", help="A setting, key=value.")]

_LOCAL: Final = "127.0.0.1:9092"


@app.command("list")
def list_command(
    bootstrap_server: Bootstrap = _LOCAL,
    internal: Annotated[bool, typer.Option("--internal", help="Show internal topics too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the topics of a cluster."""
    with _connected(bootstrap_server) as connection:
        found = [topic for topic in topics(connection) if internal or not topic.internal]
    if as_json:
        _print_json([_summary(topic) for topic in found])
        return
    table = _table("topic", "partitions", "replicas", "id")
    for topic in found:
        counts = str(len(topic.partitions)), str(topic.replication_factor)
        table.add_row(topic.name, *counts, topic.topic_id or "-")
    _print_table(table)


@app.command("create")
def create_command(
    name: Name,
    bootstrap_server: Bootstrap = _LOCAL,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="How many; -1 takes the broker's default.")
    ] = -1,
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", help="-1 takes the broker's default.")
    ] = -1,
    config: Pairs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="It is fine when the topic is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a topic."""
    values = _pairs(config or ())
    with _connected(bootstrap_server) as connection:
        try:
            topic = create_topic(connection, name, partitions, replication_factor, values)
        except AdminRefused as refused:
            if not if_not_exists or refused.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            known = topics(connection, [name])[0]
            counts = len(known.partitions), known.replication_factor
            topic = CreatedTopic(name, known.topic_id, *counts)
    if as_json:
        _print_json(asdict(topic))
    else:
        count = topic.partitions_count or "?"
        print(f"{name}: {count} partition{'' if count == 1 else 's'}, id {topic.topic_id or '-'}")


@app.command("describe")
def describe_command(
    names: Annotated[list[str] | None, typer.Argument(help="Topics; none means all.")] = None,
    bootstrap_server: Bootstrap = _LOCAL,
    as_json: AsJson = False,
) -> None:
    """Show the partitions of topics: leader, replicas, in-sync replicas."""
    with _connected(bootstrap_server) as connection:
        found = topics(connection, names or None)
    if as_json:
        _print_json([_summary(topic) | _partitions(topic) for topic in found])
        return
    table = _table("topic", "partition", "leader", "epoch", "replicas", "in sync")
    for topic in found:
        for each in topic.partitions:
            table.add_row(
                topic.name,
                str(each.partition),
                str(each.leader) if each.leader >= 0 else "none",
                str(each.leader_epoch),
                _numbers(each.replicas),
                _numbers(each.isr),
            )
    _print_table(table)


@app.command("delete")
def delete_command(
    names: Annotated[list[str], typer.Argument(help="Topics.")],
    bootstrap_server: Bootstrap = _LOCAL,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="It is fine when a topic is not there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete topics."""
    with _connected(bootstrap_server) as connection:
        refused = delete_topics(connection, names)
        if if_exists:
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused = [each for each in refused if each.error is not missing]
        for each in refused[1:]:
            _complain(each)
        if refused:
            raise refused[0]
    if as_json:
        _print_json({"deleted": names})


@app.command("configs")
def configs_command(
    name: Name,
    bootstrap_server: Bootstrap = _LOCAL,
    config: Pairs = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", "-d", help="A key that takes its default again.")
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", "-a", help="Show defaults, and what each key means.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the settings of a topic, after changing them when asked to."""
    values = _pairs(config or ())
    with _connected(bootstrap_server) as connection:
        if values or remove:
            alter_configs(connection, name, values, remove or ())
        found = describe_configs(connection, name)
    shown = found if show_all else [each for each in found if each.source != "default"]
    if as_json:
        _print_json([asdict(each) for each in shown])
        return
    table = _table("key", "value", "from", *(["meaning"] if show_all else []))
    for each in shown:
        table.add_row(*_config_row(each, show_all))
    _print_table(table)


@contextmanager
def _connected(address: str) -> Iterator[BrokerConnection]:
    """Connect; every problem ends the command with one line and the exit code of its kind."""
    try:
        with BrokerConnection(address) as connection:
            yield connection
    except AdminRefused as refused:
        _complain(refused)
        raise typer.Exit(_REFUSED) from refused
    except (CannotTalk, UnencodableMessage) as problem:
        _complain(problem)
        raise typer.Exit(_COULD_NOT_RUN) from problem


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            _complain(f"{text!r} is not of the form key=value")
            raise typer.Exit(_COULD_NOT_RUN)
        pairs[key.strip()] = value
    return pairs


def _summary(topic: TopicFacts) -> dict[str, object]:
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "partitions_count": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "internal": topic.internal,
    }


def _partitions(topic: TopicFacts) -> dict[str, object]:
    return {"partitions": [asdict(each) for each in topic.partitions]}


def _config_row(config: ConfigFacts, show_all: bool) -> list[str]:
    row = [config.name, "-" if config.value is None else config.value, config.source]
    return [*row, config.documentation or ""] if show_all else row


def _numbers(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers)) or "none"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _print_table(table: Table) -> None:
    # A file or a pipe gets whole lines, however long.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width, highlight=False).print(table)


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _complain(problem: object) -> None:
    sys.stderr.write(f"kraft-wire topics: {problem}\n")
