"""The format `kraftlog`: Kafka's log directories as tables, through Spark's Python Data Source API.

Spark makes a source in one process, plans in another and reads in many, so everything here is a
value that can be pickled. Methods are called by keyword, with the names that the API has.
"""

import os
from collections.abc import MutableMapping
from typing import ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.filters import PushdownReader
from kraft_wire.spark.kraftlog.log_stream import LogStreamReader
from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.refused_stream import RefusedStream
from kraft_wire.spark.kraftlog.schemas import chosen_schema, ddl_of, view_schema
from kraft_wire.spark.kraftlog.tasks import LogReader

__all__ = ["KraftLogSource"]


class KraftLogSource(DataSource):
    """One `load()` of the format."""

    parallelism: ClassVar[int] = os.cpu_count() or 1
    """How many tasks run at a time; `registration` knows it from the session."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.log_options = parse_log_options(options)

    @classmethod
    def name(cls) -> str:
        """Return the name in `format(...)`."""
        return "kraftlog"

    def schema(self) -> str:
        """Return all columns of the view."""
        return ddl_of(view_schema(self.log_options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query; `schema` prunes."""
        chosen = chosen_schema(self.log_options, schema)
        kind = PushdownReader if self.log_options.pushdown else LogReader
        return kind(self.log_options, chosen, self.parallelism)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream over growing directories."""
        view = self.log_options.view
        if view != "records":
            return RefusedStream(PipelineError(f"view {view} is not a stream: use spark.read"))
        try:
            chosen = chosen_schema(self.log_options, schema)
        except PipelineError as error:
            return RefusedStream(error)
        return LogStreamReader(self.log_options, chosen, self.parallelism)
