"""`kraft-wire topics describe` and `reassign`: where replicas are, and moving them elsewhere."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.text import Text

from kraft_wire.cli.bootstrap import LOCAL, Bootstrap
from kraft_wire.cli.output import (
    AsJson,
    WrongInput,
    complain,
    connected,
    new_table,
    numbers,
    print_json,
    print_table,
    refusals,
)
from kraft_wire.cli.topics.partitions import (
    DescribedPartition,
    DescribedTopic,
    described,
    reassign,
)
from kraft_wire.node.config.sources import is_number_up_to

__all__ = ["Name", "assignment", "describe_command", "reassign_command"]

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
_ID_MAX: Final = (1 << 31) - 1


def describe_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", help="Topics (default: all).")
    ] = None,
    bootstrap_server: Bootstrap = LOCAL,
    under_replicated: Annotated[
        bool, typer.Option("--under-replicated", help="Show under-replicated partitions only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show leader, replicas, ISR and ELR of each partition.

    ELR: eligible leader replicas (KIP-966). Last ELR: the last known ones, if ISR and ELR are
    empty. `?`: the broker does not report them.
    """
    with connected("topics", bootstrap_server) as connection:
        found = described(connection, names or ())
    if any(each.adding is None for topic in found for each in topic.partitions):
        complain("topics", "no controller reports reassignments")
    shown = [
        (topic, [each for each in topic.partitions if each.is_under_replicated])
        if under_replicated
        else (topic, topic.partitions)
        for topic in found
    ]
    if as_json:
        print_json([_topic_json(topic, partitions) for topic, partitions in shown])
        return
    columns = ("topic", "partition", "leader", "epoch", "replicas", "in sync", "ELR", "last ELR")
    table = new_table(*columns, "")
    for topic, partitions in shown:
        for each in partitions:
            table.add_row(topic.name, *_row(each))
    print_table(table)


def reassign_command(
    name: Name,
    bootstrap_server: Bootstrap = LOCAL,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            "-t",
            metavar="P=ID,ID,...",
            help="Partition and its new brokers; the first one is preferred.",
        ),
    ] = None,
    cancel: Annotated[
        list[int] | None,
        typer.Option(
            "--cancel", min=0, metavar="P", help="Cancel the reassignment of a partition."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Move replicas to other brokers.

    `describe` shows the progress.
    """
    with refusals("topics"):
        wanted = dict(_moves(to or (), cancel or ()))
    with connected("topics", bootstrap_server) as connection:
        refused = reassign(connection, name, wanted)
        for each in refused[1:]:
            complain("topics", each)
        if refused:
            raise refused[0]
    if as_json:
        print_json({"name": name, "partitions": wanted})
        return
    for partition, replicas in wanted.items():
        what = "cancelled" if replicas is None else f"to have {numbers(replicas)}"
        print(f"{name}-{partition}: {what}")


def assignment(text: str) -> list[int]:
    """Read `4,5,6`. Errors: WrongInput."""
    parts = [part.strip() for part in text.split(",")]
    if not all(is_number_up_to(part, _ID_MAX) for part in parts):
        raise WrongInput(f"{text!r} is not of the form 4,5,6 (broker ids)")
    return [int(part) for part in parts]


def _moves(to: Iterable[str], cancel: Iterable[int]) -> Iterable[tuple[int, list[int] | None]]:
    """Yield partitions with their new replicas. Errors: WrongInput."""
    seen: set[int] = set()
    moves: list[tuple[int, list[int] | None]] = []
    for text in to:
        number, equals, brokers = text.partition("=")
        if not equals or not is_number_up_to(number.strip(), _ID_MAX):
            raise WrongInput(f"{text!r} is not of the form 0=4,5,6 (partition=broker ids)")
        moves.append((int(number), assignment(brokers)))
    moves += [(partition, None) for partition in cancel]
    if not moves:
        raise WrongInput("nothing to do: give --to or --cancel")
    for partition, _ in moves:
        if partition in seen:
            raise WrongInput(f"partition {partition} is given twice")
        seen.add(partition)
    return moves


def _row(each: DescribedPartition) -> list[str | Text]:
    return [
        str(each.partition),
        str(each.leader) if each.leader >= 0 else Text("none", style="red"),
        str(each.leader_epoch),
        numbers(each.replicas),
        numbers(each.isr),
        "?" if each.elr is None else numbers(each.elr, "-"),
        "?" if each.last_known_elr is None else numbers(each.last_known_elr, "-"),
        _marks(each),
    ]


def _marks(each: DescribedPartition) -> Text:
    """Return further notes for a person."""
    marks = []
    if each.leader < 0:
        marks.append(("offline", "red"))
    if each.is_under_replicated:
        marks.append(("under-replicated", "red"))
    change = [f"+{node}" for node in each.adding or ()]
    change += [f"-{node}" for node in each.removing or ()]
    if change:
        marks.append((f"reassigning {' '.join(change)}", "yellow"))
    text = Text()
    for number, (mark, style) in enumerate(marks):
        text.append(", " if number else "").append(mark, style=style)
    return text


def _topic_json(
    topic: DescribedTopic, partitions: Sequence[DescribedPartition]
) -> dict[str, object]:
    first = topic.partitions[0].replicas if topic.partitions else ()
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "partitions_count": len(topic.partitions),
        "replication_factor": len(first),
        "internal": topic.internal,
        "partitions": [
            {**asdict(each), "under_replicated": each.is_under_replicated} for each in partitions
        ],
    }
