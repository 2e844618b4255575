"""Options that select seeds, for runs on one machine and on Spark."""

from typing import Annotated

import typer

__all__ = [
    "BrokersOption",
    "CanaryOption",
    "EventsOption",
    "FocusOption",
    "ModelOption",
    "NodesOption",
]

NodesOption = Annotated[
    int | None, typer.Option(min=1, max=7, metavar="N", help="Number of voters.")
]
BrokersOption = Annotated[
    int | None,
    typer.Option(min=0, max=9, metavar="N", help="Add N brokers; 0: a number drawn from the seed."),
]
FocusOption = Annotated[
    str | None,
    typer.Option(
        metavar="FOCUS",
        help="Concentrate on voter set changes (membership), transactions, the new groups "
        "(groups), KIP-966 (eligible-replicas), KIP-113 (directories), odd responses between "
        "nodes (odd-answers), or tools that keep offsets by hand (tools).",
    ),
]
EventsOption = Annotated[
    int, typer.Option(min=1, metavar="N", help="Number of events under faults per seed.")
]
CanaryOption = Annotated[
    bool, typer.Option("--canary", help="Add a false invariant, which must be reported.")
]
ModelOption = Annotated[
    bool,
    typer.Option("--model", help="Check every seed against the model (default: every third)."),
]
