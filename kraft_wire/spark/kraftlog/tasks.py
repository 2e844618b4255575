"""Batch queries of `kraftlog`: tasks as Spark's input partitions, and the plain reader of them."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kraft_wire.spark.failure import line_first
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.views import ViewTask, plan_view, read_task
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["LogReader", "ViewPartition"]


class ViewPartition(InputPartition):
    """A task on its way to a worker."""

    def __init__(self, task: ViewTask) -> None:
        super().__init__(task)
        self.task = task


class LogReader(DataSourceReader):
    """Plans on the driver, reads on a worker; holds nothing that is open."""

    def __init__(self, options: LogOptions, schema: pa.Schema, parallelism: int) -> None:
        self.options = options
        self.schema = schema
        self.parallelism = parallelism

    def partitions(self) -> list[InputPartition]:
        """Return one partition a task; Spark would replace an empty list by one without a task."""
        tasks = plan_view(OsFileSystem(), self.options, self.parallelism)
        return [ViewPartition(task) for task in tasks or [ViewTask()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of one task."""
        assert isinstance(partition, ViewPartition), partition
        with line_first():
            yield from read_task(OsFileSystem(), partition.task, self.options, self.schema)
