"""`kraft-wire transactions`: list, describe and abort transactions, and find those that hang.

Options and columns are those of kafka-transactions.sh, `--json` prints the same for machines. Exit
codes: 0 done, 1 the cluster refused, 2 could not run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Final

import typer

from kraft_wire.cli.bootstrap import LOCAL, Bootstrap
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.output import (
    AsJson,
    WrongInput,
    clustered,
    new_table,
    print_json,
    print_table,
)
from kraft_wire.cli.transactions.admin import (
    ProducerFacts,
    abort,
    active_producers,
    described_transaction,
    force_terminate,
    listed_transactions,
)
from kraft_wire.cli.transactions.hanging import hanging_transactions, searched_partitions
from kraft_wire.client.cluster import ClusterRefused
from kraft_wire.model import TopicPartition
from kraft_wire.server.clock import wall_ms

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

_MINUTE_MS: Final = 60_000
_NONE: Final = "None"
"""The text of kafka-transactions.sh for an absent value."""

LISTED: Final = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBED: Final = (
    *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"),
    *("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs"),
    "TopicPartitions",
)
PRODUCERS: Final = (
    *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"),
    "CurrentTransactionStartOffset",
)
HANGING: Final = (
    *("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset"),
    *("LastTimestamp", "Duration(min)"),
)

Topic = Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic.")]
Partition = Annotated[int, typer.Option("--partition", metavar="N", min=0, help="The partition.")]


@app.command("list")
def list_command(
    bootstrap_server: Bootstrap = LOCAL,
    duration_filter: Annotated[
        int,
        typer.Option(
            "--duration-filter",
            metavar="MS",
            help="Show only transactions that are open for longer; -1: all.",
        ),
    ] = -1,
    transactional_id_pattern: Annotated[
        str | None,
        typer.Option(
            "--transactional-id-pattern", metavar="REGEX", help="Show only ids that match."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the transactional ids of all coordinators."""
    with clustered("transactions", bootstrap_server, seconds=15.0) as client:
        found = listed_transactions(
            client, duration_ms=duration_filter, pattern=transactional_id_pattern
        )
    _show(LISTED, [asdict(each) for each in found], as_json)


@app.command("describe")
def describe_command(
    transactional_id: Annotated[
        str, typer.Option("--transactional-id", metavar="ID", help="The transactional id.")
    ],
    bootstrap_server: Bootstrap = LOCAL,
    as_json: AsJson = False,
) -> None:
    """Describe a transactional id.

    Shows state, producer, and the partitions of its transaction. Once a transaction is prepared,
    only the partitions without a marker are shown.
    """
    with clustered("transactions", bootstrap_server, seconds=15.0) as client:
        found = described_transaction(client, transactional_id)
    row = asdict(found)
    start_ms, partitions = found.current_transaction_start_time_ms, row.pop("topic_partitions")
    row["transaction_duration_ms"] = None if start_ms is None else wall_ms() - start_ms
    if as_json:
        topics = [{"topic": each[0], "partition": each[1]} for each in partitions]
        print_json({**row, "topic_partitions": topics})
        return
    row["topic_partitions"] = ",".join(map(str, found.topic_partitions))
    _show(DESCRIBED, [row], as_json=False)


