"""`kraft-wire quorum`: describe and watch a metadata quorum, add and remove its voters.

Works with any KRaft cluster, through its controllers or its brokers; a controller that does not
lead is only the way to the one that does. Exit codes: 0 done, 1 the quorum refused, 2 could not
run.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from kraft_wire.cli.bootstrap import Controllers, Servers
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.output import AsJson, complain, print_json
from kraft_wire.cli.quorum.admin import (
    OutcomeUnknown,
    QuorumAdmin,
    QuorumRefused,
    read_entry,
)
from kraft_wire.cli.quorum.facts import QuorumFacts
from kraft_wire.cli.quorum.input import BadInput, both_forms, removed_voter, voter_of
from kraft_wire.cli.quorum.views import facts_json, replication_text, status_text, watch_table
from kraft_wire.cli.tables import fitted, wide_console
from kraft_wire.client import BrokerConnectionError
from kraft_wire.model import uuid_to_text
from kraft_wire.server.clock import wall_ms
from kraft_wire.wire.message import UnencodableMessage

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

_REFUSED: Final = 1
_COULD_NOT_RUN: Final = 2
_SECONDS_A_DAY: Final = 86_400.0

Patience = Annotated[
    float,
    typer.Option("--timeout", min=0.0, metavar="SECONDS", help="How long to look for the leader."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the change without making it.")]


@app.command("describe")
def describe_command(
    bootstrap_controller: Controllers = None,
    bootstrap_server: Servers = None,
    status: Annotated[
        bool, typer.Option("--status", help="Show leader, epoch, voters and lag only.")
    ] = False,
    replication: Annotated[
        bool, typer.Option("--replication", help="Show the replicas only: log end, lag, times.")
    ] = False,
    human_readable: Annotated[
        bool, typer.Option("--human-readable", help="With --replication: show times as ages.")
    ] = False,
    timeout: Patience = 10.0,
    as_json: AsJson = False,
) -> None:
    """Describe the quorum in the format of kafka-metadata-quorum."""
    with _told():
        if status and replication:
            raise BadInput("give one of --status and --replication, or neither for both")
        if human_readable and not replication:
            raise BadInput("--human-readable needs --replication")
        facts = _admin(bootstrap_controller, bootstrap_server, timeout).describe()
    if as_json:
        print_json(facts_json(facts))
        return
    shown_at_ms = wall_ms() if human_readable else None
    parts = [] if replication else [status_text(facts)]
    parts += [] if status else [replication_text(facts, shown_at_ms)]
    sys.stdout.write("\n".join(parts))


@app.command("watch")
def watch_command(
    bootstrap_controller: Controllers = None,
    bootstrap_server: Servers = None,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            "-n",
            min=0.05,
            max=_SECONDS_A_DAY,
            metavar="SECONDS",
            help="Time between updates.",
        ),
    ] = 1.0,
    count: Annotated[
        int,
        typer.Option(
            "--count",
            min=0,
            metavar="N",
            help="Number of updates (default: until Ctrl-C).",
            show_default=False,
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Watch the quorum; --json prints one line per update."""
    with _told():
        admin = _admin(bootstrap_controller, bootstrap_server, 0.0, connection_s=1.0)
    looks = _looks(admin, interval, count)
    try:
        if as_json:
            for facts, problem in looks:
                print(json.dumps({"error": problem} if facts is None else facts_json(facts)))
                sys.stdout.flush()
        elif sys.stdout.isatty():
            with Live(auto_refresh=False) as live:
                for facts, problem in looks:
                    live.update(_picture(facts, problem, live.console.width), refresh=True)
        else:
            console = wide_console()
            for facts, problem in looks:
                console.print(_picture(facts, problem, console.width))
    except KeyboardInterrupt:
        return


