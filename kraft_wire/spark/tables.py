"""`kraft-wire spark tables`: metadata logs and snapshots as Parquet tables, a task a cluster.

A log is one order of records, so one worker replays it; many clusters are many tasks. The tables
are written by the workers and become visible together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyarrow import parquet
from pyspark.sql import SparkSession

from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.garbage_collection import uncollected
from kraft_wire.spark.history_reading import AsOf, ReadHistory, parse_as_of, read_history
from kraft_wire.spark.metadata_tables import TABLES, tables_of
from kraft_wire.spark.options import LogOptions, parse_log_options
from kraft_wire.spark.planning import LogPart
from kraft_wire.spark.staging import keep_only, staged
from kraft_wire.spark.views import metadata_logs
from kraft_wire.spark.workers import Amount, Tell, attempt_name, run_on_workers, silent
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["Cluster", "WrittenTables", "plan_tables", "write_tables"]


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster's metadata logs, the one to read first at the head."""

    cluster_id: str
    logs: tuple[LogPart, ...]

    @property
    def size_bytes(self) -> int:
        """The bytes of the log that is read."""
        return self.logs[0].size_bytes


@dataclass(frozen=True, slots=True)
class WrittenTables:
    """What came of one cluster."""

    cluster_id: str
    directory: str
    records: int
    end_offset: int
    rows: dict[str, int]
    file: str
    """The name of its file in the directory of every table."""


def plan_tables(node_dirs: Sequence[str]) -> list[Cluster]:
    """Return the clusters whose metadata logs the directories hold."""
    options = _options(node_dirs)
    return [Cluster(name, logs) for name, logs in metadata_logs(OsFileSystem(), options)]


def _options(node_dirs: Sequence[str]) -> LogOptions:
    return parse_log_options({"path": ",".join(node_dirs), "view": "metadata"})


def write_tables(
    spark: SparkSession,
    node_dirs: Sequence[str],
    output: str,
    *,
    as_of: str | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> list[WrittenTables]:
    """Write `output`/TABLE/*.parquet for the eight tables, all of them or nothing.

    `as_of` is an offset, exclusive, or a time. PipelineError for what is damaged or does not reach
    back so far, and where nothing can be written.
    """
    until = parse_as_of(as_of)
    clusters = plan_tables(node_dirs)
    reading = _options(node_dirs).paths
    with staged(output, overwrite=overwrite, reading=reading) as staging:
        place = str(staging)
        written = run_on_workers(
            spark,
            clusters,
            lambda cluster: _write_cluster(cluster, place, until),
            amount_of=_amount_of,
            tell=tell,
        )
        keep_only(staging, [f"{table}/{each.file}" for each in written for table in TABLES])
        return written


def _amount_of(cluster: Cluster, written: WrittenTables) -> Amount:
    return Amount(len(cluster.logs[0].stretches), cluster.size_bytes, written.records)


def _write_cluster(cluster: Cluster, staging: str, as_of: AsOf) -> WrittenTables:
    """Replay one cluster's log and write its files."""
    with uncollected():
        read, directory = _read(cluster, as_of)
        tables = tables_of(read, cluster.cluster_id)
    rows = {}
    name = f"part-{attempt_name()}.parquet"
    for table_name, table in tables.items():
        path = Path(staging, table_name, name)
        try:
            path.parent.mkdir(exist_ok=True)
            parquet.write_table(table, path)
        except OSError as error:
            reason = str(error).rsplit("Detail: ", 1)[-1]  # Arrow hides it behind its own words
            raise PipelineError(f"{Path(staging).parent}: cannot write Parquet: {reason}") from None
        rows[table_name] = table.num_rows
    assert list(rows) == list(TABLES), rows
    return WrittenTables(
        cluster.cluster_id, directory, read.history.records, read.end.offset + 1, rows, name
    )


def _read(cluster: Cluster, as_of: AsOf) -> tuple[ReadHistory, str]:
    """Read the first log of several that reaches back as far as is asked."""
    failures: list[PipelineError] = []
    for part in cluster.logs:
        try:
            return read_history(OsFileSystem(), part, as_of), part.directory
        except PipelineError as error:
            failures.append(error)
    raise failures[0]
