"""The interfaces of the broker's neighbours, as the broker uses them.

`broker` imports neither `storage` nor `controller`; `node` passes objects that satisfy these
protocols. The metadata image has no protocol here: it is read directly (`metadata.image`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Protocol, TypeAlias

from kraft_wire.frozen import frozen
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
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = [
    "AbortedTransactionView",
    "AskController",
    "ControllerChannel",
    "LeaderEpochsView",
    "LogDirectoryUsage",
    "LogReadView",
    "LogStore",
    "NamedVerdict",
    "PartitionLog",
    "ProducerStateView",
    "ProducerStatesView",
    "ProducerVerdict",
    "ReplicaCopies",
    "ReplicaPlaces",
    "TimestampAndOffsetView",
    "TopicLimits",
]


class LogReadView(Protocol):
    """A stretch of whole batches; the first contains the requested offset."""

    @property
    def records(self) -> FileSlice | bytes:
        """The batches, as a slice of the segment or as bytes."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size of the batches together."""
        ...

    @property
    def first_offset(self) -> Offset:
        """Offset of the first batch, which may be below the requested one."""
        ...

    @property
    def first_batch_is_larger(self) -> bool:
        """Whether there is a batch, which is not returned because it is beyond the size asked."""
        ...

    @property
    def is_older(self) -> bool:
        """Whether a later segment has more below the upper bound: this one cannot grow."""
        ...

    @property
    def offset_behind(self) -> Offset:
        """An offset behind all that was read, not the nearest."""
        ...


class NamedVerdict(Protocol):
    """A member of storage's `SequenceVerdict`, identified by its name."""

    @property
    def name(self) -> str:
        """OK, DUPLICATE, or the name of the error code."""
        ...


class ProducerVerdict(Protocol):
    """The verdict of a producer's state about its next batch."""

    @property
    def verdict(self) -> NamedVerdict:
        """Whether the batch is next, a duplicate, or refused."""
        ...

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
    def producer_id(self) -> int:
        """Id that InitProducerId gave out."""
        ...

    @property
    def producer_epoch(self) -> int:
        """Newest epoch seen of that id."""
        ...

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 for none."""
        ...

    @property
    def last_timestamp(self) -> int:
        """Newest record time, in ms of the wall clock."""
        ...

    @property
    def coordinator_epoch(self) -> int:
        """Epoch of the coordinator that wrote the last marker, -1 without one."""
        ...

    @property
    def transaction_first_offset(self) -> Offset | None:
        """First offset of the open transaction, None without one."""
        ...


class ProducerStatesView(Protocol):
    """Idempotent producers that wrote to one partition (KIP-98)."""

    def check(self, batch: RecordBatch) -> ProducerVerdict:
        """Judge a batch by its producer id, epoch and sequence, changing nothing."""
        ...

    def get(self, producer_id: int) -> ProducerStateView | None:
        """Return the stored state of a producer."""
        ...

    def active_producers(self) -> Iterable[ProducerStateView]:
        """Return the producers that have not expired."""
        ...


class TopicLimits(Protocol):
    """The topic settings that an append applies (`storage.LogConfig` has them all)."""

    @property
    def max_message_bytes(self) -> int:
        """`max.message.bytes`: the largest batch as stored."""
        ...

    @property
    def segment_bytes(self) -> int:
        """`segment.bytes`: no batch may be larger than a segment."""
        ...

    @property
    def compression_type(self) -> str:
        """`producer` or the name of a codec that every stored batch has."""
        ...

    @property
    def is_compacted(self) -> bool:
        """Whether `cleanup.policy` has `compact`, which makes keys mandatory."""
        ...

    @property
    def is_deleted(self) -> bool:
        """Whether `cleanup.policy` has `delete`."""
        ...

    @property
    def message_timestamp_type(self) -> str:
        """`CreateTime` or `LogAppendTime`."""
        ...

    @property
    def message_timestamp_before_max_ms(self) -> int:
        """How far a record may be in the past."""
        ...

    @property
    def message_timestamp_after_max_ms(self) -> int:
        """How far a record may be in the future."""
        ...

    @property
    def min_insync_replicas(self) -> int:
        """`min.insync.replicas`, as configured."""
        ...

    @property
    def flush_messages(self) -> int:
        """`flush.messages`: records after which an fsync is due."""
        ...


class LeaderEpochsView(Protocol):
    """Where each leader epoch of a log began (KIP-101)."""

    def epoch_at(self, offset: Offset) -> LeaderEpoch | None:
        """Return the epoch of the record at an offset, None below the log."""
        ...

    def announce(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Note that an epoch without records yet begins at an offset."""
        ...

    @property
    def latest(self) -> LeaderEpoch | None:
        """The newest epoch, None for a log without records."""
        ...


