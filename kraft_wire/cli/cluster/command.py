"""`kraft-wire cluster`: controllers and brokers as processes of this machine, to try a cluster out.

`up` starts them and stays; the other verbs find them through its state file. A node that `kill` or
`stop` ended stays down until `start`, and one that failed too, unless `up` has a restart policy.
Exit codes: 0 done, 1 the node was not in the state that the verb is for, 2 could not run.
"""

import json
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Final

import typer
from rich.text import Text

from kraft_wire.cli.bootstrap import LOCAL, Bootstrap
from kraft_wire.cli.cluster import options
from kraft_wire.cli.cluster.cuts import cut_off, healed
from kraft_wire.cli.cluster.down import bring_down, wipe_all
from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles, shell_line
from kraft_wire.cli.cluster.health import checks_of
from kraft_wire.cli.cluster.nodes import (
    WrongState,
    asked,
    chosen_node,
    ended,
    keep_down,
    opened,
    running,
    signalled,
    start_again,
)
from kraft_wire.cli.cluster.plan import UpOptions, check_new, found_or_made
from kraft_wire.cli.cluster.restarts import RestartPolicy
from kraft_wire.cli.cluster.setup import reformat
from kraft_wire.cli.cluster.up import run_up
from kraft_wire.cli.cluster.view import cluster_json, cluster_screen
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.output import clustered, new_table, print_json, print_table, wide_console
from kraft_wire.cli.system_refusals import system_refusal
from kraft_wire.model import uuid_to_text
from kraft_wire.server.clock import wall_ms

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

_WRONG_STATE: Final = 1
_COULD_NOT_RUN: Final = 2


@app.command("up")
def up_command(
    controllers: options.Controllers = None,
    brokers: options.Brokers = None,
    nodes: options.Nodes = None,
    base_port: options.BasePort = None,
    restart: options.Restart = RestartPolicy.NO,
    directory: options.Directory = options.HERE,
    apache_controllers: options.ApacheControllers = None,
    apache_brokers: options.ApacheBrokers = None,
    jars: options.Jars = None,
    override: options.Overrides = None,
    feature: options.Features = None,
    secure: options.Secure = False,
    netns: options.Netns = False,
    as_json: options.AsJson = False,
) -> None:
    """Run a cluster until Ctrl-C or `down`.

    A new cluster has three controllers and three brokers. Ctrl-C and `down` stop the brokers, then
    the controllers, and keep their data. Nodes that exit are not restarted without --restart: use
    `kraft-wire cluster start NODE`, or `up` again.
    """
    wanted = UpOptions(
        controllers=controllers,
        apache_controllers=apache_controllers,
        brokers=brokers,
        apache_brokers=apache_brokers,
        overrides=tuple(override or ()),
        features=tuple(feature or ()),
        has_network=netns,
        jars=jars,
        nodes=nodes,
        base_port=base_port,
        is_secured=secure,
    )
    with _told():
        files = ClusterFiles(directory)
        check_new(files, wanted)
        files.directory.mkdir(parents=True, exist_ok=True)
        with files.locked():
            run_up(files, found_or_made(files, wanted), jars, restart, as_json=as_json)


@app.command("down")
def down_command(directory: options.Directory = options.HERE, wipe: options.Wipe = False) -> None:
    """Stop all nodes, and `up` with them, as Ctrl-C does."""
    with _told():
        files, state = opened(directory)
        has_run = bring_down(files, state)
        if wipe:
            wipe_all(files, state)
        elif not has_run:
            raise WrongState("no node runs")
    print(f"cluster in {files.directory}: {'wiped' if wipe else 'stopped'}")


@app.command("status")
def status_command(
    directory: options.Directory = options.HERE, as_json: options.AsJson = False
) -> None:
    """Show the state of all nodes."""
    with _told():
        _, state = opened(directory)
        facts = asked(state)
    if as_json:
        print(json.dumps(cluster_json(state, facts), indent=2))
    else:
        console = wide_console()
        console.print(cluster_screen(state, facts, wall_ms(), console.width))


@app.command("health")
def health_command(bootstrap_server: Bootstrap = LOCAL, as_json: options.AsJson = False) -> None:
    """Check the health of any cluster.

    Checks brokers, quorum, leaders and replicas. Exit code 1: a check failed.
    """
    with clustered("cluster", bootstrap_server) as cluster:
        checks = checks_of(cluster, bootstrap_server)
    is_healthy = all(each.ok for each in checks)
    if as_json:
        print_json({"healthy": is_healthy, "checks": [asdict(each) for each in checks]})
    else:
        table = new_table("check", "state", "detail")
        for each in checks:
            state = Text("ok", style="green") if each.ok else Text("failed", style="bold red")
            table.add_row(each.check, state, each.detail)
        print_table(table)
    if not is_healthy:
        raise typer.Exit(_WRONG_STATE)


