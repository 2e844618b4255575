"""Batch queries of `kraftwire`: ranges of offsets as Spark's input partitions, and their records.

The driver asks for offsets, a worker connects to the leader and turns the bytes of each answer into
Arrow. A worker holds one answer and its decoded rows, while the next answer is in flight.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kraft_wire.client import BrokerConnectionError
from kraft_wire.client.cluster import ClusterClient, ClusterRefused
from kraft_wire.client.fetching import FetchedBatches, OffsetsLost, fetch_partition
from kraft_wire.columnar import (
    BatchColumns,
    BatchSource,
    batch_columns,
    committed_rows,
    fetched_ranges,
    read_records,
    records_table,
    window_of,
)
from kraft_wire.columnar.arrays import Bools
from kraft_wire.columnar.records import CONTENT
from kraft_wire.spark.failure import PipelineError, line_first
from kraft_wire.spark.kraftlog.planning import OffsetRange
from kraft_wire.spark.kraftlog.record_views import kept_rows
from kraft_wire.spark.kraftwire.wire_offsets import (
    PartitionRange,
    asking,
    bounded,
    split_ranges,
    subscribed,
)
from kraft_wire.spark.kraftwire.wire_options import WireOptions

__all__ = ["WirePartition", "WireReader", "input_partitions", "read_range"]

_PLANNING_SECONDS_MAX = 15.0
"""How long a batch query waits for a broker that does not answer."""


class WirePartition(InputPartition):
    """A task for a worker; None if a query reads nothing."""

    def __init__(self, part: PartitionRange | None) -> None:
        super().__init__(part)
        self.part = part


class WireReader(DataSourceReader):
    """Plans on the driver, reads on a worker; holds nothing that is open."""

    def __init__(self, options: WireOptions, schema: pa.Schema) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the tasks; Spark would replace an empty list by one without a range."""
        settings = self.options.cluster
        seconds = min(settings.deadline_seconds, _PLANNING_SECONDS_MAX)
        with asking(), ClusterClient(replace(settings, deadline_seconds=seconds)) as cluster:
            keys = subscribed(cluster, self.options)
            starts = bounded(cluster, self.options, self.options.starting, keys)
            ends = bounded(cluster, self.options, self.options.ending, keys)
        ranges = [PartitionRange(key, starts[key], ends[key]) for key in keys]
        return input_partitions(ranges, self.options) or [WirePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one task."""
        assert isinstance(partition, WirePartition), partition
        if partition.part is not None:
            with line_first():
                yield from read_range(partition.part, self.options, self.schema)


def input_partitions(ranges: list[PartitionRange], options: WireOptions) -> list[InputPartition]:
    """Return ranges of offsets as tasks."""
    parts = split_ranges(ranges, options.partitions_min, options.partition_records_max)
    return [WirePartition(part) for part in parts]


def read_range(
    part: PartitionRange, options: WireOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range of offsets, with the columns of `schema`."""
    try:
        with ClusterClient(options.cluster) as cluster:
            for fetched in fetch_partition(
                cluster, *part, options.fetch, fail_on_loss=options.fail_on_data_loss
            ):
                yield from _decoded(fetched, part, options, schema)
    except OffsetsLost as error:
        raise PipelineError(
            f"{error}; set failOnDataLoss to false to continue without the lost records"
        ) from None
    except (ClusterRefused, BrokerConnectionError) as error:
        raise PipelineError(str(error)) from None


def _decoded(
    fetched: FetchedBatches, part: PartitionRange, options: WireOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    window = window_of(fetched.records)
    columns = batch_columns(window)
    _refuse_damage(columns, part)
    selected: Bools = (columns.last_offset >= fetched.offset) & (columns.base_offset < part.end)
    if options.fetch.read_committed:
        selected &= committed_rows(columns, fetched_ranges(columns, fetched.aborted))
    place = BatchSource(part.key.topic, part.key.partition)
    content = [name for name in CONTENT if name in schema.names]
    for records in read_records(window, columns, selected, content=content):
        for each in records.unreadable:
            raise PipelineError(f"{part.key} offset {each.base_offset}: {each.reason}")
        table = records_table(records, place, schema)
        kept = kept_rows(records.offset, columns, selected, OffsetRange(fetched.offset, part.end))
        if kept is not None:
            table = table.filter(pa.array(kept))
        if table.num_rows:
            yield from table.to_batches(max_chunksize=options.arrow_batch_rows)


def _refuse_damage(columns: BatchColumns, part: PartitionRange) -> None:
    """A broker checks what it stores: a wrong checksum is damage on its disk or in transit."""
    damaged = np.flatnonzero(~columns.is_valid)
    if len(damaged):
        row = int(damaged[0])
        size = int(columns.size_bytes[row])
        raise PipelineError(
            f"{part.key} offset {int(columns.base_offset[row])}: a fetched batch of {size} bytes"
            " has a wrong checksum"
        )