class AbortedTransactionView(Protocol):
    """A transaction whose records a read_committed consumer skips."""

    @property
    def producer_id(self) -> int:
        """The producer of the transaction."""
        ...

    @property
    def first_offset(self) -> Offset:
        """Where it began."""
        ...


class PartitionLog(Protocol):
    """One partition's log, as `storage.Log` provides it."""

    @property
    def config(self) -> TopicLimits:
        """The topic settings in force."""
        ...

    @property
    def producer_states(self) -> ProducerStatesView:
        """The stored states of idempotent producers."""
        ...

    @property
    def epochs(self) -> LeaderEpochsView:
        """Where each leader epoch began."""
        ...

    high_watermark: Offset
    """Exclusive end of the committed records; set by the partition, its broker and its follower."""

    @property
    def log_start_offset(self) -> Offset:
        """First offset that can be read."""
        ...

    @property
    def log_end_offset(self) -> Offset:
        """Offset that the next record gets."""
        ...

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
        gap_epochs: Sequence[OffsetAndEpoch] = (),
    ) -> None:
        """Append validated batches with assigned offsets. Errors: StorageError, DiskFull.

        `gap_epochs`: where epochs began in the gap before them, oldest first.
        """
        ...

    def read(
        self, offset: Offset, max_bytes: int, *, upper_bound: Offset, min_one_batch: bool
    ) -> LogReadView:
        """Return whole batches from the one that contains `offset`, below `upper_bound`."""
        ...

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> OffsetAndEpoch:
        """Return the largest epoch that is not above `epoch`, and its end."""
        ...

    @property
    def last_stable_offset(self) -> Offset:
        """Where the oldest open transaction begins, the high watermark if none is open."""
        ...

    def aborted_transactions(self, first: Offset, end: Offset) -> Sequence[AbortedTransactionView]:
        """Return the aborted transactions that a reader of [first, end) must know."""
        ...

    def advance_log_start_offset(self, offset: Offset) -> bool:
        """Hide the records below `offset`; false when it is not above the log start offset."""
        ...

    def flush(self) -> None:
        """Make everything appended durable; FsyncFailed stops the process."""
        ...

    def truncate_to(self, offset: Offset) -> bool:
        """Remove everything from the batch that holds `offset` on, durably; StorageError."""
        ...

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Drop everything, durably, and continue as an empty log; StorageError."""
        ...


class TimestampAndOffsetView(Protocol):
    """A record found by its time."""

    @property
    def timestamp(self) -> int:
        """Time of the record, in ms of the wall clock."""
        ...

    @property
    def offset(self) -> Offset:
        """Offset of the record."""
        ...

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """Epoch that the record was written in."""
        ...


@frozen(kw_only=True)
class LogDirectoryUsage:
    """One entry of `log.dirs`, for DescribeLogDirs; sizes are -1 if it is offline."""

    path: str
    is_offline: bool = False
    total_bytes: int = -1
    """Size of the volume that the directory is on."""
    usable_bytes: int = -1
    """Space of that volume that this process may still fill."""
    partition_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Size of each partition's log; the metadata log is not among them."""
    copies: Mapping[TopicPartition, tuple[int, Offset]] = field(default_factory=dict)
    """Size and end of each copy of a replica that moves here from another directory (KIP-113)."""


