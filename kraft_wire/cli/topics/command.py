"""`kraft-wire topics`: list, create, describe, move, delete and configure topics of any broker.

Tables for people, `--json` for machines. Exit codes: 0 done, 1 the broker refused, 2 could not run.
"""

from dataclasses import asdict
from typing import Annotated

import typer

from kraft_wire.cli.bootstrap import LOCAL, Bootstrap
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.configs.output import print_settings
from kraft_wire.cli.output import (
    AsJson,
    WrongInput,
    complain,
    connected,
    counted,
    new_table,
    print_json,
    print_table,
    refusals,
)
from kraft_wire.cli.properties_options import pairs_of
from kraft_wire.cli.topics.admin import (
    AdminRefused,
    CreatedTopic,
    add_partitions,
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

Replicas = Annotated[
    list[str] | None,
    typer.Option(
        "--replicas",
        metavar="ID,ID,...",
        help="Brokers of a new partition, once for each; the first leads.",
    ),
]
Pairs = Annotated[
    list[str] | None,
    typer.Option(
        "--config", "-c", metavar="KEY=VALUE", help="Set a topic setting; may be repeated."
    ),
]


@app.command("list")
def list_command(
    bootstrap_server: Bootstrap = LOCAL,
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
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
        int,
        typer.Option(
            "--partitions",
            "-p",
            metavar="N",
            help="Number of partitions (default: the broker's).",
            show_default=False,
        ),
    ] = -1,
    replication_factor: Annotated[
        int,
        typer.Option(
            "--replication-factor",
            "-r",
            metavar="N",
            help="Replicas of each partition (default: the broker's).",
            show_default=False,
        ),
    ] = -1,
    replicas: Replicas = None,
    config: Pairs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Succeed if the topic exists.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a topic."""
    with refusals("topics"):
        values = pairs_of(config or ())
        brokers = [assignment(text) for text in replicas or ()]
        if brokers and (partitions, replication_factor) != (-1, -1):
            raise WrongInput("--replicas excludes --partitions and --replication-factor")
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
    names: Annotated[list[str], typer.Argument(metavar="TOPIC", help="Topics.")],
    bootstrap_server: Bootstrap = LOCAL,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Succeed if a topic does not exist.")
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


@app.command("add-partitions")
def add_partitions_command(
    name: Name,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", "-p", min=1, metavar="N", help="New total number of partitions."
        ),
    ],
    bootstrap_server: Bootstrap = LOCAL,
    replicas: Replicas = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add partitions to a topic.

    Later records with the same key may go to other partitions.
    """
    with refusals("topics"):
        brokers = [assignment(text) for text in replicas or ()]
    with connected("topics", bootstrap_server) as connection:
        add_partitions(connection, name, partitions, brokers, validate_only=dry_run)
    if as_json:
        print_json({"name": name, "partitions_count": partitions, "executed": not dry_run})
    else:
        what = "dry run: would have" if dry_run else "has"
        print(f"{name}: {what} {counted(partitions, 'partition')}")


@app.command("alter")
def alter_command(
    name: Name,
    bootstrap_server: Bootstrap = LOCAL,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, metavar="N", help="New total number of partitions."
        ),
    ] = None,
    config: Pairs = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", "--remove", "-d", metavar="KEY", help="Remove a setting."),
    ] = None,
) -> None:
    """Change partition count and settings of a topic."""
    with refusals("topics"):
        values = pairs_of(config or ())
        if partitions is None and not values and not delete_config:
            raise WrongInput("nothing to do: give --partitions, --config or --delete-config")
    with connected("topics", bootstrap_server) as connection:
        if partitions is not None:
            add_partitions(connection, name, partitions)
        if values or delete_config:
            alter_configs(connection, name, values, delete_config or ())
    print(f"{name}: altered")


@app.command("configs")
def configs_command(
    name: Name,
    bootstrap_server: Bootstrap = LOCAL,
    config: Pairs = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove", "-d", metavar="KEY", help="Remove a setting, so that its default applies."
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", "-a", help="Include defaults and descriptions.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show, and change, the settings of a topic."""
    with refusals("topics"):
        values = pairs_of(config or ())
    with connected("topics", bootstrap_server) as connection:
        if values or remove:
            alter_configs(connection, name, values, remove or ())
        found = describe_configs(connection, name)
    print_settings(found, show_all=show_all, as_json=as_json)


secured(app)
