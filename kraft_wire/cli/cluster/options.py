"""The options and arguments of `kraft-wire cluster`, with their help texts."""

from pathlib import Path
from typing import Annotated, Final

import typer

from kraft_wire.cli.cluster.files import HERE
from kraft_wire.cli.cluster.ports import PORT_MAX
from kraft_wire.cli.cluster.restarts import RestartPolicy

__all__ = [
    "HERE",
    "ApacheBrokers",
    "ApacheControllers",
    "AsJson",
    "BasePort",
    "Brokers",
    "Controllers",
    "Directory",
    "Features",
    "Jars",
    "Netns",
    "Node",
    "NodeOrAll",
    "Nodes",
    "Only",
    "Others",
    "Overrides",
    "Restart",
    "Secure",
    "Wipe",
]

_NODES_MAX: Final = 9

Directory = Annotated[
    Path, typer.Option("--dir", "-d", metavar="DIR", help="Directory of the cluster.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Node = Annotated[
    str, typer.Argument(metavar="NODE", help="Id of a node, or `leader`: the active controller.")
]
NodeOrAll = Annotated[
    str | None, typer.Argument(metavar="NODE", help="Id of a node (default: all).")
]

Controllers = Annotated[
    int | None,
    typer.Option(
        "--controllers",
        "-c",
        min=1,
        max=_NODES_MAX,
        metavar="N",
        help="Number of controllers (default: 3).",
    ),
]
Brokers = Annotated[
    int | None,
    typer.Option(
        "--brokers",
        "-b",
        min=0,
        max=_NODES_MAX,
        metavar="N",
        help="Number of brokers (default: 3, or 0 if controllers are counted).",
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        "-n",
        min=1,
        max=_NODES_MAX,
        metavar="N",
        help="Number of combined nodes, each broker and controller, in place of both.",
    ),
]
BasePort = Annotated[
    int | None,
    typer.Option(
        "--base-port",
        min=1,
        max=PORT_MAX,
        metavar="PORT",
        help="First port of a new cluster: brokers, then controllers (default: free ports).",
    ),
]
Restart = Annotated[
    RestartPolicy,
    typer.Option(
        "--restart",
        metavar="no|on-failure",
        help="Restart nodes that fail; not those that `kill`, `stop` and `wipe` end.",
    ),
]
Wipe = Annotated[bool, typer.Option("--wipe", help="Delete the cluster's files and data as well.")]
ApacheControllers = Annotated[
    int | None,
    typer.Option(
        "--apache-controllers",
        "--apache",
        min=0,
        metavar="N",
        help="Number of controllers that run Apache Kafka; needs Java (default: 0).",
    ),
]
ApacheBrokers = Annotated[
    int | None,
    typer.Option(
        "--apache-brokers",
        min=0,
        metavar="N",
        help="Number of brokers that run Apache Kafka (default: 0).",
    ),
]
Jars = Annotated[
    str | None,
    typer.Option(
        "--apache-jars",
        metavar="DIR",
        help="Apache Kafka's jars (default: KRAFT_WIRE_APACHE_JARS).",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--override",
        metavar="KEY=VALUE",
        help="Set a key of server.properties on all nodes of a new cluster.",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="Feature level of a new cluster."),
]
Secure = Annotated[
    bool,
    typer.Option(
        "--secure",
        help="Require TLS and logins, with users `admin` and `client`, in a new cluster.",
    ),
]
Netns = Annotated[
    bool,
    typer.Option(
        "--netns", help="Run each node in its own network namespace, for `partition` (root)."
    ),
]

Others = Annotated[
    list[str] | None,
    typer.Option(
        "--from", metavar="NODE", help="Nodes to cut off from; may be repeated (default: all)."
    ),
]
Only = Annotated[
    str,
    typer.Option(
        "--only",
        metavar="out|in",
        help="Drop packets in one direction only: `out` of the node, or `in`.",
    ),
]
