"""`kraft-wire spark`: the data pipeline on Spark, a verb a module.

A verb is a function of a separate module `spark_<verb>`, which imports Spark only when it runs;
here they are put together. `doctor` needs neither Java nor Spark, so that it can report which of
them is missing.
"""

from typing import Annotated

import typer
from rich.text import Text

from kraft_wire.cli.spark.audit import audit
from kraft_wire.cli.spark.doctor import examine, missing
from kraft_wire.cli.spark.export import export
from kraft_wire.cli.spark.ingest import ingest
from kraft_wire.cli.spark.options import COULD_NOT_RUN, Jars
from kraft_wire.cli.spark.sim import sim
from kraft_wire.cli.spark.tables import tables
from kraft_wire.cli.tables import new_table, print_table

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def spark() -> None:
    """Read logs, snapshots and topics as Spark tables."""


@app.command()
def doctor(
    jars: Jars = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show failed checks only.")] = False,
) -> None:
    """Check Java, pyspark and the rest.

    Prints what is missing, and the command that installs it.
    """
    checks = examine([each for each in (jars or "").split(",") if each])
    if not quiet:
        table = new_table("state", "check", "found")
        for check in checks:
            state = Text("ok", style="green") if check.is_well else Text("NO", style="bold red")
            table.add_row(state, Text(check.name), Text(check.found))
        print_table(table)
    lines = list(missing(checks))
    for line in lines:
        print(line)
    if lines:
        raise typer.Exit(COULD_NOT_RUN)


app.command("tables")(tables)
app.command("audit")(audit)
app.command("export")(export)
app.command("ingest")(ingest)
app.command("sim")(sim)
