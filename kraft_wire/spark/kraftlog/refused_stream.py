"""A stream that cannot be read, as a reader that says why when it is first asked.

Spark's own process for streams fails over an exception of `streamReader` with one of its own, and
that is all a user would see.
"""

from collections.abc import Iterator
from typing import NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from kraft_wire.spark.failure import PipelineError

__all__ = ["RefusedStream"]


class RefusedStream(DataSourceStreamReader):
    """Raises the error that it was made with, whatever it is asked."""

    def __init__(self, error: PipelineError) -> None:
        self.line = str(error)

    def initialOffset(self) -> NoReturn:
        """Refuse a new query."""
        raise PipelineError(self.line)

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> NoReturn:
        """Refuse a query that continues."""
        raise PipelineError(self.line)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Refuse a task, to which nobody comes."""
        raise PipelineError(self.line)
