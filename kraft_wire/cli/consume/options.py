"""The options of `kraft-wire consume`."""

from enum import StrEnum
from typing import Annotated

import typer

from kraft_wire.cli.consume.formats import PROPERTIES

__all__ = [
    "AsJson",
    "Exit",
    "Follow",
    "Format",
    "FromBeginning",
    "Group",
    "Include",
    "Isolation",
    "IsolationName",
    "MaxMessages",
    "Offset",
    "Partitions",
    "Properties",
    "TimeoutMs",
    "TopicOption",
    "Topics",
]


class Isolation(StrEnum):
    """Whether records of transactions that are open or aborted are read."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


Topics = Annotated[list[str] | None, typer.Argument(metavar="TOPIC", help="Topics to read.")]
TopicOption = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="A topic, as in Kafka; may be repeated."),
]
Include = Annotated[
    str | None,
    typer.Option("--include", metavar="REGEX", help="Read the topics whose name matches."),
]
Group = Annotated[
    str | None,
    typer.Option("--group", "-g", metavar="GROUP", help="Join this group and commit offsets."),
]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="Start at the earliest offset (default).")
]
Offset = Annotated[
    str | None,
    typer.Option(
        "--offset",
        "-o",
        metavar="OFFSET",
        help="Start at earliest, latest, N, -N before the end, or @TIME (ms or ISO 8601); with"
        " --group only where no offset is committed.",
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition", "-p", min=0, metavar="N", help="Only this partition; may be repeated."
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Wait for more at the end, until Ctrl-C.")
]
Exit = Annotated[bool, typer.Option("--exit", "-e", help="Exit at the end (default).")]
MaxMessages = Annotated[
    int | None,
    typer.Option("--max-messages", "-n", min=1, metavar="N", help="Exit after N records."),
]
TimeoutMs = Annotated[
    int | None,
    typer.Option(
        "--timeout-ms", min=1, metavar="MS", help="Wait for more, exit after so long without any."
    ),
]
IsolationName = Annotated[
    Isolation,
    typer.Option("--isolation", "--isolation-level", help="Which transactions are read."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="TEMPLATE",
        help="As in kcat: %t %p %o %k %s (value) %T (time) %h (headers) %K %S (sizes).",
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "--formatter-property",
        metavar="KEY=VALUE",
        help=f"As in kafka-console-consumer: {', '.join(PROPERTIES)}.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
