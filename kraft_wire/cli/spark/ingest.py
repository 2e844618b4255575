"""`kraft-wire spark ingest`: topics of a live cluster as tables, every record once."""

from enum import StrEnum
from typing import Annotated

import typer

from kraft_wire.cli.bootstrap import LOCAL
from kraft_wire.cli.spark.options import Conf, Jars, Master, print_rows, refusing, settings_of

__all__ = ["ConnectorName", "SinkName", "ingest"]


class SinkName(StrEnum):
    """What is written."""

    PARQUET = "parquet"
    DELTA = "delta"


class ConnectorName(StrEnum):
    """Which source reads."""

    KRAFTWIRE = "kraftwire"
    KAFKA = "kafka"


def ingest(
    subscribe: Annotated[str, typer.Option(metavar="TOPIC,...", help="The topics.")],
    output: Annotated[str, typer.Option(help="The directory of the table.")],
    checkpoint: Annotated[
        str, typer.Option(help="The directory that says what was taken; it belongs to the output.")
    ],
    bootstrap_servers: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            "--bootstrap-servers",
            "-b",
            metavar="HOST:PORT,...",
            help="Brokers to start from.",
            envvar="KRAFT_WIRE_BOOTSTRAP_SERVER",
        ),
    ] = LOCAL,
    trigger: Annotated[
        str, typer.Option(metavar="available-now|INTERVAL", help="What is there, or for ever.")
    ] = "available-now",
    sink: Annotated[SinkName, typer.Option(help="Delta needs its jars.")] = SinkName.PARQUET,
    connector: Annotated[
        ConnectorName, typer.Option(help="Our format, or Spark's own where its jars are given.")
    ] = ConnectorName.KRAFTWIRE,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the source; repeatable."),
    ] = None,
    master: Master = "local[*]",
    conf: Conf = None,
    jars: Jars = None,
) -> None:
    """Take topics into a table, every record once; start it again to go on."""
    with refusing(jars) as jar_files:
        from kraft_wire.spark.session import running
        from kraft_wire.spark.verbs.ingest import Ingest, delta_settings
        from kraft_wire.spark.verbs.ingest import ingest as run
        from kraft_wire.spark.verbs.progress import progress

        asked = Ingest(
            bootstrap_servers,
            subscribe,
            output,
            checkpoint,
            trigger,
            sink.value,
            connector.value,
            settings_of(option, "--option"),
        )
        settings = settings_of(conf)
        if sink is SinkName.DELTA:
            settings = delta_settings(settings, jar_files)
        with running(master, conf=settings, jars=jar_files) as spark, progress("ingest") as bar:
            taken = run(spark, asked, tell=bar.tell)
    rows = [(*key, taken.began.get(key, "-"), taken.reached[key]) for key in sorted(taken.reached)]
    print_rows(("topic", "partition", "from", "until"), rows)
    batches = "batch" if taken.batches == 1 else "batches"
    print(f"{taken.records:,} records in {taken.batches:,} {batches}, in {output}")
