"""`kraft-wire cluster`: several controllers as processes of this machine, to try a quorum out.

`up` starts them and stays; the other verbs find them through its state file. A node that ends, by
`kill`, by `stop`, or by itself, stays down until `start`. Exit codes: 0 done, 1 the node was not in
the state that the verb is for, 2 could not run.
"""

import json
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.live import Live

from kraft_wire.cli.cluster_files import APACHE, CannotRun, ClusterFiles, ClusterState
from kraft_wire.cli.cluster_nodes import (
    WrongState,
    chosen_node,
    opened,
    quorum_of,
    send,
    signalled,
    start_again,
    until_gone,
)
from kraft_wire.cli.cluster_processes import ClusterProcesses
from kraft_wire.cli.cluster_setup import apache_jars, make_cluster, reformat
from kraft_wire.cli.cluster_up import JsonScreen, LineScreen, TableScreen, run_cluster
from kraft_wire.cli.cluster_view import cluster_json, cluster_table
from kraft_wire.cli.system_refusals import system_refusal
from kraft_wire.model import uuid_to_text
from kraft_wire.server.clock import wall_ms

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

_WRONG_STATE: Final = 1
_COULD_NOT_RUN: Final = 2
_CONTROLLERS_MAX: Final = 9
_WIDTH: Final = 10_000
"""A file or a pipe gets whole lines, however long."""

