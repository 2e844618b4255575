"""`kraft-wire spark tables`: metadata, transactional ids and groups as Parquet tables."""

from typing import Annotated

import typer

from kraft_wire.cli.node_dirs import NodeDirs, paths_of
from kraft_wire.cli.spark.options import Conf, Jars, Master, print_rows, refusing, settings_of

__all__ = ["tables"]


def tables(
    node_dirs: NodeDirs,
    output: Annotated[
        str, typer.Option(metavar="DIR", help="New directory; each table is a directory in it.")
    ],
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="OFFSET|TIME", help="State before this offset, or at this time."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing directory.")
    ] = False,
    master: Master = "local[*]",
    conf: Conf = None,
    jars: Jars = None,
) -> None:
    """Write the cluster metadata and its history as tables.

    Brokers, topics, partitions and their changes, configurations, elections; transactional ids;
    groups, their members and committed offsets.
    """
    with refusing(jars) as jar_files:
        from kraft_wire.spark.session import running
        from kraft_wire.spark.verbs.progress import progress
        from kraft_wire.spark.verbs.staging import refuse_output
        from kraft_wire.spark.verbs.tables import plan_tables, write_tables

        paths = paths_of(node_dirs)
        refuse_output(output, overwrite=overwrite, reading=paths)
        size_bytes = sum(each.size_bytes for each in plan_tables(paths))
        settings = settings_of(conf)
        with running(master, conf=settings, jars=jar_files) as spark, progress("tables") as bar:
            bar.plan(size_bytes)
            written = write_tables(
                spark, paths, output, as_of=as_of, overwrite=overwrite, tell=bar.tell
            )
    print_rows(
        ("cluster", "table", "rows"),
        [(each.cluster_id, name, rows) for each in written for name, rows in each.rows.items()],
    )
    for each in written:
        end = f"{each.records:,} records up to offset {each.end_offset:,}"
        print(f"{each.cluster_id}: {end} of {each.directory}")
