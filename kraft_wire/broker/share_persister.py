"""The outbound port to the share coordinators: the durable state of share partitions (KIP-932).

The group coordinator initialises and deletes the state of share partitions, and the leaders of
topic partitions read and write it. An implementation of `SharePersister` finds the coordinator of
each share partition (FindCoordinator with key type 2), repeats calls that may succeed later, and
calls back once for each call.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.model import LeaderEpoch, Offset, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "DeliveryStateBatch",
    "InitialShareState",
    "PersisterCallback",
    "PersisterResult",
    "SharePartitionKey",
    "SharePartitionState",
    "SharePersister",
    "ShareStateWrite",
]


class SharePartitionKey(NamedTuple):
    """A topic partition as one group shares it."""

    group_id: str
    topic_id: Uuid
    partition: int


class DeliveryStateBatch(NamedTuple):
    """Neighbouring records with one delivery state; both offsets are inclusive."""

    first_offset: Offset
    last_offset: Offset
    delivery_state: int
    """0 available, 2 acknowledged, 4 archived; acquired records are not stored."""
    delivery_count: int


class InitialShareState(NamedTuple):
    """What Initialize sets; a state epoch below the known one is refused."""

    state_epoch: int
    start_offset: Offset
    """-1 for not known yet."""


class ShareStateWrite(NamedTuple):
    """What Write adds to the state of a share partition."""

    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    """-1 for unchanged."""
    delivery_complete_count: int
    """Records at or above the start offset whose state is final."""
    batches: Sequence[DeliveryStateBatch]


class SharePartitionState(NamedTuple):
    """The stored state, as Read and ReadSummary return it."""

    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    """-1 for not known yet."""
    delivery_complete_count: int
    """-1 if the writer did not say; Read returns none, and it is -1 there."""
    batches: Sequence[DeliveryStateBatch] = ()
    """Ascending, without overlaps; always empty in a summary."""


class PersisterResult(NamedTuple):
    """What became of one share partition in a call."""

    error: ErrorCode
    error_message: str | None = None
    state: SharePartitionState | None = None
    """Of Read and ReadSummary without an error."""


PersisterCallback: TypeAlias = Callable[
    [Mapping[SharePartitionKey, PersisterResult], ClockReading], None
]
"""Takes a result for every share partition of the call; it may come before the call returns."""


class SharePersister(Protocol):
    """The state of share partitions, wherever their coordinators are."""

    def initialize(
        self,
        partitions: Mapping[SharePartitionKey, InitialShareState],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        """Begin the state of share partitions, or begin it again."""
        ...

    def read(
        self,
        partitions: Mapping[SharePartitionKey, LeaderEpoch],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        """Read the state for the leaders of topic partitions, whose epochs become known."""
        ...

    def write(
        self,
        partitions: Mapping[SharePartitionKey, ShareStateWrite],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        """Add to the state of share partitions."""
        ...

    def delete(
        self, partitions: Sequence[SharePartitionKey], at: ClockReading, then: PersisterCallback
    ) -> None:
        """Remove the state of share partitions; those without state are done already."""
        ...

    def read_summary(
        self,
        partitions: Mapping[SharePartitionKey, LeaderEpoch],
        at: ClockReading,
        then: PersisterCallback,
    ) -> None:
        """Read start offsets and counts, without batches; one without state gives -1."""
        ...
