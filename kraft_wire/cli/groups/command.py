"""`kraft-wire groups`: list, describe, reset and delete groups of any cluster.

Consumer groups of both protocols, share groups and streams groups have the same verbs. Options are
those of kafka-consumer-groups and kafka-share-groups; resetting is a dry run until `--execute`.
Internal topics of streams groups stay when offsets are reset or groups deleted. Exit codes: 0 done,
1 the cluster refused, 2 could not run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from kraft_wire.cli.bootstrap import LOCAL, Bootstrap
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.groups.admin import (
    delete_group,
    delete_known_offsets,
    known_offsets,
    listed_groups,
    offset_rows,
    set_offsets,
)
from kraft_wire.cli.groups.describing import described_group, find_group
from kraft_wire.cli.groups.facts import GroupFacts, OffsetRow
from kraft_wire.cli.groups.reset import new_offsets, partitions_to_reset, read_target
from kraft_wire.cli.groups.tables import group_json, print_members, print_offsets, print_states
from kraft_wire.cli.output import (
    AsJson,
    WrongInput,
    clustered,
    complain,
    new_table,
    print_json,
    print_table,
)
from kraft_wire.client.cluster import ClusterClient, ClusterRefused
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.refused import AdminRefused
from kraft_wire.server.clock import wall_ms

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

Groups = Annotated[list[str] | None, typer.Argument(metavar="GROUP", help="Groups.")]
GroupOption = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", metavar="GROUP", help="A group, as in Kafka; may be repeated."),
]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="All groups.")]


@app.command("list")
def list_command(bootstrap_server: Bootstrap = LOCAL, as_json: AsJson = False) -> None:
    """List groups with their state."""
    with clustered("groups", bootstrap_server) as cluster:
        found = listed_groups(cluster)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    table = new_table("group", "state", "type", "protocol")
    for each in found:
        table.add_row(each.group, each.state or "?", each.type or "?", each.protocol_type or "-")
    print_table(table)


@app.command("describe")
def describe_command(
    groups: Groups = None,
    group: GroupOption = None,
    all_groups: AllGroups = False,
    bootstrap_server: Bootstrap = LOCAL,
    offsets: Annotated[
        bool, typer.Option("--offsets", help="Show offsets and lag by partition (default).")
    ] = False,
    members: Annotated[
        bool, typer.Option("--members", help="Show members and their partitions.")
    ] = False,
    state: Annotated[
        bool, typer.Option("--state", help="Show state, coordinator and total lag.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show committed offsets, lag and members of groups."""
    described: list[tuple[GroupFacts, list[OffsetRow], str]] = []
    with clustered("groups", bootstrap_server) as cluster:
        for name in _names(cluster, groups, group, all_groups):
            with GroupCoordinator(cluster, name) as coordinator:
                facts = described_group(coordinator)
                rows = offset_rows(cluster, coordinator, facts)
                described.append((facts, rows, coordinator.address))
    if as_json:
        print_json([group_json(*each) for each in described])
    elif members and not offsets:
        print_members([facts for facts, _, _ in described])
    elif state and not offsets:
        print_states(described)
    else:
        print_offsets(described)


@app.command("reset-offsets")
def reset_command(
    group: Annotated[str | None, typer.Argument(metavar="GROUP", help="The group.")] = None,
    group_option: Annotated[
        str | None, typer.Option("--group", "-g", metavar="GROUP", help="The group, as in Kafka.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC[:0,1]", help="Topic, with partitions or all."),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All partitions with a committed offset.")
    ] = False,
    bootstrap_server: Bootstrap = LOCAL,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the log's start.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the log's end.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To the committed offset.")
    ] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, metavar="N", help="To this offset.")
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", metavar="N", help="Forward, or back if negative.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="To a time, ISO 8601 or ms."),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="P1DT2H", help="Back from now by a duration."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Commit the new offsets (default: show them).")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the new offsets (default).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the new offsets of a group; commit with --execute."""
    chosen = {
        "--to-earliest": to_earliest,
        "--to-latest": to_latest,
        "--to-current": to_current,
        "--to-offset": to_offset,
        "--shift-by": shift_by,
        "--to-datetime": to_datetime,
        "--by-duration": by_duration,
    }
    _reset(
        bootstrap_server,
        group or group_option,
        topic or (),
        all_topics,
        chosen,
        executes=execute and not dry_run,
        as_json=as_json,
    )


