"""Committed offsets of one coordinator partition, and those of transactions that are open.

An offset of an open transaction is pending: the transaction's marker makes it the committed one or
drops it, and until then `require_stable` fetches find the offset unstable (KIP-447).
"""

from collections.abc import Iterator
from typing import NamedTuple

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.object_sizes import OFFSET_BYTES
from kraft_wire.frozen import frozen
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue

__all__ = ["CommittedOffset", "OffsetKey", "OffsetTable"]


class OffsetKey(NamedTuple):
    """The key of a committed offset."""

    group_id: str
    topic: str
    partition: int


@frozen
class CommittedOffset:
    """One committed offset."""

    offset: int
    leader_epoch: int
    """-1 if the client did not set it."""
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    """Set by clients older than OffsetCommit v5 that chose a retention time."""
    topic_id: Uuid = ZERO_UUID
    """The topic's id at the time of the commit; zero if it was unknown."""
    record_offset: int = -1
    """Position in the log, which decides between a plain commit and a transaction's older one."""

    @staticmethod
    def from_record(value: OffsetCommitValue, record_offset: int) -> "CommittedOffset":
        """Read one back from the log."""
        expires = None if value.expire_timestamp == -1 else value.expire_timestamp
        return CommittedOffset(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=expires,
            topic_id=value.topic_id,
            record_offset=record_offset,
        )

    @property
    def size_bytes(self) -> int:
        """Memory that the offset takes, as `object_sizes` counts it."""
        return OFFSET_BYTES + len(self.metadata)

    def belongs_to(self, topic_id: Uuid) -> bool:
        """Whether the commit was for this topic, and not for one of the same name before it."""
        return ZERO_UUID in (self.topic_id, topic_id) or self.topic_id == topic_id


class OffsetTable:
    """Group, topic and partition to committed offset."""

    __slots__ = ("_committed", "_count", "_memory", "_open")

    def __init__(self, memory: MemoryUse) -> None:
        self._memory = memory
        self._committed: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._count = 0
        self._open: dict[int, dict[OffsetKey, CommittedOffset]] = {}
        """Producer id to the commits of its open transaction."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[OffsetKey, CommittedOffset, int | None]]:
        """Yield all offsets, those of open transactions last and with their producer id."""
        for group_id, topics in self._committed.items():
            for topic, partitions in topics.items():
                for partition, committed in partitions.items():
                    yield OffsetKey(group_id, topic, partition), committed, None
        for producer_id, commits in self._open.items():
            for key, committed in commits.items():
                yield key, committed, producer_id

    def get(self, key: OffsetKey) -> CommittedOffset | None:
        """Return the committed offset."""
        return self._committed.get(key.group_id, {}).get(key.topic, {}).get(key.partition)

    def of_group(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """Return a group's offsets by topic and partition; not to be changed by the caller."""
        return self._committed.get(group_id, {})

    def keys_of(self, group_id: str) -> list[OffsetKey]:
        """Return the keys of the group's committed offsets, including open transactions."""
        keys = {
            OffsetKey(group_id, topic, partition): None
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        }
        keys.update(dict.fromkeys(self._open_keys(group_id)))
        return list(keys)

    def keys_of_topic(self, topic: str, topic_id: Uuid) -> list[OffsetKey]:
        """Return the commits of every group for a deleted topic."""
        found = {
            OffsetKey(group_id, topic, partition): None
            for group_id, topics in self._committed.items()
            for partition, committed in topics.get(topic, {}).items()
            if committed.belongs_to(topic_id)
        }
        for commits in self._open.values():
            found.update(
                (key, None)
                for key, committed in commits.items()
                if key.topic == topic and committed.belongs_to(topic_id)
            )
        return list(found)

    def put(self, key: OffsetKey, committed: CommittedOffset) -> None:
        """Store an offset whose record is in the log."""
        partitions = self._committed.setdefault(key.group_id, {}).setdefault(key.topic, {})
        before = partitions.get(key.partition)
        if before is None:
            self._count += 1
        else:
            self._memory.add(-before.size_bytes)
        partitions[key.partition] = committed
        self._memory.add(committed.size_bytes)

    def remove(self, key: OffsetKey) -> None:
        """Drop an offset whose tombstone is in the log."""
        for commits in self._open.values():
            pending = commits.pop(key, None)
            if pending is not None:
                self._memory.add(-pending.size_bytes)
        topics = self._committed.get(key.group_id, {})
        partitions = topics.get(key.topic, {})
        removed = partitions.pop(key.partition, None)
        if removed is None:
            return
        self._count -= 1
        assert self._count >= 0, key
        self._memory.add(-removed.size_bytes)
        if not partitions:
            del topics[key.topic]
        if not topics:
            del self._committed[key.group_id]

    def release(self) -> None:
        """Release the counted memory of the offsets, which are removed."""
        for topics in self._committed.values():
            for partitions in topics.values():
                self._memory.add(-sum(each.size_bytes for each in partitions.values()))
        for commits in self._open.values():
            self._memory.add(-sum(each.size_bytes for each in commits.values()))

    def has_open_transaction(self, group_id: str) -> bool:
        """Whether a transaction that is still open commits offsets of the group."""
        return next(self._open_keys(group_id), None) is not None

    def is_unstable(self, key: OffsetKey) -> bool:
        """Whether a transaction that is still open commits this offset."""
        return any(key in commits for commits in self._open.values())

    def put_open(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """Note an offset that becomes visible if the producer's transaction commits."""
        commits = self._open.setdefault(producer_id, {})
        before = commits.get(key)
        if before is not None:
            self._memory.add(-before.size_bytes)
        commits[key] = committed
        self._memory.add(committed.size_bytes)

    def take_open(self, producer_id: int) -> dict[OffsetKey, CommittedOffset]:
        """Remove and return the offsets of a transaction that has ended."""
        commits = self._open.pop(producer_id, {})
        self._memory.add(-sum(each.size_bytes for each in commits.values()))
        return commits

    def is_older(self, key: OffsetKey, committed: CommittedOffset) -> bool:
        """Whether the stored offset has a later record: then a marker does not replace it."""
        present = self.get(key)
        return present is not None and committed.record_offset < present.record_offset

    def _open_keys(self, group_id: str) -> Iterator[OffsetKey]:
        for commits in self._open.values():
            for key in commits:
                if key.group_id == group_id:
                    yield key
