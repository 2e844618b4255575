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
        metavar="membership|transactions|groups|eligible-replicas|directories|odd-answers",
        help="Concentrate on voter set changes, transactions, the new groups, KIP-966, KIP-113, or "
        "odd responses between nodes.",
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
