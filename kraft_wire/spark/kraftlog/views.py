"""Every view as tasks and as Arrow batches, callable without a Spark session.

`plan_view` lists directories and gives tasks, which are plain values that can be sent elsewhere;
`read_task` reads one; `read_view` does both here. The format `kraftlog` is these three with Spark's
words around them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from kraft_wire.columnar import SEGMENTS, PartitionFiles, segments_table
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.offset_ranges import offset_range
from kraft_wire.spark.kraftlog.options import LogOptions, parse_log_options
from kraft_wire.spark.kraftlog.planning import LogPart, plan_log_parts, whole_log
from kraft_wire.spark.kraftlog.record_views import read_batches_view, read_records_view
from kraft_wire.spark.kraftlog.replicas import (
    METADATA_PARTITION,
    ReplicaDirectory,
    best_first,
    list_replicas,
    log_end,
    one_of_each,
)
from kraft_wire.spark.kraftlog.schemas import SNAPSHOTS, chosen_schema, view_schema
from kraft_wire.spark.metadata.metadata_views import (
    arrow_batches,
    read_metadata_view,
    read_partitions_view,
)
from kraft_wire.spark.metadata.snapshot_files import snapshot_rows
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["ViewTask", "metadata_log", "metadata_logs", "plan_view", "read_task", "read_view"]

_LOGS_PER_TASK: Final = 512


@dataclass(frozen=True, slots=True)
class ViewTask:
    """The input of one task: parts of logs, or the facts about some logs."""

    parts: tuple[LogPart, ...] = ()
    logs: tuple[PartitionFiles, ...] = ()


def plan_view(fs: FileSystem, options: LogOptions, parallelism: int) -> list[ViewTask]:
    """Return the tasks that together read a view; none if it is empty."""
    assert parallelism > 0, parallelism
    if options.view in ("metadata", "snapshots", "partitions"):
        return _plan_metadata(fs, options, parallelism)
    replicas = list_replicas(fs, options)
    if options.view == "segments":
        return _plan_facts(replicas, _LOGS_PER_TASK)
    if options.view == "records":
        replicas = one_of_each(fs, replicas)
    return _plan_parts(fs, replicas, options, parallelism)


def _plan_parts(
    fs: FileSystem, replicas: Sequence[ReplicaDirectory], options: LogOptions, parallelism: int
) -> list[ViewTask]:
    logs = [(each.files, offset_range(fs, each.files, options)) for each in replicas]
    return [ViewTask(parts=parts) for parts in plan_log_parts(fs, logs, options, parallelism)]


def _plan_facts(replicas: Sequence[ReplicaDirectory], count: int) -> list[ViewTask]:
    logs = [replica.files for replica in replicas]
    starts = range(0, len(logs), count)
    return [ViewTask(logs=tuple(logs[start : start + count])) for start in starts]


def metadata_log(fs: FileSystem, options: LogOptions) -> LogPart:
    """Return the whole metadata log, that of the replica which an election would choose."""
    return whole_log(best_first(fs, _metadata_replicas(fs, options))[0].files)


def _metadata_replicas(fs: FileSystem, options: LogOptions) -> list[ReplicaDirectory]:
    everything = replace(options, topics=None, topics_pattern=None, assign=None)
    replicas = [each for each in list_replicas(fs, everything) if each.key == METADATA_PARTITION]
    if not replicas:
        paths = ", ".join(options.paths)
        raise PipelineError(
            f"no __cluster_metadata-0 in {paths}: give the directory of metadata.log.dir too"
        )
    return replicas


def _plan_metadata(fs: FileSystem, options: LogOptions, parallelism: int) -> list[ViewTask]:
    replicas = _metadata_replicas(fs, options)
    if options.view == "snapshots":
        return _plan_facts(replicas, 1)
    if options.view == "metadata":
        return _plan_parts(fs, one_of_each(fs, replicas), options, parallelism)
    return [ViewTask(parts=parts) for _, parts in _by_cluster(fs, replicas)]


def metadata_logs(fs: FileSystem, options: LogOptions) -> list[tuple[str, tuple[LogPart, ...]]]:
    """Return each cluster's id with its metadata logs, the one to read first at the head."""
    return _by_cluster(fs, _metadata_replicas(fs, options))


def topic_logs(fs: FileSystem, options: LogOptions, topic: str) -> dict[str, list[PartitionFiles]]:
    """Return one replica of each partition of a topic, by cluster."""
    everything = replace(options, topics=None, topics_pattern=None, assign=None)
    replicas = [each for each in list_replicas(fs, everything) if each.key.topic == topic]
    found: dict[str, list[PartitionFiles]] = {}
    for each in one_of_each(fs, replicas):
        found.setdefault(each.cluster_id, []).append(each.files)
    return found


def _by_cluster(
    fs: FileSystem, replicas: Sequence[ReplicaDirectory]
) -> list[tuple[str, tuple[LogPart, ...]]]:
    found = []
    for cluster_id in dict.fromkeys(each.cluster_id for each in replicas):
        own = [each for each in replicas if each.cluster_id == cluster_id]
        found.append((cluster_id, tuple(whole_log(each.files) for each in best_first(fs, own))))
    return found


def read_task(
    fs: FileSystem, task: ViewTask, options: LogOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, with exactly the columns of `schema`.

    Errors: PipelineError for a file that is damaged (`onCorrupt`), gone or unreadable.
    """
    if options.view == "segments":
        yield from _segments(fs, task, options, schema)
    elif options.view == "snapshots":
        for files in task.logs:
            rows = list(snapshot_rows(fs, files.directory, files.node, options))
            yield from arrow_batches(rows, SNAPSHOTS, schema, options.arrow_batch_rows)
    elif options.view == "partitions":
        yield from _partitions(fs, task, options, schema)
    else:
        read = {
            "records": read_records_view,
            "batches": read_batches_view,
            "metadata": read_metadata_view,
        }[options.view]
        for part in task.parts:
            yield from read(fs, part, options, schema)


def read_view(
    raw_options: Mapping[str, str], columns: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield a whole view in this process; options as the format takes them."""
    options = parse_log_options(raw_options)
    schema = view_schema(options)
    if columns:
        schema = chosen_schema(options, pa.schema([schema.field(name) for name in columns]))
    fs = OsFileSystem()
    for task in plan_view(fs, options, 1):
        yield from read_task(fs, task, options, schema)


def _segments(
    fs: FileSystem, task: ViewTask, options: LogOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    known = [replace(files, log_end_offset=log_end(fs, files)) for files in task.logs]
    table = segments_table(known)
    assert table.schema.equals(SEGMENTS)
    if table.num_rows:
        chosen = table.select(schema.names).cast(schema)
        yield from chosen.to_batches(max_chunksize=options.arrow_batch_rows)


def _partitions(
    fs: FileSystem, task: ViewTask, options: LogOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Read the first log of several that reaches back to the requested start."""
    failures: list[PipelineError] = []
    for part in task.parts:
        try:
            yield from read_partitions_view(fs, part, options, schema)
        except PipelineError as error:
            failures.append(error)
        else:
            return
    if failures:
        raise failures[0]
