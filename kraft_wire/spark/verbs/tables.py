"""`kraft-wire spark tables`: metadata, transactional ids and groups as Parquet tables.

A log is one order of records, but the states of a topic do not depend on other topics: several
tasks replay a long log, each for a share of the topics (`topic_share`), and many tasks replay many
clusters. The workers write the tables, which become visible together. If one task refuses a log,
the next best replica replaces it for all tasks. A log that grew between two tasks is read up to the
smaller of their ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from kraft_wire.columnar import PartitionFiles
from kraft_wire.columnar.transaction_log import TRANSACTION_STATE_TOPIC
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.garbage_collection import uncollected
from kraft_wire.spark.kraftlog.options import LogOptions, parse_log_options
from kraft_wire.spark.kraftlog.planning import LogPart
from kraft_wire.spark.kraftlog.views import metadata_logs, topic_logs
from kraft_wire.spark.metadata.group_state import CONSUMER_OFFSETS_TOPIC
from kraft_wire.spark.metadata.group_tables import group_tables
from kraft_wire.spark.metadata.history_reading import AsOf, ReadHistory, parse_as_of, read_history
from kraft_wire.spark.metadata.metadata_tables import TABLE_SCHEMAS, tables_of
from kraft_wire.spark.metadata.topic_share import TopicShare
from kraft_wire.spark.metadata.transaction_rows import transaction_rows
from kraft_wire.spark.registration import parallelism_of
from kraft_wire.spark.verbs.staging import keep_only, staged
from kraft_wire.spark.workers import Amount, Tell, attempt_name, run_on_workers, silent
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["ClusterLogs", "WrittenTables", "plan_tables", "write_tables"]

_SHARE_BYTES: Final = 4 << 20
"""Bytes of a log for each of its tasks: with fewer, reading all of it costs what sharing saves."""
_SHARES_MAX: Final = 8
"""Of one log: each of its tasks reads all of it, which is a tenth of the work."""
_MOSTLY_DISTINCT: Final = (
    *("offset", "fromOffset", "untilOffset"),
    *("timestamp", "fromTimestamp", "untilTimestamp"),
)
"""Columns for which a dictionary is half of the time of writing, and no smaller."""
_ROUNDS_MAX: Final = 5
"""How often a log is read again because it was not the same for all tasks."""


@dataclass(frozen=True, slots=True)
class ClusterLogs:
    """One cluster's metadata logs, the one to read first at the head."""

    cluster_id: str
    logs: tuple[LogPart, ...]
    transaction_logs: tuple[PartitionFiles, ...] = ()
    """One replica of each partition of `__transaction_state` that is there."""
    group_logs: tuple[PartitionFiles, ...] = ()
    """Likewise of `__consumer_offsets`."""

    @property
    def size_bytes(self) -> int:
        """The bytes of the log that is read."""
        return self.logs[0].size_bytes


@dataclass(frozen=True, slots=True)
class WrittenTables:
    """The result of one cluster."""

    cluster_id: str
    directory: str
    records: int
    end_offset: int
    rows: dict[str, int]
    files: tuple[str, ...]
    """Of all tables, below the output."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A cluster that is to be read, and up to where."""

    cluster: ClusterLogs
    as_of: AsOf
    shares: int
    refused: str = ""
    """Why the first of its logs was not taken."""
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class _Task:
    """One share of one cluster."""

    reading: _Reading
    number: int


@dataclass(frozen=True, slots=True)
class _Written:
    """The output of a task; or only the reason why it refused the log."""

    refused: str = ""
    records: int = 0
    end_offset: int = 0
    epoch: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def plan_tables(node_dirs: Sequence[str]) -> list[ClusterLogs]:
    """Return the clusters whose metadata logs the directories hold."""
    fs, options = OsFileSystem(), _options(node_dirs)
    states = topic_logs(fs, options, TRANSACTION_STATE_TOPIC)
    groups = topic_logs(fs, options, CONSUMER_OFFSETS_TOPIC)
    return [
        ClusterLogs(name, logs, tuple(states.get(name, ())), tuple(groups.get(name, ())))
        for name, logs in metadata_logs(fs, options)
    ]


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
    """Write `output`/TABLE/*.parquet for the twelve tables, all of them or nothing.

    `as_of` is an offset, exclusive, or a time. Errors: PipelineError for a log that is damaged or
    begins later, and if the output cannot be written.
    """
    until = parse_as_of(as_of)
    clusters = plan_tables(node_dirs)
    reading = _options(node_dirs).paths
    done: dict[str, WrittenTables] = {}
    with staged(output, overwrite=overwrite, reading=reading) as staging:
        tasks = parallelism_of(spark)
        left = [_Reading(each, until, _shares(each, tasks)) for each in clusters]
        while left:
            results = _replayed(spark, left, str(staging), tell)
            judged = [_judged(*each) for each in zip(left, results, strict=True)]
            done |= {each.cluster_id: each for each in judged if isinstance(each, WrittenTables)}
            left = [each for each in judged if isinstance(each, _Reading)]
        keep_only(staging, [name for each in done.values() for name in each.files])
    return [done[each.cluster_id] for each in clusters]