@app.command("delete")
def delete_command(
    groups: Groups = None,
    group: GroupOption = None,
    all_groups: AllGroups = False,
    bootstrap_server: Bootstrap = LOCAL,
    as_json: AsJson = False,
) -> None:
    """Delete groups without members, and their offsets."""
    refused: list[AdminRefused] = []
    deleted: list[str] = []
    with clustered("groups", bootstrap_server) as cluster:
        for name in _names(cluster, groups, group, all_groups):
            with GroupCoordinator(cluster, name) as coordinator:
                try:
                    delete_group(coordinator)
                    deleted.append(name)
                except AdminRefused as problem:
                    refused.append(problem)
        for each in refused[1:]:
            complain("groups", each)
        if refused:
            raise refused[0]
    if as_json:
        print_json({"deleted": deleted})
    else:
        for name in deleted:
            print(f"{name}: deleted")


@app.command("delete-offsets")
def delete_offsets_command(
    group: Annotated[str | None, typer.Argument(metavar="GROUP", help="The group.")] = None,
    group_option: Annotated[
        str | None, typer.Option("--group", "-g", metavar="GROUP", help="The group, as in Kafka.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC[:0,1]", help="Topic, with partitions or all."),
    ] = None,
    bootstrap_server: Bootstrap = LOCAL,
    as_json: AsJson = False,
) -> None:
    """Delete offsets of topics that no member reads."""
    name = group or group_option
    with clustered("groups", bootstrap_server) as cluster:
        if name is None:
            raise WrongInput("give a group")
        if not topic:
            raise WrongInput("give --topic")
        with GroupCoordinator(cluster, name) as coordinator:
            facts = described_group(coordinator)
            if facts.kind == "share" and any(":" in each for each in topic):
                raise WrongInput(f"{name} is a share group: give --topic without partitions")
            keys = partitions_to_reset(cluster, topic, {})
            delete_known_offsets(coordinator, facts, keys)
    if as_json:
        print_json({"group": name, "deleted": [key._asdict() for key in keys]})
    else:
        for key in keys:
            print(f"{name}: {key}: deleted")


def _names(
    cluster: ClusterClient,
    arguments: Sequence[str] | None,
    options: Sequence[str] | None,
    all_groups: bool,
) -> list[str]:
    names = [*(arguments or ()), *(options or ())]
    if all_groups == bool(names):
        raise WrongInput("give groups, or --all-groups")
    return [each.group for each in listed_groups(cluster)] if all_groups else names


def _reset(
    bootstrap_server: str,
    group: str | None,
    topics: Sequence[str],
    all_topics: bool,
    chosen: Mapping[str, object],
    *,
    executes: bool,
    as_json: bool,
) -> None:
    with clustered("groups", bootstrap_server) as cluster:
        if group is None:
            raise WrongInput("give a group")
        target = read_target(chosen, wall_ms())
        if all_topics == bool(topics):
            raise WrongInput("give --topic or --all-topics")
        with GroupCoordinator(cluster, group) as coordinator:
            facts = find_group(coordinator)
            committed = known_offsets(coordinator, facts)
            keys = partitions_to_reset(cluster, topics, committed)
            if not keys:
                raise ClusterRefused(f"group {group} has no committed offsets")
            offsets = new_offsets(cluster, keys, committed, target)
            if executes:
                if facts is not None and facts.is_active:
                    raise ClusterRefused(f"group {group} is {facts.state}: stop its members first")
                set_offsets(coordinator, facts, offsets)
    rows = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "committed_offset": committed.get(key),
            "new_offset": offset,
        }
        for key, offset in offsets.items()
    ]
    if as_json:
        print_json({"group": group, "executed": executes, "partitions": rows})
        return
    table = new_table("topic", "partition", "committed", "new")
    for row in rows:
        table.add_row(*("-" if cell is None else str(cell) for cell in row.values()))
    print_table(table)
    if not executes:
        print("dry run: nothing was changed; --execute commits the new offsets")


secured(app)
