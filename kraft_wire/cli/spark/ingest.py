"""`kraft-wire spark ingest`: topics of a live cluster as tables, every record once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kraft_wire.cli.bootstrap import LOCAL
from kraft_wire.cli.command_config import CommandConfig
from kraft_wire.cli.spark.options import Conf, Jars, Master, print_rows, refusing, settings_of

__all__ = ["ConnectorName", "SinkName", "ingest"]


class SinkName(StrEnum):
    """The format of the output."""

    PARQUET = "parquet"
    DELTA = "delta"


class ConnectorName(StrEnum):
    """Which source reads."""

    KRAFTWIRE = "kraftwire"
    KAFKA = "kafka"


SubscribeOption = Annotated[str, typer.Option(metavar="TOPIC,...", help="Topics to ingest.")]
OutputOption = Annotated[str, typer.Option(metavar="DIR", help="Directory of the table.")]
CheckpointOption = Annotated[
    str, typer.Option(metavar="DIR", help="Directory of the progress; use one per output.")
]
BootstrapServersOption = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap-servers",
        "-b",
        metavar="HOST:PORT,...",
        help="Brokers to start from.",
        envvar="KRAFT_WIRE_BOOTSTRAP_SERVER",
    ),
]
TriggerOption = Annotated[
    str,
    typer.Option(metavar="available-now|INTERVAL", help="Read what is there now, or continuously."),
]
SinkOption = Annotated[SinkName, typer.Option(help="Table format; delta needs its jars.")]
ConnectorOption = Annotated[
    ConnectorName, typer.Option(help="Built-in source, or Spark's own with its jars.")
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="Option of the source; may be repeated."),
]


def ingest(
    subscribe: SubscribeOption,
    output: OutputOption,
    checkpoint: CheckpointOption,
    bootstrap_servers: BootstrapServersOption = LOCAL,
    trigger: TriggerOption = "available-now",
    sink: SinkOption = SinkName.PARQUET,
    connector: ConnectorOption = ConnectorName.KRAFTWIRE,
    option: OptionOption = None,
    command_config: CommandConfig = None,
    master: Master = "local[*]",
    conf: Conf = None,
    jars: Jars = None,
) -> None:
    """Ingest topics into a table, each record once.

    Run it again to continue.
    """
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
            {**_client_keys(command_config), **settings_of(option, "--option")},
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


def _client_keys(path: str | None) -> dict[str, str]:
    """Return a file's keys as options of the source. Errors: PipelineError."""
    if path is None:
        return {}
    from kraft_wire.login.client_config import UnusableConfig, read_client_keys
    from kraft_wire.spark.failure import PipelineError

    try:
        return {f"kafka.{key}": value for key, value in read_client_keys(Path(path)).items()}
    except UnusableConfig as error:
        raise PipelineError(f"--command-config: {error}") from error