def _shares(cluster: ClusterLogs, tasks_max: int) -> int:
    return min(tasks_max, _SHARES_MAX, max(cluster.size_bytes // _SHARE_BYTES, 1))


def _replayed(
    spark: SparkSession, readings: Sequence[_Reading], staging: str, tell: Tell
) -> list[list[_Written]]:
    """Return the results of the tasks of each cluster."""
    tasks = [_Task(each, number) for each in readings for number in range(each.shares)]
    results = run_on_workers(
        spark, tasks, lambda task: _run(task, staging), amount_of=_amount_of, tell=tell
    )
    pairs = zip(tasks, results, strict=True)
    grouped = groupby(pairs, lambda pair: pair[0].reading.cluster.cluster_id)
    return [[written for _, written in group] for _, group in grouped]


def _judged(reading: _Reading, written: Sequence[_Written]) -> WrittenTables | _Reading:
    """Combine the results of one cluster's tasks, or return how to read its log again."""
    cluster = reading.cluster
    refused = next((each.refused for each in written if each.refused), "")
    if refused:
        if len(cluster.logs) == 1:
            raise PipelineError(reading.refused or refused)
        others = replace(cluster, logs=cluster.logs[1:])
        return replace(reading, cluster=others, refused=reading.refused or refused)
    if len({(each.end_offset, each.records, each.epoch) for each in written}) > 1:
        if reading.rounds == _ROUNDS_MAX:
            raise PipelineError(f"{cluster.logs[0].directory} changes while it is read: try again")
        until = replace(reading.as_of, offset=min(each.end_offset for each in written))
        return replace(reading, as_of=until, rounds=reading.rounds + 1)
    return WrittenTables(
        cluster.cluster_id,
        cluster.logs[0].directory,
        written[0].records,
        written[0].end_offset,
        {name: sum(each.rows[name] for each in written) for name in TABLE_SCHEMAS},
        tuple(name for each in written for name in each.files),
    )


def _amount_of(task: _Task, written: _Written) -> Amount:
    """A share's part of the log, although the task reads all of it."""
    cluster, shares = task.reading.cluster, task.reading.shares
    if task.number:
        return Amount(0, cluster.size_bytes // shares, 0)
    size = cluster.size_bytes - (shares - 1) * (cluster.size_bytes // shares)
    return Amount(len(cluster.logs[0].stretches), size, written.records)


def _run(task: _Task, staging: str) -> _Written:
    """Replay the log for one share of the topics, and write its files."""
    cluster, as_of = task.reading.cluster, task.reading.as_of
    share = TopicShare(task.number, task.reading.shares)
    with uncollected():
        try:
            read = read_history(OsFileSystem(), cluster.logs[0], as_of, share)
        except PipelineError as error:
            return _Written(refused=str(error))
        tables = _tables(cluster, read, as_of.timestamp_ms)
    name = f"part-{attempt_name()}.parquet"
    assert list(tables) == list(TABLE_SCHEMAS), list(tables)
    files = []
    for table_name, table in tables.items():
        if share.is_first or table.num_rows:
            files.append(f"{table_name}/{name}")
            _write(table, Path(staging, files[-1]))
    rows = {table_name: table.num_rows for table_name, table in tables.items()}
    return _Written("", read.records, read.end.offset + 1, read.epoch, rows, tuple(files))


def _tables(cluster: ClusterLogs, read: ReadHistory, until_ms: int | None) -> dict[str, pa.Table]:
    """Return the tables of a share; only the first has those of the coordinators' topics."""
    if not read.share.is_first:
        return tables_of(read, cluster.cluster_id)
    fs, names = OsFileSystem(), read.history.image(read.end, read.epoch).topic_names
    ids = transaction_rows(fs, cluster.transaction_logs, until_ms)
    groups = group_tables(fs, cluster.group_logs, until_ms, cluster.cluster_id, names)
    return tables_of(read, cluster.cluster_id, ids, groups)


def _write(table: pa.Table, path: Path) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        shared = [name for name in table.schema.names if name not in _MOSTLY_DISTINCT]
        parquet.write_table(table, path, use_dictionary=shared)
    except OSError as error:
        reason = str(error).rsplit("Detail: ", 1)[-1]  # Arrow hides it behind its own words
        raise PipelineError(f"{path.parents[2]}: cannot write Parquet: {reason}") from None
