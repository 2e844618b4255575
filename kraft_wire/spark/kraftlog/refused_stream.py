"""A stream that cannot be read, as a reader whose first call raises the reason.

Spark's process for streams replaces an exception of `streamReader` by another one, and a user would
see only that one.
"""

from collections.abc import Iterator
from typing import NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from kraft_wire.spark.failure import PipelineError

__all__ = ["RefusedStream"]


class RefusedStream(DataSourceStreamReader):
    """Raises its error at every call."""

    def __init__(self, error: PipelineError) -> None:
        self.line = str(error)

    def initialOffset(self) -> NoReturn:
        """Refuse a new query."""
        raise PipelineError(self.line)

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> NoReturn:
        """Refuse a query that continues."""
        raise PipelineError(self.line)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Refuse a task; never called."""
        raise PipelineError(self.line)
