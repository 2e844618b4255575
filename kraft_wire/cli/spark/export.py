"""`kraft-wire spark export`: the records of log directories as Parquet."""

from enum import StrEnum
from typing import Annotated

import typer

from kraft_wire.cli.node_dirs import NodeDirs, paths_of
from kraft_wire.cli.spark.options import (
    Conf,
    Jars,
    Master,
    print_rows,
    refusing,
    settings_of,
)

__all__ = ["WriterName", "export"]


class WriterName(StrEnum):
    """The writer of the files."""

    ARROW = "arrow"
    SPARK = "spark"


def export(
    node_dirs: NodeDirs,
    output: Annotated[
        str, typer.Option(metavar="DIR", help="New directory for the Parquet files.")
    ],
    writer: Annotated[
        WriterName, typer.Option(help="Arrow in the tasks, or Spark's own writer.")
    ] = WriterName.ARROW,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="Option of the format kraftlog: topics, startingOffsets, view; may be repeated.",
        ),
    ] = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="Include Kafka's internal topics.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing directory.")
    ] = False,
    master: Master = "local[*]",
    conf: Conf = None,
    jars: Jars = None,
) -> None:
    """Write the records of log directories as Parquet.

    Internal topics are left out without --internal, unless --option chooses topics.
    """
    with refusing(jars) as jar_files:
        from kraft_wire.spark.session import running
        from kraft_wire.spark.verbs.export import export_records, planned_bytes, without_internal
        from kraft_wire.spark.verbs.progress import progress
        from kraft_wire.spark.verbs.staging import refuse_output

        paths = paths_of(node_dirs)
        options, settings = settings_of(option, "--option"), settings_of(conf)
        options = options if internal else without_internal(options)
        refuse_output(output, overwrite=overwrite, reading=paths)
        size_bytes = planned_bytes(paths, options)
        with running(master, conf=settings, jars=jar_files) as spark, progress("export") as bar:
            bar.plan(size_bytes)
            done = export_records(
                spark,
                paths,
                output,
                writer=writer.value,
                options=options,
                overwrite=overwrite,
                tell=bar.tell,
            )
    row = (output, done.files, done.records, size_bytes, done.size_bytes)
    print_rows(("directory", "files", "rows", "bytes read", "bytes written"), [row])