@app.command("add-voter")
def add_voter_command(
    bootstrap_controller: Controllers = None,
    bootstrap_server: Servers = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config", metavar="FILE", help="The new voter's server.properties, on its machine."
        ),
    ] = None,
    voter: Annotated[
        str | None,
        typer.Option(
            "--voter", metavar="VOTER", help="The new voter, as id@host:port:directoryId."
        ),
    ] = None,
    listener: Annotated[
        str, typer.Option("--listener", metavar="NAME", help="With --voter: name of its listener.")
    ] = "CONTROLLER",
    timeout: Patience = 10.0,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Add a voter: a controller that follows as an observer.

    Returns when the change is committed.
    """
    with _told():
        new = voter_of(config, voter, listener)
        admin = _admin(bootstrap_controller, bootstrap_server, timeout)
        if not dry_run:
            admin.add_voter(new)
    directory_id = uuid_to_text(new.directory_id)
    endpoints = [f"{name}://{host}:{port}" for name, host, port in new.listeners]
    if as_json:
        print_json(
            {
                "added": not dry_run,
                "node_id": new.node_id,
                "directory_id": directory_id,
                "endpoints": endpoints,
            }
        )
        return
    what = "DRY RUN of adding" if dry_run else "Added"
    print(
        f"{what} controller {new.node_id} with directory id {directory_id} "
        f"and endpoints: {', '.join(endpoints)}"
    )


@app.command("remove-voter")
def remove_voter_command(
    controller_id: Annotated[
        int,
        typer.Option(
            "--controller-id", "-i", min=0, metavar="ID", help="Id of the voter to remove."
        ),
    ],
    bootstrap_controller: Controllers = None,
    bootstrap_server: Servers = None,
    controller_directory_id: Annotated[
        str | None,
        typer.Option(
            "--controller-directory-id",
            "-d",
            metavar="UUID",
            help="Its directory (default: its only one).",
        ),
    ] = None,
    timeout: Patience = 10.0,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Remove a voter, even if it is unreachable.

    A controller that runs becomes an observer.
    """
    with _told():
        admin = _admin(bootstrap_controller, bootstrap_server, timeout)
        directory_id = removed_voter(admin, controller_id, controller_directory_id)
        if not dry_run:
            admin.remove_voter(controller_id, directory_id)
    shown = uuid_to_text(directory_id)
    if as_json:
        print_json({"removed": not dry_run, "node_id": controller_id, "directory_id": shown})
        return
    what = "DRY RUN of removing" if dry_run else "Removed"
    print(f"{what} KRaft controller {controller_id} with directory id {shown}")


@app.command("format-uuid")
def format_uuid_command(
    identity: Annotated[
        str | None,
        typer.Argument(metavar="UUID", help="22 characters or hexadecimal (default: a new id)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print an id in Kafka's form of 22 characters."""
    with _told():
        short, long = both_forms(identity)
    if as_json:
        print_json({"id": short, "uuid": long})
    else:
        print(short)


@contextmanager
def _told() -> Iterator[None]:
    """Every problem ends the command with one line and the exit code of its kind."""
    try:
        yield
    except (QuorumRefused, OutcomeUnknown) as refused:
        complain("quorum", refused)
        raise typer.Exit(_REFUSED) from refused
    except (BadInput, BrokerConnectionError, UnencodableMessage) as problem:
        complain("quorum", problem)
        raise typer.Exit(_COULD_NOT_RUN) from problem


def _admin(
    controllers: str | None, servers: str | None, patience_s: float, connection_s: float = 3.0
) -> QuorumAdmin:
    entry = read_entry(controllers, servers)
    return QuorumAdmin(entry, patience_s=patience_s, connection_s=connection_s)


def _looks(
    admin: QuorumAdmin, interval_s: float, count: int
) -> Iterator[tuple[QuorumFacts | None, str]]:
    """Yield descriptions of the quorum, or the reason why there is none."""
    taken = 0
    while True:
        began = time.monotonic()
        try:
            yield admin.describe(), ""
        except (BrokerConnectionError, QuorumRefused, UnencodableMessage) as problem:
            yield None, str(problem)
        taken += 1
        if taken == count:
            return
        time.sleep(max(0.0, began + interval_s - time.monotonic()))


def _picture(facts: QuorumFacts | None, problem: str, width: int) -> RenderableType:
    clock = time.strftime("%H:%M:%S")
    if facts is None:
        return Group(Text(clock, style="dim"), Text(problem, style="bold red"))
    return Group(Text(clock, style="dim"), fitted(watch_table(facts, wall_ms()), width))


secured(app)
