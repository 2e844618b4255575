"""The options and arguments of `kraft-wire cluster`, and what its help says of them."""

from pathlib import Path
from typing import Annotated, Final

import typer

__all__ = [
    "HERE",
    "ApacheBrokers",
    "ApacheControllers",
    "AsJson",
    "Brokers",
    "Controllers",
    "Directory",
    "Features",
    "Jars",
    "Netns",
    "Node",
    "NodeOrAll",
    "Only",
    "Others",
    "Overrides",
]

HERE: Final = Path("kraft-wire-cluster")
_NODES_MAX: Final = 9

Directory = Annotated[
    Path, typer.Option("--dir", "-d", help="Where the cluster's directories and logs are.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Node = Annotated[str, typer.Argument(help="A node's id, or `leader`: the active controller.")]
NodeOrAll = Annotated[str | None, typer.Argument(help="A node; all if unsaid.")]

Controllers = Annotated[
    int | None,
    typer.Option(
        "--controllers", "-c", min=1, max=_NODES_MAX, help="Of a new cluster; 3 if unsaid."
    ),
]
Brokers = Annotated[
    int | None,
    typer.Option("--brokers", "-b", min=0, max=_NODES_MAX, help="Beside them; 0 if unsaid."),
]
ApacheControllers = Annotated[
    int | None,
    typer.Option(
        "--apache-controllers",
        "--apache",
        min=0,
        help="How many of the controllers are Apache Kafka's (needs Java).",
    ),
]
ApacheBrokers = Annotated[
    int | None, typer.Option("--apache-brokers", min=0, help="How many of the brokers are.")
]
Jars = Annotated[
    str | None,
    typer.Option("--apache-jars", help="Folder of its jars, else KRAFT_WIRE_APACHE_JARS."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--override", help="A key of server.properties for all of a new cluster."),
]
Features = Annotated[
    list[str] | None,
    typer.Option("--feature", "-f", help="A level that a new cluster begins with, name=level."),
]
Netns = Annotated[
    bool,
    typer.Option("--netns", help="Each node in a network of its own, for `partition` (root)."),
]

Others = Annotated[
    list[str] | None,
    typer.Option("--from", help="The other side, may be repeated; all nodes if unsaid."),
]
Only = Annotated[str, typer.Option("--only", help="One direction: `out` of the node, or `in`.")]