@app.command("describe-producers")
def describe_producers_command(
    topic: Topic,
    partition: Partition,
    bootstrap_server: Bootstrap = LOCAL,
    broker_id: Annotated[
        int | None,
        typer.Option("--broker-id", metavar="ID", help="Ask this replica, not the leader."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe the producers of a partition.

    Shows their last sequences and open transactions.
    """
    with clustered("transactions", bootstrap_server, seconds=15.0) as client:
        found = active_producers(client, TopicPartition(topic, partition), broker_id)
    _show(PRODUCERS, [asdict(each) for each in found], as_json)


@app.command("abort")
def abort_command(
    topic: Topic,
    partition: Partition,
    bootstrap_server: Bootstrap = LOCAL,
    start_offset: Annotated[
        int | None,
        typer.Option("--start-offset", metavar="N", help="First offset of the transaction."),
    ] = None,
    producer_id: Annotated[
        int | None,
        typer.Option("--producer-id", metavar="N", help="In place of the offset: the producer."),
    ] = None,
    producer_epoch: Annotated[
        int | None, typer.Option("--producer-epoch", metavar="N", help="With --producer-id.")
    ] = None,
    coordinator_epoch: Annotated[
        int | None, typer.Option("--coordinator-epoch", metavar="N", help="With --producer-id.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Abort a hanging transaction on one partition.

    Writes the marker without the coordinator. Never abort a transaction that its coordinator
    still has: use `find-hanging` first.
    """
    key = TopicPartition(topic, partition)
    with clustered("transactions", bootstrap_server, seconds=15.0) as client:
        if start_offset is not None:
            entry = _opened_at(active_producers(client, key), key, start_offset)
            names = entry.producer_id, entry.producer_epoch, entry.latest_coordinator_epoch
        elif producer_id is None or producer_epoch is None or coordinator_epoch is None:
            raise WrongInput(
                "give --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch"
            )
        else:
            names = producer_id, producer_epoch, coordinator_epoch
        abort(client, key, *names)
    if as_json:
        aborted = {"topic": topic, "partition": partition, "producer_id": names[0]}
        print_json({**aborted, "producer_epoch": names[1]})
    else:
        print(f"{key}: aborted the transaction of producer {names[0]} in epoch {names[1]}")


@app.command("find-hanging")
def find_hanging_command(
    bootstrap_server: Bootstrap = LOCAL,
    broker_id: Annotated[
        int | None,
        typer.Option("--broker-id", metavar="ID", help="Search partitions with a replica there."),
    ] = None,
    max_transaction_timeout: Annotated[
        int,
        typer.Option(
            "--max-transaction-timeout",
            metavar="MINUTES",
            min=0,
            help="Show only producers that wrote nothing for so long.",
        ),
    ] = 15,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="Search this topic.")
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition", metavar="N", min=0, help="With --topic: search this partition."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find transactions that no coordinator will end."""
    with clustered("transactions", bootstrap_server, seconds=15.0) as client:
        if topic is None and broker_id is None:
            raise WrongInput("give --topic or --broker-id, to bound the search")
        if partition is not None and topic is None:
            raise WrongInput("--partition needs --topic")
        if topic is not None and partition is not None:
            searched = [TopicPartition(topic, partition)]
        else:
            searched = searched_partitions(client, topic, broker_id)
        now_ms = wall_ms()
        silent_since_ms = now_ms - max_transaction_timeout * _MINUTE_MS
        found = hanging_transactions(client, searched, broker_id, silent_since_ms)
    rows = [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "producer_id": each.producer.producer_id,
            "producer_epoch": each.producer.producer_epoch,
            "coordinator_epoch": each.producer.latest_coordinator_epoch,
            "start_offset": each.producer.current_transaction_start_offset,
            "last_timestamp": each.producer.last_timestamp,
            "duration_minutes": (now_ms - each.producer.last_timestamp) // _MINUTE_MS,
        }
        for each in found
    ]
    _show(HANGING, rows, as_json)


@app.command("forceTerminateTransaction")
def force_terminate_command(
    transactional_id: Annotated[
        str,
        typer.Option(
            "--transactional-id", "--transactionalId", metavar="ID", help="The transactional id."
        ),
    ],
    bootstrap_server: Bootstrap = LOCAL,
    as_json: AsJson = False,
) -> None:
    """Abort the transaction of a transactional id.

    Fences its producer.
    """
    with clustered("transactions", bootstrap_server, seconds=15.0) as client:
        fenced = force_terminate(client, transactional_id)
    if as_json:
        ids = {"producer_id": fenced.producer_id, "producer_epoch": fenced.producer_epoch}
        print_json({"transactional_id": transactional_id, **ids})
    else:
        now = f"producer {fenced.producer_id} is now in epoch {fenced.producer_epoch}"
        print(f"{transactional_id}: {now}")


def _opened_at(
    producers: Sequence[ProducerFacts], partition: TopicPartition, start_offset: int
) -> ProducerFacts:
    """Return the producer whose transaction begins at an offset. Errors: ClusterRefused."""
    for each in producers:
        if each.current_transaction_start_offset == start_offset:
            return each
    raise ClusterRefused(f"{partition}: no open transaction begins at offset {start_offset}")


def _show(columns: Sequence[str], rows: Sequence[Mapping[str, object]], as_json: bool) -> None:
    """Print rows under Kafka's columns, or as JSON."""
    if as_json:
        print_json(rows)
        return
    table = new_table(*columns)
    for row in rows:
        table.add_row(*(_NONE if value is None else str(value) for value in row.values()))
    print_table(table)


secured(app)
