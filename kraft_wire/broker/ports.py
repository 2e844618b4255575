"""What the broker reads and asks of its neighbours, as it sees them.

`broker` imports neither `storage` nor `controller`; `node` hands in objects that satisfy these
protocols. The metadata views are read-only and immutable: a new image is a new object.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kraft_wire.model import (
    FileSlice,
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    StorageError,
    TopicPartition,
    Uuid,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.record_batch import RecordBatch

__all__ = [
    "BrokerView",
    "ControllerChannel",
    "EndpointView",
    "FeatureRangeView",
    "LeaderEpochsView",
    "LogDirectoryUsage",
    "LogReadView",
    "LogStore",
    "MetadataView",
    "NamedVerdict",
    "PartitionLog",
    "PartitionView",
    "ProducerStateView",
    "ProducerStatesView",
    "ProducerVerdict",
    "TimestampAndOffsetView",
    "TopicLimits",
    "TopicView",
]


class PartitionView(Protocol):
    """One partition as the metadata log describes it."""

    @property
    def partition(self) -> int: ...
    @property
    def replicas(self) -> Sequence[int]: ...
    @property
    def isr(self) -> Sequence[int]: ...
    @property
    def eligible_leader_replicas(self) -> Sequence[int]: ...
    @property
    def last_known_elr(self) -> Sequence[int]: ...
    @property
    def leader(self) -> int:
        """Node id of the leader, -1 for none."""
        ...

    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...


class TopicView(Protocol):
    """One topic with its partitions, numbered without gaps from 0."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> Uuid: ...
    @property
    def partitions(self) -> Mapping[int, PartitionView]: ...


class EndpointView(Protocol):
    """Where a broker listens: one entry per listener name."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class FeatureRangeView(Protocol):
    """Levels of a feature that a node supports, inclusive."""

    @property
    def min_level(self) -> int: ...
    @property
    def max_level(self) -> int: ...


class BrokerView(Protocol):
    """A registered broker."""

    @property
    def broker_id(self) -> int: ...
    @property
    def broker_epoch(self) -> int: ...
    @property
    def rack(self) -> str | None: ...
    @property
    def fenced(self) -> bool: ...
    @property
    def endpoints(self) -> Mapping[str, EndpointView]: ...
    @property
    def features(self) -> Mapping[str, FeatureRangeView]: ...


class MetadataView(Protocol):
    """The cluster's metadata at one offset of the metadata log (`controller.image`)."""

    @property
    def offset(self) -> int:
        """Offset of the last metadata record that this image contains, -1 before the first."""
        ...

    @property
    def finalized_features(self) -> Mapping[str, int]: ...
    @property
    def finalized_features_epoch(self) -> int:
        """Offset of the last image in which a feature changed."""
        ...

    @property
    def brokers(self) -> Mapping[int, BrokerView]: ...
    def topic(self, name: str) -> TopicView | None: ...
    def topic_by_id(self, topic_id: Uuid) -> TopicView | None: ...
    def topics(self) -> Iterable[TopicView]:
        """Every topic, in name order."""
        ...

    @property
    def configs(self) -> Mapping[tuple[int, str], Mapping[str, str]]:
        """All explicitly set values, by resource type and name."""
        ...

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Explicitly set values; types as in ConfigRecord: 2 topic, 4 broker, 16, 32 group."""
        ...


class LogReadView(Protocol):
    """A stretch of whole batches, the first of which contains the offset that was asked for."""

    @property
    def records(self) -> FileSlice | bytes: ...
    @property
    def size_bytes(self) -> int: ...


class NamedVerdict(Protocol):
    """A member of storage's `SequenceVerdict`, known by its name."""

    @property
    def name(self) -> str:
        """OK, DUPLICATE, or the name of the error code."""
        ...


class ProducerVerdict(Protocol):
    """What the producer's state says about the next batch."""

    @property
    def verdict(self) -> NamedVerdict: ...
    @property
    def base_offset(self) -> Offset:
        """Of a duplicate: the offset that the first copy got."""
        ...

    @property
    def timestamp(self) -> int:
        """Of a duplicate: the newest time in the first copy."""
        ...


class ProducerStateView(Protocol):
    """One producer id that a partition remembers."""

    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def last_sequence(self) -> int: ...
    @property
    def last_timestamp(self) -> int: ...
    @property
    def coordinator_epoch(self) -> int: ...
    @property
    def transaction_first_offset(self) -> Offset | None:
        """First offset of the open transaction, None when there is none."""
        ...