@app.command("start")
def start_command(node: options.Node, directory: options.Directory = options.HERE) -> None:
    """Start a stopped node."""
    with _told():
        files, state = opened(directory)
        chosen = chosen_node(state, node)
        if files.runs(chosen):
            raise WrongState(f"node {chosen.node_id} runs already")
        start_again(files, chosen.node_id)
    print(f"node {chosen.node_id}: started")


@app.command("stop")
def stop_command(node: options.Node, directory: options.Directory = options.HERE) -> None:
    """Stop a node gracefully (SIGTERM)."""
    with _told():
        files, chosen = running(directory, node)
        ended(files, chosen, signal.SIGTERM, signal.SIGCONT)
    print(f"node {chosen.node_id}: stopped")


@app.command("restart")
def restart_command(node: options.Node, directory: options.Directory = options.HERE) -> None:
    """Restart a node gracefully."""
    with _told():
        files, chosen = running(directory, node)
        ended(files, chosen, signal.SIGTERM, signal.SIGCONT)
        start_again(files, chosen.node_id)
    print(f"node {chosen.node_id}: restarted")


@app.command("kill")
def kill_command(node: options.Node, directory: options.Directory = options.HERE) -> None:
    """Kill a node (SIGKILL)."""
    with _told():
        files, chosen = running(directory, node)
        ended(files, chosen, signal.SIGKILL)
    print(f"node {chosen.node_id}: killed")


@app.command("pause")
def pause_command(node: options.Node, directory: options.Directory = options.HERE) -> None:
    """Pause a node (SIGSTOP).

    Its connections stay open, and it does not answer.
    """
    with _told():
        _, chosen = signalled(directory, node, signal.SIGSTOP)
    print(f"node {chosen.node_id}: paused")


@app.command("resume")
def resume_command(node: options.Node, directory: options.Directory = options.HERE) -> None:
    """Resume a paused node (SIGCONT)."""
    with _told():
        _, chosen = signalled(directory, node, signal.SIGCONT)
    print(f"node {chosen.node_id}: resumed")


@app.command("wipe")
def wipe_command(node: options.Node, directory: options.Directory = options.HERE) -> None:
    """Kill a node and format an empty disk for it.

    When it starts again, a broker copies its replicas from their leaders. A controller has a new
    directory id and follows as an observer: remove the voter of the old directory with
    `kraft-wire quorum remove-voter`, and add the new one with `add-voter`.
    """
    with _told():
        files, state = opened(directory)
        chosen = chosen_node(state, node)
        if files.runs(chosen):
            ended(files, chosen, signal.SIGKILL)
        else:
            keep_down(files, chosen)
        directory_id = reformat(files, state, chosen.node_id)
    print(f"node {chosen.node_id}: wiped; its new directory id is {uuid_to_text(directory_id)}")
    start = shell_line(files, "start", str(chosen.node_id))
    if not chosen.is_controller:
        print(f"to copy its replicas again:\n{start}")
        return
    properties = shlex.quote(str(files.properties(chosen.node_id)))
    quorum = f"-c {state.bootstrap}"
    print(
        f"to make it vote again:\n{start}\n"
        f"kraft-wire quorum remove-voter {quorum} -i {chosen.node_id}\n"
        f"kraft-wire quorum add-voter {quorum} --config {properties}"
    )


@app.command("partition")
def partition_command(
    node: options.Node,
    directory: options.Directory = options.HERE,
    others: options.Others = None,
    only: options.Only = "",
) -> None:
    """Cut a node off from other nodes until `heal`.

    Clients on this machine still reach it. Packets are dropped silently. Requires a cluster
    started with `up --netns`.
    """
    with _told():
        files, state = opened(directory)
        chosen = chosen_node(state, node)
        sides = [chosen_node(state, each) for each in others or ()]
        cuts = cut_off(files, state, chosen, sides, only)
    for cut in cuts:
        print(f"node {cut.sender}: does not reach node {cut.receiver}")


@app.command("heal")
def heal_command(
    node: options.NodeOrAll = None,
    directory: options.Directory = options.HERE,
) -> None:
    """Reconnect all nodes, or one node, after `partition`."""
    with _told():
        files, state = opened(directory)
        cuts = healed(files, state, None if node is None else chosen_node(state, node))
    for cut in cuts:
        print(f"node {cut.sender}: reaches node {cut.receiver} again")


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


secured(app)
