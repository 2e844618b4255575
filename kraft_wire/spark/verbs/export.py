"""`kraft-wire spark export`: the records of log directories as Parquet.

Two writers, the same rows. `arrow` writes the reader's rows inside the tasks, so nothing goes
through the JVM: two to three times as fast. `spark` is Spark's own writer, with its settings
(`spark.sql.parquet.*`). Either way the directory becomes visible when all of it is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from kraft_wire.settings.topic_names import METADATA_TOPIC
from kraft_wire.spark.failure import PipelineError, translated
from kraft_wire.spark.kraftlog.options import LogOptions, parse_log_options
from kraft_wire.spark.kraftlog.schemas import view_schema
from kraft_wire.spark.kraftlog.views import ViewTask, plan_view, read_task
from kraft_wire.spark.registration import parallelism_of
from kraft_wire.spark.verbs.staging import keep_only, staged
from kraft_wire.spark.workers import Amount, Tell, attempt_name, run_on_workers, silent
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["Exported", "Writer", "export_records", "planned_bytes", "without_internal"]

Writer = Literal["spark", "arrow"]

_CHOOSING: Final = frozenset({"topics", "topicspattern", "assign"})
_INTERNAL: Final = (
    METADATA_TOPIC,
    "__consumer_offsets",
    "__share_group_state",
    "__transaction_state",
)
"""Topics whose records are Kafka's own."""
_GROUP_ROWS: Final = 1 << 18
_GROUP_BYTES: Final = 64 << 20
"""A row group is written when it has so many rows or bytes."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The totals of the output."""

    files: int
    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _File:
    """The output of one task; no name if it had no rows."""

    name: str
    records: int


def without_internal(options: Mapping[str, str]) -> dict[str, str]:
    """Return options that leave Kafka's own topics out, unless they choose topics themselves.

    Other views than those of logs have no topics to choose.
    """
    given = {name.lower(): value for name, value in options.items()}
    is_of_logs = given.get("view", "records").strip().lower() in ("records", "batches", "segments")
    if not is_of_logs or _CHOOSING & given.keys():
        return dict(options)
    return {**options, "topicsPattern": f"(?!(?:{'|'.join(_INTERNAL)})$).*"}


def planned_bytes(node_dirs: Sequence[str], options: Mapping[str, str] | None = None) -> int:
    """Return the number of bytes of logs to read."""
    tasks = plan_view(OsFileSystem(), _options(node_dirs, options), 1)
    return sum(part.size_bytes for task in tasks for part in task.parts)


def export_records(
    spark: SparkSession,
    node_dirs: Sequence[str],
    output: str,
    *,
    writer: Writer = "arrow",
    options: Mapping[str, str] | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> Exported:
    """Write a view, `records` by default, to `output`/*.parquet, all of it or nothing.

    `options` are those of the format `kraftlog`.
    """
    asked = _options(node_dirs, options)
    with staged(output, overwrite=overwrite, reading=asked.paths) as staging:
        if writer == "arrow":
            _write_arrow(spark, asked, staging, tell)
        else:
            _write_spark(spark, node_dirs, options or {}, staging)
        return _counted(staging)


def _options(node_dirs: Sequence[str], options: Mapping[str, str] | None) -> LogOptions:
    return parse_log_options({**(options or {}), "path": ",".join(node_dirs)})


def _write_spark(
    spark: SparkSession, node_dirs: Sequence[str], options: Mapping[str, str], staging: Path
) -> None:
    with translated():
        frame = spark.read.format("kraftlog").options(**options).load(",".join(node_dirs))
        frame.write.mode("append").parquet(str(staging))


def _write_arrow(spark: SparkSession, options: LogOptions, staging: Path, tell: Tell) -> None:
    tasks = plan_view(OsFileSystem(), options, parallelism_of(spark))
    place = str(staging)
    written = run_on_workers(
        spark,
        tasks,
        lambda task: _write_task(task, options, place),
        amount_of=_amount_of,
        tell=tell,
    )
    keep_only(staging, [each.name for each in written if each.name])
    if not any(each.name for each in written):  # readers need the columns
        parquet.write_table(view_schema(options).empty_table(), staging / "part-empty.parquet")


def _amount_of(task: ViewTask, written: _File) -> Amount:
    files = sum(len(part.stretches) for part in task.parts)
    return Amount(files, sum(part.size_bytes for part in task.parts), written.records)


def _write_task(task: ViewTask, options: LogOptions, staging: str) -> _File:
    """Write one task's rows to a separate file; remove the file if that fails."""
    path = Path(staging, f"part-{attempt_name()}.parquet")
    schema = view_schema(options)
    groups = _groups(read_task(OsFileSystem(), task, options, schema))
    first = next(groups, None)
    if first is None:
        return _File("", 0)
    records = first.num_rows
    try:
        with parquet.ParquetWriter(path, schema, compression="snappy") as writer:
            writer.write_table(first)
            for group in groups:
                writer.write_table(group)
                records += group.num_rows
    except OSError as error:
        path.unlink(missing_ok=True)
        raise PipelineError(
            f"{path.parent.parent}: cannot write Parquet: {_reason(error)}"
        ) from None
    return _File(path.name, records)


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Put batches together to row groups of a useful size."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def _reason(error: OSError) -> str:
    """Return the system's error text, which Arrow puts at the end of a longer line."""
    return str(error).rsplit("Detail: ", 1)[-1]


def _counted(staging: Path) -> Exported:
    """Return the contents by the files' metadata."""
    files = sorted(staging.rglob("*.parquet"))
    records = sum(parquet.read_metadata(path).num_rows for path in files)
    return Exported(len(files), records, sum(path.stat().st_size for path in files))