Directory = Annotated[
    Path, typer.Option("--dir", "-d", help="Where the cluster's directories and logs are.")
]
Node = Annotated[str, typer.Argument(help="A node's id, or `leader`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_HERE: Final = Path("kraft-wire-cluster")


@app.command("up")
def up_command(
    controllers: Annotated[
        int | None,
        typer.Option(
            "--controllers",
            "-c",
            min=1,
            max=_CONTROLLERS_MAX,
            help="Of a new cluster; 3 if unsaid.",
        ),
    ] = None,
    directory: Directory = _HERE,
    apache: Annotated[
        int | None,
        typer.Option("--apache", min=0, help="How many of them are Apache Kafka's (needs Java)."),
    ] = None,
    jars: Annotated[
        str | None,
        typer.Option("--apache-jars", help="Folder of its jars, else KRAFT_WIRE_APACHE_JARS."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", help="A key of server.properties for all of a new cluster."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run controllers on 127.0.0.1 until Ctrl-C, which stops them all; what is there is kept.

    A node that ends stays down until `kraft-wire cluster start NODE`, or the next `up`.
    """
    with _told():
        files = ClusterFiles(directory)
        files.directory.mkdir(parents=True, exist_ok=True)
        with files.locked():
            state = files.load()
            if state is None:
                overrides = dict(_override(text) for text in override or ())
                count = 3 if controllers is None else controllers
                state = _new(files, count, apache or 0, jars, overrides)
            else:
                _check_same(files, state, controllers, apache, override)
            is_mixed = any(each.make == APACHE for each in state.nodes.values())
            _run(files, state, apache_jars(jars) if is_mixed else None, as_json)


@app.command("status")
def status_command(directory: Directory = _HERE, as_json: AsJson = False) -> None:
    """Show the nodes once."""
    with _told():
        _, state = opened(directory)
        facts = quorum_of(state)
    if as_json:
        print(json.dumps(cluster_json(state, facts), indent=2))
    else:
        width = None if sys.stdout.isatty() else _WIDTH
        Console(width=width, highlight=False).print(cluster_table(state, facts, wall_ms()))


@app.command("start")
def start_command(node: Node, directory: Directory = _HERE) -> None:
    """Start a node that is down."""
    with _told():
        files, state = opened(directory)
        chosen = chosen_node(state, node)
        if files.runs(chosen):
            raise WrongState(f"node {chosen.node_id} runs already")
        start_again(files, chosen.node_id)
    print(f"node {chosen.node_id}: started")


@app.command("stop")
def stop_command(node: Node, directory: Directory = _HERE) -> None:
    """Stop a node gracefully (SIGTERM); it stays down until `start`."""
    with _told():
        files, chosen = signalled(directory, node, signal.SIGTERM, signal.SIGCONT)
        until_gone(files, chosen)
    print(f"node {chosen.node_id}: stopped")


@app.command("restart")
def restart_command(node: Node, directory: Directory = _HERE) -> None:
    """Stop a node gracefully and start it again."""
    with _told():
        files, chosen = signalled(directory, node, signal.SIGTERM, signal.SIGCONT)
        until_gone(files, chosen)
        start_again(files, chosen.node_id)
    print(f"node {chosen.node_id}: restarted")


@app.command("kill")
def kill_command(node: Node, directory: Directory = _HERE) -> None:
    """Kill a node (SIGKILL), as a crash would; it stays down until `start`."""
    with _told():
        files, chosen = signalled(directory, node, signal.SIGKILL)
        until_gone(files, chosen)
    print(f"node {chosen.node_id}: killed")


@app.command("pause")
def pause_command(node: Node, directory: Directory = _HERE) -> None:
    """Pause a node (SIGSTOP): its connections stay open, and it neither answers nor notices."""
    with _told():
        _, chosen = signalled(directory, node, signal.SIGSTOP)
    print(f"node {chosen.node_id}: paused")


@app.command("resume")
def resume_command(node: Node, directory: Directory = _HERE) -> None:
    """Let a paused node go on (SIGCONT)."""
    with _told():
        _, chosen = signalled(directory, node, signal.SIGCONT)
    print(f"node {chosen.node_id}: resumed")


@app.command("wipe")
def wipe_command(node: Node, directory: Directory = _HERE) -> None:
    """Kill a node and replace its disk by an empty one; it stays down until `start`.

    A new disk has a new directory id, of which the quorum knows nothing: started again, the node
    follows as an observer. `kraft-wire quorum remove-voter` takes the vote of the lost disk away,
    `add-voter` gives one to the new.
    """
    with _told():
        files, state = opened(directory)
        chosen = chosen_node(state, node)
        if files.runs(chosen):
            send(chosen, signal.SIGKILL)
            until_gone(files, chosen)
        directory_id = reformat(files, state, chosen.node_id)
    print(
        f"node {chosen.node_id}: wiped; its new directory id is {uuid_to_text(directory_id)}\n"
        f"to let it vote again:  kraft-wire cluster start {chosen.node_id},  kraft-wire quorum "
        f"remove-voter -i {chosen.node_id},  "
        f"add-voter --config {files.properties(chosen.node_id)}"
    )


# -- up --------------------------------------------------------------------------------------------


def _new(
    files: ClusterFiles,
    controllers: int,
    apache: int,
    jars: str | None,
    overrides: Mapping[str, str],
) -> ClusterState:
    """Make a new cluster, once everything that it needs is known to be there."""
    if apache > controllers:
        raise CannotRun(f"--apache {apache}: there are only {controllers} controllers")
    if apache:
        apache_jars(jars)
    return make_cluster(files, controllers, apache, overrides)


def _run(files: ClusterFiles, state: ClusterState, jars: Path | None, as_json: bool) -> None:
    for node in state.nodes.values():
        if files.runs(node):
            raise CannotRun(
                f"node {node.node_id} still runs as process {node.pid}, left by an `up` that was "
                f"killed: `kraft-wire cluster kill {node.node_id}` ends it"
            )
        node.pid, node.is_paused, node.note = None, False, ""
        files.start_request(node.node_id).unlink(missing_ok=True)
    processes = ClusterProcesses(files, state, jars)
    if as_json:
        run_cluster(processes, state, JsonScreen())
        return
    print(
        f"kraft-wire cluster: {len(state.nodes)} controllers in {files.directory}\n"
        f"kraft-wire cluster: try  kraft-wire quorum watch -c {state.bootstrap}\n"
        "kraft-wire cluster: Ctrl-C stops them all"
    )
    sys.stdout.flush()
    if sys.stdout.isatty():
        with Live(auto_refresh=False) as live:
            run_cluster(processes, state, TableScreen(live))
    else:
        run_cluster(processes, state, LineScreen())


def _check_same(
    files: ClusterFiles,
    state: ClusterState,
    controllers: int | None,
    apache: int | None,
    override: list[str] | None,
) -> None:
    """Refuse what contradicts a cluster that is there already."""
    count = len(state.nodes)
    of_apache = sum(each.make == APACHE for each in state.nodes.values())
    if controllers not in (None, count) or apache not in (None, of_apache):
        raise CannotRun(
            f"{files.directory} holds a cluster of {count} controllers, {of_apache} of them "
            "Apache's: take another --dir for a new one"
        )
    if override:
        raise CannotRun(
            f"--override is for a new cluster; the files of this one are "
            f"{files.properties(1).parent}/node-N.properties"
        )


def _override(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise CannotRun(f"--override {text!r} is not KEY=VALUE")
    return key.strip(), value.strip()


@contextmanager
def _told() -> Iterator[None]:
    """Every problem ends the command with one line and the exit code of its kind."""
    try:
        yield
    except WrongState as problem:
        sys.stderr.write(f"kraft-wire cluster: {problem}\n")
        raise typer.Exit(_WRONG_STATE) from problem
    except (CannotRun, OSError) as problem:
        reason = system_refusal(problem) if isinstance(problem, OSError) else problem
        sys.stderr.write(f"kraft-wire cluster: {reason}\n")
        raise typer.Exit(_COULD_NOT_RUN) from problem
