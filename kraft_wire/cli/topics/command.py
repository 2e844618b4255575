"""`kraft-wire topics`: list, create, describe, move, delete and configure topics of any broker.

Tables for people, `--json` for machines. Exit codes: 0 done, 1 the broker refused, 2 could not run.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from kraft_wire.cli.bootstrap import LOCAL, Bootstrap
from kraft_wire.cli.output import (
    AsJson,
    WrongInput,
    complain,
    connected,
    new_table,
    print_json,
    print_table,
    refusals,
)
from kraft_wire.cli.topics.admin import (
    AdminRefused,
    ConfigFacts,
    CreatedTopic,
    alter_configs,
    create_topic,
    delete_topics,
    describe_configs,
    topics,
)
from kraft_wire.cli.topics.replicas import Name, assignment, describe_command, reassign_command
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

Pairs = Annotated[list[str] | None, typer.Option("--config", "-c", help="A setting, key=value.")]


@app.command("list")
def list_command(
    bootstrap_server: Bootstrap = LOCAL,
    internal: Annotated[bool, typer.Option("--internal", help="Show internal topics too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the topics of a cluster."""
    with connected("topics", bootstrap_server) as connection:
        found = [topic for topic in topics(connection) if internal or not topic.internal]
    if as_json:
        print_json([asdict(topic) for topic in found])
        return
    table = new_table("topic", "partitions", "replicas", "id")
    for topic in found:
        counts = str(topic.partitions_count), str(topic.replication_factor)
        table.add_row(topic.name, *counts, topic.topic_id or "-")
    print_table(table)


@app.command("create")
def create_command(
    name: Name,
    bootstrap_server: Bootstrap = LOCAL,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="How many; -1 takes the broker's default.")
    ] = -1,
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", help="-1 takes the broker's default.")
    ] = -1,
    replicas: Annotated[
        list[str] | None,
        typer.Option(
            "--replicas", help="The brokers of a partition, 4,5,6, once for each; the first leads."
        ),
    ] = None,
    config: Pairs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="It is fine when the topic is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a topic."""
    with refusals("topics"):
        values = _pairs(config or ())
        brokers = [assignment(text) for text in replicas or ()]
        if brokers and (partitions, replication_factor) != (-1, -1):
            raise WrongInput("--replicas says how many: leave the counts away")
    with connected("topics", bootstrap_server) as connection:
        try:
            topic = create_topic(connection, name, partitions, replication_factor, values, brokers)
        except AdminRefused as refused:
            if not if_not_exists or refused.error is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            known = topics(connection, [name])[0]
            counts = known.partitions_count, known.replication_factor
            topic = CreatedTopic(name, known.topic_id, *counts)
    if as_json:
        print_json(asdict(topic))
    else:
        count = topic.partitions_count or "?"
        print(f"{name}: {count} partition{'' if count == 1 else 's'}, id {topic.topic_id or '-'}")


app.command("describe")(describe_command)
app.command("reassign")(reassign_command)


@app.command("delete")
def delete_command(
    names: Annotated[list[str], typer.Argument(help="Topics.")],
    bootstrap_server: Bootstrap = LOCAL,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="It is fine when a topic is not there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete topics."""
    with connected("topics", bootstrap_server) as connection:
        refused = delete_topics(connection, names)
        if if_exists:
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused = [each for each in refused if each.error is not missing]
        for each in refused[1:]:
            complain("topics", each)
        if refused:
            raise refused[0]
    if as_json:
        print_json({"deleted": names})


@app.command("configs")
def configs_command(
    name: Name,
    bootstrap_server: Bootstrap = LOCAL,
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
    with refusals("topics"):
        values = _pairs(config or ())
    with connected("topics", bootstrap_server) as connection:
        if values or remove:
            alter_configs(connection, name, values, remove or ())
        found = describe_configs(connection, name)
    shown = found if show_all else [each for each in found if each.source != "default"]
    if as_json:
        print_json([asdict(each) for each in shown])
        return
    table = new_table("key", "value", "from", *(["meaning"] if show_all else []))
    for each in shown:
        table.add_row(*_config_row(each, show_all))
    print_table(table)


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    """Read settings. Errors: WrongInput."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise WrongInput(f"{text!r} is not of the form key=value")
        pairs[key.strip()] = value
    return pairs


def _config_row(config: ConfigFacts, show_all: bool) -> list[str]:
    row = [config.name, "-" if config.value is None else config.value, config.source]
    return [*row, config.documentation or ""] if show_all else row
