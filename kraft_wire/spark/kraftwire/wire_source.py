"""The format `kraftwire`: topics of a live cluster as tables, in Kafka's protocol, without a jar.

Rows, option names and offsets are those of Spark's own connector, so a query changes by the name of
its format alone. Batch writes need `mode("append")`: Spark asks that of every source in Python.
"""

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from kraft_wire.columnar import records_schema
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.schemas import chosen_columns, ddl_of
from kraft_wire.spark.kraftwire.wire_options import includes_headers, parse_wire_options
from kraft_wire.spark.kraftwire.wire_sink import WireStreamWriter, WireWriter, parse_sink
from kraft_wire.spark.kraftwire.wire_stream import WireStreamReader
from kraft_wire.spark.kraftwire.wire_tasks import WireReader

__all__ = ["KraftWireSource"]


class KraftWireSource(DataSource):
    """One `load()` or `save()` of the format."""

    @classmethod
    def name(cls) -> str:
        """Return the name in `format(...)`."""
        return "kraftwire"

    def schema(self) -> str:
        """Return the columns of a record."""
        return ddl_of(records_schema(headers=includes_headers(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query; `schema` prunes."""
        return WireReader(parse_wire_options(self.options, streaming=False), _chosen(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream."""
        return WireStreamReader(parse_wire_options(self.options, streaming=True), _chosen(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query."""
        if overwrite:
            raise PipelineError("mode overwrite is not for topics, which only grow: use append")
        return WireWriter(parse_sink(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a stream, for any output mode."""
        return WireStreamWriter(parse_sink(self.options, schema))


def _chosen(schema: object) -> pa.Schema:
    """Return the columns of a query; a schema alone may request headers."""
    return chosen_columns("kraftwire", records_schema(headers=True), schema)
