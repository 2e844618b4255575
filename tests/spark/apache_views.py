"""`python -m tests.spark.apache_views [--records N] [--partitions N] [NODE_DIR…]`: view by view.

Holds every view of log directories that Apache Kafka nodes wrote and left to what Apache's own
record and metadata classes read there, with all columns of all rows: `records` from everything on
disk and from the log start, at both isolation levels, `batches`, `segments`, `metadata`,
`snapshots`, and `partitions` by replay and by each snapshot. Without directories, three nodes write
theirs first (`tests.spark.apache_dirs`), and are started again at the end: then `records` must be
what Spark's own Kafka connector reads from them. A directory is one of a stopped node.

Exit code 0 where everything is equal, 1 where something is not, with the first partition and offset
of each view that differs, 2 where the comparison could not run. Directories that were written here
are removed if all is equal, or kept below `--output`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kraft_wire.columnar.segments import node_of
from kraft_wire.spark import PipelineError
from kraft_wire.spark.session import running
from kraft_wire.storage.os_files import OsFileSystem
from tests.apache.jars import JarsMissing
from tests.apache.java_process import JavaFailed
from tests.apache.three_nodes import ThreeNodes
from tests.judges import missing_programs, not_run_reason
from tests.spark.apache_dirs import write_everything
from tests.spark.apache_views_compare import Compared, compare_view, views_of
from tests.spark.apache_views_live import READINGS, compare_live, started_again
from tests.spark.apache_views_oracle import apache_views
from tests.spark.connector_jars import connector_jars

RECORDS, PARTITIONS = 2_000_000, 100_000
CONF = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "2"}
SNAPSHOT_BYTES_MIN = 5_000
"""A quarter of what the other topics have: a snapshot before the many partitions, however late."""
SNAPSHOT_BYTES_A_PARTITION = 20
"""A partition's record has about a hundred bytes: five snapshots or more, one for a late node."""


class Steps:
    """A bar on standard error, with a line for everything that is done."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def begin(self, what: str, *, more: int = 0) -> None:
        """Say what goes on, and that so many more steps are known of."""
        total = (self._progress.tasks[0].total or 0) + more
        self._progress.update(self._task, description=what, total=total)

    def done(self, line: str) -> None:
        """One step more."""
        self._progress.console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._progress.advance(self._task)


@contextmanager
def steps() -> Iterator[Steps]:
    """Show progress while the body runs."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        yield Steps(progress)


def compare_directories(
    spark: SparkSession, directories: Sequence[Path], shown: Steps
) -> Iterator[Compared]:
    """Yield a row for every view of every directory; JavaFailed where Apache's classes refuse."""
    shown.begin("", more=len(directories))
    told = {}
    for directory in directories:
        shown.begin(f"{directory}: Apache's classes")
        begun = time.monotonic()
        told[directory] = apache_views(directory)
        rows = sum(each.rows for view in told[directory].values() for each in view.values())
        shown.done(f"{directory}: Apache's classes: {rows:,} rows, {_seconds(begun)}")
    shown.begin("", more=sum(len(views_of(each)) for each in told.values()))
    for directory, apaches in told.items():
        node = node_of(OsFileSystem(), str(directory)) or str(directory)
        for view in views_of(apaches):
            shown.begin(f"node {node}: {view.name}")
            groups = apaches.get(view.name, {})
            yield compare_view(spark, node, view, directory, groups, directory)


def generated(spark: SparkSession, cluster: ThreeNodes, shown: Steps) -> Iterator[Compared]:
    """Yield the rows of the directories that a cluster left, and of its nodes started again."""
    yield from compare_directories(spark, cluster.data, shown)
    shown.begin("three nodes start again", more=READINGS)
    with started_again(cluster):
        shown.begin("Spark's own connector")
        yield from compare_live(spark, cluster)


def _seconds(begun: float) -> str:
    return f"{time.monotonic() - begun:.1f} s"


def write(output: Path, records: int, partitions: int, shown: Steps) -> ThreeNodes:
    """Have three nodes write their directories below `output`."""
    shown.begin(f"three nodes write {records:,} records and {partitions:,} partitions", more=1)
    begun = time.monotonic()
    snapshot_bytes = max(SNAPSHOT_BYTES_A_PARTITION * partitions, SNAPSHOT_BYTES_MIN)
    cluster = write_everything(
        output, records, partitions=partitions, snapshot_bytes=snapshot_bytes
    )
    shown.done(f"{output}: written, {_seconds(begun)}")
    return cluster


def compare_all(arguments: argparse.Namespace, output: Path) -> list[Compared]:
    """Do what the arguments say; a row for everything that was compared."""
    found = []
    jars = [] if arguments.directories else connector_jars()
    with steps() as shown:
        cluster = None
        if not arguments.directories:
            cluster = write(output, arguments.records, arguments.partitions, shown)
        with running("local[*]", conf=CONF, jars=jars) as spark:
            if cluster is None:
                rows = compare_directories(spark, arguments.directories, shown)
            else:
                rows = generated(spark, cluster, shown)
            for row in rows:
                found.append(row)
                verdict = row.difference or "equal"
                shown.done(f"node {row.node}: {row.view}: {row.rows:,} rows, {verdict}")
    return found


def show(rows: Sequence[Compared]) -> None:
    """Print the table."""
    table = Table("node", "view", title="views of log directories, and what Apache reads there")
    for name in ("rows", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in rows:
        verdict = "equal"
        if not row.is_equal:
            verdict = f"NOT equal to {row.other_rows:,} rows: first {row.difference}"
        table.add_row(row.node, row.view, f"{row.rows:,}", f"{row.seconds:.1f}", verdict)
    Console(width=150, markup=False).print(table)


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; it ends the process with 2 where it is wrong."""
    parser = argparse.ArgumentParser(prog="make apache-views")
    parser.add_argument("directories", nargs="*", type=Path, metavar="NODE_DIR")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help="in metadata only")
    parser.add_argument("--output", type=Path, help="an empty or new directory, which is kept")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    given = parser.parse_args(words)
    if given.output and given.output.exists() and any(given.output.iterdir()):
        parser.error(f"{given.output} is not empty")
    return given


def main(words: Sequence[str] | None = None) -> int:
    """Compare, and print what was found."""
    arguments = parsed(words)
    if lacking := missing_programs(["java"]):
        print(not_run_reason(lacking), file=sys.stderr)
        return 2
    is_ours = not (arguments.directories or arguments.output)
    output = arguments.output or Path(tempfile.gettempdir())
    if is_ours:
        output = Path(tempfile.mkdtemp(prefix="kraft-wire-apache-views-"))
    try:
        rows = compare_all(arguments, output.absolute())
    except (JarsMissing, JavaFailed, PipelineError, OSError, subprocess.TimeoutExpired) as error:
        print(f"not compared: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    is_equal = all(row.is_equal for row in rows)
    if arguments.json:
        print(json.dumps({"equal": is_equal, "rows": [asdict(row) for row in rows]}))
    else:
        show(rows)
    if is_equal and is_ours:
        shutil.rmtree(output)
    elif not arguments.directories:
        print(f"the directories are kept: {output}", file=sys.stderr)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
