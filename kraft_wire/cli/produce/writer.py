"""Writes records to one topic and chooses their partitions as Kafka's default partitioner does."""

from typing import Final

from kraft_wire.cli.random_source import SystemRandomSource
from kraft_wire.cli.record_json import InputRecord
from kraft_wire.client.cluster import ClusterClient, ClusterRefused
from kraft_wire.client.partitioner import partition_of_key
from kraft_wire.client.producing import IdempotentProducer, ProduceSettings
from kraft_wire.model import TopicPartition
from kraft_wire.server.clock import wall_ms
from kraft_wire.wire.compression.codecs import Compression

__all__ = ["SECONDS", "TopicWriter"]

SECONDS: Final = 30.0
"""How long errors that pass may last."""


class TopicWriter:
    """Writes records of one topic; `flush` at the end.

    Records without a key go to one partition until its batch is full, then to the next.
    """

    def __init__(self, cluster: ClusterClient, topic: str, compression: Compression) -> None:
        """Create the topic where brokers create topics automatically."""
        self._topic = topic
        self._count = cluster.partitions_of([topic], create=True)[topic]
        settings = ProduceSettings(compression=compression, delivery_seconds=SECONDS)
        self._producer = IdempotentProducer(cluster, settings)
        self._sticky = SystemRandomSource().below(self._count)

    def write(self, record: InputRecord) -> None:
        """Write a record, later. Errors: ClusterRefused."""
        partition = self._partition_of(record)
        at_ms = wall_ms() if record.timestamp_ms is None else record.timestamp_ms
        place = TopicPartition(self._topic, partition)
        is_full = self._producer.append(place, at_ms, record.key, record.value, record.headers)
        if is_full and partition == self._sticky:
            self._sticky = (self._sticky + 1) % self._count

    def flush(self) -> None:
        """Return once every record is acknowledged. Errors: ClusterRefused."""
        self._producer.flush()

    def _partition_of(self, record: InputRecord) -> int:
        if record.partition is not None:
            if record.partition >= self._count:
                raise ClusterRefused(
                    f"topic {self._topic} has no partition {record.partition}: it has {self._count}"
                )
            return record.partition
        if record.key is not None:
            return partition_of_key(record.key, self._count)
        return self._sticky
