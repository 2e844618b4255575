"""Streams over topics: where each micro-batch ends, and the ranges of offsets between two ends.

The checkpoint holds offsets in the form of Spark's own connector, `{"orders": {"0": 23}}`,
exclusive, and they alone record the progress: a new process plans and reads the same. Partitions
that appear later begin at their earliest offset. A partition that is gone, or whose end went back,
is data loss, which `failOnDataLoss` judges; so is an offset that was deleted before it is read.

The start of a query is not stored: Spark asks again within the first micro-batch, and after a crash
in it. A query from the latest offsets, which move, therefore has an empty first micro-batch: the
query begins at the end of that batch, which the checkpoint has.
"""

import sys
import time
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kraft_wire.client.cluster import EARLIEST_TIMESTAMP, ClusterClient, RetryDeadline
from kraft_wire.model import TopicPartition
from kraft_wire.spark.failure import PipelineError, line_first
from kraft_wire.spark.kraftwire.offsets import LATEST, from_nested, to_nested
from kraft_wire.spark.kraftwire.wire_offsets import (
    PartitionRange,
    asking,
    bounded,
    prorated,
    subscribed,
)
from kraft_wire.spark.kraftwire.wire_options import Bound, WireOptions
from kraft_wire.spark.kraftwire.wire_tasks import WirePartition, input_partitions, read_range

__all__ = ["WireStreamReader"]

Nested = dict[str, dict[str, int]]
Offsets = dict[TopicPartition, int]

_LATEST: Final = Bound("the end", word="latest")
_STALE_SECONDS: Final = 2.0
"""How long an end that lies before the start may be that of a broker which is behind."""
_GO_ON: Final = "set failOnDataLoss to false to continue without the lost records"


class WireStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches; its state between two calls only saves requests."""

    def __init__(self, options: WireOptions, schema: pa.Schema) -> None:
        self.options = options
        self.schema = schema
        self._target: Offsets | None = None
        """The end of a query with the trigger availableNow."""
        self._initial: Nested | None = None
        self._is_first = True
        """Whether no micro-batch was asked for yet."""
        self._triggered = 0.0
        self._known: ClusterClient | None = None

    def initialOffset(self) -> Nested:
        """Return where a new query begins, the same each time."""
        if self._initial is None:
            with asking():
                self._initial = to_nested(self._at(self.options.starting))
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of the options; `latestOffset` applies the smaller of two limits."""
        most, least = self.options.trigger_offsets_max, self.options.trigger_offsets_min
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def latestOffset(self, start: Nested, limit: ReadLimit) -> Nested:
        """Return where the next micro-batch ends; `start` without new offsets."""
        began = from_nested(start)
        is_first, self._is_first = self._is_first, False
        if is_first and self._begins_at_the_end(start):
            return start
        with asking():
            ends = self._ends(began) if self._target is None else self._target
            if self._target is not None and self._begins_at_the_end(start):
                ends = ends | {key: max(at, ends.get(key, at)) for key, at in began.items()}
            if isinstance(limit, ReadAllAvailable):
                return to_nested(ends)
            if self._is_too_little(began, ends):
                return start
            if isinstance(limit, ReadMaxRows):
                ends = prorated(began, ends, limit.max_rows, self._earliest)
        return to_nested(ends)

    def reportLatestOffset(self) -> Nested:
        """Return where the topics end, for the query's progress."""
        with asking():
            return to_nested(self._ends({}))

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of a query with the trigger availableNow."""
        with asking():
            self._target = self._ends({})

    def partitions(self, start: Nested, end: Nested) -> list[InputPartition]:
        """Return the tasks between two offsets."""
        began, ended = from_nested(start), from_nested(end)
        if self._is_first and self._begins_at_the_end(start):
            began = {key: min(at, ended[key]) for key, at in began.items() if key in ended}
        for key in sorted(began.keys() - ended.keys()):
            self._lose(f"{key} does not exist any more")
        new = sorted(ended.keys() - began.keys())
        if new:
            with asking():
                earliest = self._earliest(new)
            for key in new:
                if earliest[key]:
                    self._lose(f"{key} appeared with its records before {earliest[key]} deleted")
                began[key] = min(earliest[key], ended[key])
        ranges: list[PartitionRange] = []
        for key, stop in sorted(ended.items()):
            if stop < began[key]:
                self._lose(f"{key} ended at {began[key]} and now ends at {stop}")
            ranges.append(PartitionRange(key, began[key], stop))
        return input_partitions(ranges, self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one task."""
        assert isinstance(partition, WirePartition), partition
        assert partition.part is not None, "a stream plans no task without offsets"
        with line_first():
            yield from read_range(partition.part, self.options, self.schema)

    def stop(self) -> None:
        """Close the connections."""
        if self._known is not None:
            self._known.close()

    @property
    def _cluster(self) -> ClusterClient:
        """The cluster, whose connections stay open between two calls."""
        if self._known is None:
            self._known = ClusterClient(self.options.cluster)
        return self._known

    def _begins_at_the_end(self, start: Nested) -> bool:
        """Whether a query begins here that begins at an end, which has moved since."""
        bound = self.options.starting
        is_at_end = (
            bound.word == "latest"
            or LATEST in (bound.offsets or {}).values()
            or self.options.latest_if_no_later_record
        )
        return is_at_end and start == self._initial

    def _at(self, bound: Bound) -> Offsets:
        keys = subscribed(self._cluster, self.options)
        return bounded(self._cluster, self.options, bound, keys)

    def _ends(self, began: Offsets) -> Offsets:
        """Return the ends of partitions; ends that went back are requested again for a while."""
        patience = RetryDeadline(_STALE_SECONDS)
        while True:
            ends = self._at(_LATEST)
            went_back = any(ends[key] < began.get(key, 0) for key in ends)
            if not went_back or patience.is_over:
                return ends
            patience.pause()

    def _is_too_little(self, began: Offsets, ends: Offsets) -> bool:
        """Whether `minOffsetsPerTrigger` is not reached, and `maxTriggerDelay` allows to wait."""
        least = self.options.trigger_offsets_min
        if least is None or self._target is not None:
            return False
        now = time.monotonic()
        waited_ms = (now - self._triggered) * 1000
        there = sum(end - began.get(key, 0) for key, end in ends.items())
        if self._triggered and waited_ms < self.options.trigger_delay_ms and there < least:
            return True
        self._triggered = now
        return False

    def _earliest(self, keys: list[TopicPartition]) -> Offsets:
        return self._cluster.offsets_at(dict.fromkeys(keys, EARLIEST_TIMESTAMP))

    def _lose(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise PipelineError(f"{what}; {_GO_ON}")
        sys.stderr.write(f"kraftwire: {what}\n")