class ProducerStatesView(Protocol):
    """Idempotent producers that wrote to one partition (KIP-98)."""

    def check(self, batch: RecordBatch) -> ProducerVerdict: ...
    def active_producers(self) -> Iterable[ProducerStateView]: ...


class TopicLimits(Protocol):
    """The topic settings that an append obeys (`storage.LogConfig` has them all)."""

    @property
    def max_message_bytes(self) -> int: ...
    @property
    def segment_bytes(self) -> int: ...
    @property
    def compression_type(self) -> str:
        """`producer` or the name of a codec that every stored batch has."""
        ...

    @property
    def is_compacted(self) -> bool: ...
    @property
    def is_deleted(self) -> bool: ...
    @property
    def message_timestamp_type(self) -> str:
        """`CreateTime` or `LogAppendTime`."""
        ...

    @property
    def message_timestamp_before_max_ms(self) -> int: ...
    @property
    def message_timestamp_after_max_ms(self) -> int: ...
    @property
    def min_insync_replicas(self) -> int: ...
    @property
    def flush_messages(self) -> int: ...


class LeaderEpochsView(Protocol):
    """Where each leader epoch of a log began (KIP-101)."""

    def epoch_at(self, offset: Offset) -> LeaderEpoch | None: ...
    def assign(self, epoch: LeaderEpoch, start_offset: Offset, *, durable: bool = True) -> bool: ...
    @property
    def latest(self) -> LeaderEpoch | None: ...


class PartitionLog(Protocol):
    """One partition's log, as `storage.Log` provides it."""

    @property
    def config(self) -> TopicLimits: ...
    @property
    def producer_states(self) -> ProducerStatesView: ...
    @property
    def epochs(self) -> LeaderEpochsView: ...

    high_watermark: Offset
    """Exclusive end of what is committed; written by the partition alone."""

    @property
    def log_start_offset(self) -> Offset: ...
    @property
    def log_end_offset(self) -> Offset: ...
    @property
    def unflushed_records(self) -> int:
        """Records that a power loss would take."""
        ...

    def append(
        self,
        data: bytes | bytearray | memoryview,
        batches: Sequence[RecordBatch],
        now_ms: int,
        wall_ms: int,
    ) -> None: ...
    def read(
        self, offset: Offset, max_bytes: int, *, upper_bound: Offset, min_one_batch: bool
    ) -> LogReadView: ...
    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> OffsetAndEpoch: ...
    def advance_log_start_offset(self, offset: Offset) -> bool:
        """Hide the records below `offset`; false when it is not above the log start offset."""
        ...

    def flush(self) -> None: ...


class TimestampAndOffsetView(Protocol):
    """A record found by its time."""

    @property
    def timestamp(self) -> int: ...
    @property
    def offset(self) -> Offset: ...
    @property
    def leader_epoch(self) -> LeaderEpoch: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectoryUsage:
    """One entry of `log.dirs`, as DescribeLogDirs shows it; sizes are -1 where it is offline."""

    path: str
    is_offline: bool = False
    total_bytes: int = -1
    """Size of the volume that the directory is on."""
    usable_bytes: int = -1
    """Space of that volume that this process may still fill."""
    partition_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Size of each partition's log; the metadata log is not among them."""


class LogStore(Protocol):
    """The node's log directories, as one place where partitions have logs."""

    def usage(self) -> Sequence[LogDirectoryUsage]:
        """Return the log directories in the order of `log.dirs`, failed ones included."""
        ...

    def get(self, partition: TopicPartition) -> PartitionLog | None: ...
    def create(
        self, partition: TopicPartition, topic_id: Uuid, config: Mapping[str, str]
    ) -> PartitionLog: ...
    def offset_for_timestamp(
        self, log: PartitionLog, timestamp: int, *, upper_bound: Offset
    ) -> TimestampAndOffsetView | None: ...
    def offset_of_max_timestamp(
        self, log: PartitionLog, *, upper_bound: Offset
    ) -> TimestampAndOffsetView | None: ...
    def configure(self, partition: TopicPartition, config: Mapping[str, str]) -> None: ...
    def delete(self, partition: TopicPartition) -> None: ...
    def failed(self, partition: TopicPartition, error: StorageError) -> Sequence[TopicPartition]:
        """Take note of a disk's error; return the partitions that cannot be used any more."""
        ...


class ControllerChannel(Protocol):
    """Requests of the broker itself to the active controller: topic creation, producer ids.

    Answers come back through `Broker.controller_answered(tag, response, now_ms)`, possibly before
    `send` returns, possibly never: whoever sends keeps a deadline.
    """

    def send(self, tag: str, request: Message) -> None: ...