class LogStore(Protocol):
    """The node's log directories, as one place where partitions have logs."""

    def usage(self) -> Sequence[LogDirectoryUsage]:
        """Return the log directories in the order of `log.dirs`, failed ones included."""
        ...

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """Return a partition's log. Errors: StorageError if it exists but is damaged."""
        ...

    def create(
        self, partition: TopicPartition, topic_id: Uuid, config: Mapping[str, str], wall_ms: int
    ) -> PartitionLog:
        """Create a log in the emptiest directory. Errors: StorageError if no directory can take it.

        The store has recorded the error already.
        """
        ...

    def offset_for_timestamp(
        self, log: PartitionLog, timestamp: int, *, upper_bound: Offset
    ) -> TimestampAndOffsetView | None:
        """Return the first record that is not older than `timestamp`, None without one."""
        ...

    def offset_of_max_timestamp(
        self, log: PartitionLog, *, upper_bound: Offset
    ) -> TimestampAndOffsetView | None:
        """Return the newest record by time, None for an empty log."""
        ...

    def configure(self, partition: TopicPartition, config: Mapping[str, str]) -> None:
        """Apply changed topic settings."""
        ...

    def delete(self, partition: TopicPartition) -> None:
        """Remove the log; its files are deleted later, as in Kafka."""
        ...

    def expect_gaps(self, partition: TopicPartition) -> None:
        """Note, durably, that a log may have gaps as compaction leaves them; StorageError."""
        ...

    def settle(self) -> None:
        """Make creations and deletions durable, before anything depends on them."""
        ...

    def failed(self, partition: TopicPartition, error: StorageError) -> Sequence[TopicPartition]:
        """Take note of a disk's error; return the partitions that cannot be used any more."""
        ...


class ReplicaCopies(Protocol):
    """Copies of this broker's replicas in other log directories, which are to replace them.

    Each is a log under another name (KIP-113). Directories are named by their paths.
    """

    def directories(self) -> Mapping[str, bool]:
        """Return the log directories, with whether each one is online."""
        ...

    def directory_of(self, partition: TopicPartition) -> str | None:
        """Return the directory of a replica's log, None without one."""
        ...

    def all(self) -> Mapping[TopicPartition, str]:
        """Return all copies with their directories, but none of a failed directory."""
        ...

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the copy of a replica, None without one or if its directory has failed."""
        ...

    def create(self, partition: TopicPartition, path: str, wall_ms: int) -> PartitionLog:
        """Create an empty copy of a replica. Errors: StorageError, which the store has recorded."""
        ...

    def drop(self, partition: TopicPartition) -> None:
        """Delete the copy of a replica, if there is one."""
        ...

    def promote(self, partition: TopicPartition, wall_ms: int) -> bool:
        """Replace a replica's log by its copy, which has the same end.

        The object of the log stays. False if a disk failed, which is recorded.
        """
        ...

    def failed(self, partition: TopicPartition, error: StorageError) -> None:
        """Take note of a disk's error at a copy; a damaged copy is dropped."""
        ...

    def prefer(self, partition: TopicPartition, path: str) -> None:
        """Create the log of a replica in this directory, if it is created later."""
        ...


class ReplicaPlaces(Protocol):
    """The log directories of this broker's replicas, as the controller has them (KIP-858)."""

    def assign(self, partition: TopicPartition, path: str, now_ms: int) -> None:
        """Report a directory for a replica instead of its own, until `release`."""
        ...

    def is_assigned(self, partition: TopicPartition, path: str) -> bool:
        """Return whether the metadata has this directory, or has no directories at all."""
        ...

    def release(self, topic_id: Uuid, partition: int, now_ms: int) -> None:
        """Report the directory of a replica's log again."""
        ...


AskController: TypeAlias = Callable[[Message, Callable[[Message, int], None]], None]
"""Sends a request of the broker's own to the active controller.

The second argument is called later with the response and the monotonic time, or never.
"""


class ControllerChannel(Protocol):
    """The active controller: its supported versions, and the broker's own requests to it.

    Requests leave when the call of the node ends, or with `ask_now`. Responses return through
    `Broker.controller_answered` after that, possibly never: the sender keeps a deadline.
    """

    def send(self, tag: str, request: Message) -> None:
        """Have the active controller asked; the answer carries `tag`."""
        ...

    def ask_now(self, now_ms: int, wall_ms: int) -> None:
        """Send queued requests at once, for a handler that returns what is known of the answer."""
        ...

    def controller_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """Return its versions by API key, None if it is on this node or they are unknown."""
        ...
