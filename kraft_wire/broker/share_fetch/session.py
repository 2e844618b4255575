"""One share session (KIP-932): the partitions that a member fetches here, and what an answer lists.

Read `sessions.py` first. The order of the session is the order in which its partitions were added,
but a partition that gave records goes to the end.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias, TypeVar

from kraft_wire.broker.fetching.fetch_session import TopicNames
from kraft_wire.frozen import frozen, slotted
from kraft_wire.model import FileSlice, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import PartitionData

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "SessionKey",
    "SessionPartition",
    "ShareFetchContext",
    "ShareSession",
    "rotated",
]

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1

PartitionKey: TypeAlias = tuple[Uuid, int]
PartitionResult: TypeAlias = "tuple[SessionPartition, PartitionData]"

_Partition = TypeVar("_Partition")


class SessionKey(NamedTuple):
    """The name of a session on one broker."""

    group_id: str
    member_id: str


@slotted(eq=False)
class SessionPartition:
    """One partition of a session."""

    topic_id: Uuid
    partition: int
    topic: str | None
    """The topic's name when the partition was added, None while no topic has the id."""
    must_be_listed: bool
    """Whether the next answer lists the partition in any case: it is new, or had an error."""

    @property
    def key(self) -> PartitionKey:
        """The partition's name in its session."""
        return self.topic_id, self.partition


@slotted(eq=False)
class ShareSession:
    """A session: its owner, the epoch that the next request must have, and its partitions."""

    key: SessionKey
    connection_id: int
    """The connection that opened the session; others may use it."""
    epoch: int
    partitions: dict[PartitionKey, SessionPartition]

    def update(self, added: Iterable[SessionPartition], forgotten: Iterable[PartitionKey]) -> None:
        """Add the partitions that the session lacks, then remove the forgotten ones."""
        for each in added:
            self.partitions.setdefault(each.key, each)
        for key in forgotten:
            self.partitions.pop(key, None)

    def move_to_end(self, partition: SessionPartition) -> None:
        """Have the others come first next time."""
        if self.partitions.pop(partition.key, None) is not None:
            self.partitions[partition.key] = partition


@frozen
class ShareFetchContext:
    """What one ShareFetch does with its session."""

    epoch: int
    """Of the request."""
    session: ShareSession
    opened_with: Sequence[SessionPartition] = ()
    """The partitions of a request that opened the session."""

    @property
    def is_final(self) -> bool:
        """Whether the request closes the session: it acknowledges and fetches nothing."""
        return self.epoch == FINAL_EPOCH

    def partitions(self, topic_names: TopicNames) -> list[SessionPartition]:
        """Return the partitions to fetch, in the order of the session.

        A partition without a topic gets UNKNOWN_TOPIC_ID. Kafka fails the whole request.
        """
        if self.is_final:
            return []
        found = list(self.opened_with or self.session.partitions.values())
        for each in found:
            if each.topic is None:
                each.topic = topic_names(each.topic_id)
        return found

    def is_outdated(self) -> bool:
        """Whether another request of the session came meanwhile: INVALID_SHARE_SESSION_EPOCH."""
        is_first_or_last = self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        return not is_first_or_last and self.session.epoch != next_epoch(self.epoch)

    def listed(self, results: Iterable[PartitionResult]) -> list[PartitionResult]:
        """Return the results that the answer lists; changes nothing.

        The first answer of a session lists all of them.
        """
        if self.epoch == INITIAL_EPOCH:
            return list(results)
        return [
            (partition, data)
            for partition, data in results
            if partition.must_be_listed or data.error_code or _has_records(data)
        ]

    def answered(self, listed: Iterable[PartitionResult]) -> None:
        """Note that an answer with these results leaves; a throttled one has none of them."""
        if self.epoch == INITIAL_EPOCH:
            return
        for partition, data in listed:
            partition.must_be_listed = data.error_code != ErrorCode.NONE
            if _has_records(data):
                self.session.move_to_end(partition)


def next_epoch(epoch: int) -> int:
    """Return the epoch that the request after one with `epoch` must have; it wraps to 1."""
    assert 0 <= epoch <= _LARGEST_EPOCH, epoch
    return 1 if epoch == _LARGEST_EPOCH else epoch + 1


def rotated(partitions: Sequence[_Partition], epoch: int) -> list[_Partition]:
    """Return the order in which a request fetches partitions, so that each is the first in turn.

    `partitions` are those that exist and may be read, in the order of the session.
    """
    if epoch < 1 or not partitions:
        return list(partitions)
    first = epoch % len(partitions)
    return list(chain(partitions[first:], partitions[:first]))


_LARGEST_EPOCH: Final = 2**31 - 1


def _has_records(data: PartitionData) -> bool:
    records = data.records
    if isinstance(records, FileSlice):
        return records.size_bytes > 0
    return bool(records)
