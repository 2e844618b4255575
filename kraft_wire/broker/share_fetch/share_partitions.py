"""The share partitions of the topic partitions that this broker leads, and who uses them (KIP-932).

A share partition is loaded at its first use. It is dropped, and loaded again at its next use, when
the broker stops to lead the partition, when the share coordinator fences it, and when the last
session of its group on this broker has ended.

Not here: one share partition (`share_partition`), one fetch (`share_fetch_run`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from kraft_wire.broker.context import ReplyTo, RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.metadata.metadata_cache import no_replica_error
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import LogStore
from kraft_wire.broker.purgatory import FetchPurgatory
from kraft_wire.broker.rights import Rights
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_fetch.acknowledge import Acknowledgement, acknowledge, release
from kraft_wire.broker.share_fetch.locks import Locks
from kraft_wire.broker.share_fetch.session import SessionPartition
from kraft_wire.broker.share_fetch.sessions import ShareSessions
from kraft_wire.broker.share_fetch.share_partition import (
    Done,
    Life,
    Outcome,
    ShareEnvironment,
    SharePartition,
)
from kraft_wire.broker.share_fetch.share_settings import ShareSettings
from kraft_wire.broker.share_persister import SharePartitionKey, SharePersister
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Offset, RandomSource, StorageError, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.fetching.fetch_quota import FetchQuota

__all__ = [
    "NOT_HOSTED",
    "ShareBroker",
    "SharePartitions",
    "readable_topics",
    "share_partitions_of",
]

_MAX_SESSIONS: Final = "group.share.max.share.sessions"
_FENCING_ERRORS: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""After these a share partition is of no use any more; the next fetch loads it again."""
NOT_HOSTED: Final = Outcome(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message,
)


class ShareBroker(Protocol):
    """The parts of a broker that its share partitions use."""

    settings: BrokerSettings
    image: MetadataImage
    logs: LogStore
    random_source: RandomSource
    fetch_purgatory: FetchPurgatory
    fetch_quota: "FetchQuota | None"
    rights: Rights | None
    share_partitions: "SharePartitions | None"
    bytes_out: int
    is_stopping: bool

    @property
    def followers(self) -> list[Any]:
        """The parts that follow the metadata and the time."""
        ...

    @property
    def partitions(self) -> Mapping[tuple[str, int], Partition]:
        """Those that have a log here."""
        ...

    @property
    def share_persister(self) -> SharePersister:
        """The client of the share coordinators."""
        ...

    def topic_name(self, topic_id: Uuid) -> str | None:
        """Return the topic that has an id now."""
        ...

    def complete(self, reply_to: ReplyTo, response: Message) -> None:
        """Answer a request that was parked."""
        ...


class SharePartitions:
    """All share partitions and share sessions of one broker."""

    def __init__(self, broker: ShareBroker, persister: SharePersister) -> None:
        self.broker = broker
        self.sessions = ShareSessions(lambda: broker.settings.source.integer(_MAX_SESSIONS))
        self.settings = ShareSettings(lambda: broker.image, lambda: broker.settings)
        self._locks = Locks()
        self._found: dict[SharePartitionKey, SharePartition] = {}
        self._keys: dict[tuple[Uuid, int], dict[SharePartitionKey, None]] = {}
        """The share partitions of each topic partition."""
        self.acknowledged: Counter[int] = Counter()
        """`RecordAcknowledgementsPerSec`: offsets by the type of their acknowledgement."""
        self._left: list[int] = []
        """Closed connections whose sessions are released at the next call that tells the time."""
        self._env = ShareEnvironment(
            persister, self._locks, self.settings.of, self._wake, self._first_offset
        )

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[SharePartition]:
        return iter(self._found.values())

    # -- share partitions --------------------------------------------------------------------------

    def get(self, key: SharePartitionKey) -> SharePartition | None:
        """Return a share partition that is in memory."""
        return self._found.get(key)

    def leader_error(self, topic: str, topic_id: Uuid, number: int) -> ErrorCode:
        """Return why the broker cannot serve a partition, NONE if it leads it."""
        partition = self.broker.partitions.get((topic, number))
        if partition is None:
            return no_replica_error(self.broker.image, topic, number)
        if partition.topic_id != topic_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if partition.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE if partition.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def use(
        self, key: SharePartitionKey, partition: Partition, at: ClockReading, failed: Done
    ) -> SharePartition:
        """Return a share partition, and begin to load it where that is due.

        `failed` is called if that load fails. Fetches that wait are run when it ends.
        """
        found = self._found.get(key)
        if found is None:
            found = SharePartition(key, partition.leader_epoch, self._env)
            self._found[key] = found
            self._keys.setdefault((key.topic_id, key.partition), {})[key] = None
        if found.life is Life.EMPTY:
            loading = found

            def loaded(outcome: Outcome, at: ClockReading) -> None:
                if outcome.error != ErrorCode.NONE:
                    self._drop(loading)
                    failed(outcome, at)
                self._wake(loading)

            found.load(at, loaded)
        return found

    def drop(self, key: SharePartitionKey) -> None:
        """Take a share partition out of memory; its state is with the share coordinator."""
        found = self._found.get(key)
        if found is not None:
            self._drop(found)

    def _drop(self, dropped: SharePartition) -> None:
        dropped.fence()
        key = dropped.key
        if self._found.get(key) is dropped:
            del self._found[key]
            keys = self._keys[key.topic_id, key.partition]
            del keys[key]
            if not keys:
                del self._keys[key.topic_id, key.partition]
        self._wake(dropped)

    def _drop_group(self, group_id: str) -> None:
        for each in [each for each in self._found.values() if each.key.group_id == group_id]:
            self._drop(each)

    def _wake(self, changed: SharePartition) -> None:
        self.broker.fetch_purgatory.wake_readers(changed)

    def _first_offset(self, share: SharePartition, at: ClockReading) -> Offset | ErrorCode:
        """Return where a group without a start offset begins, by its `share.auto.offset.reset`.

        Errors: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_NOT_AVAILABLE, KAFKA_STORAGE_ERROR.
        """
        topic = self.broker.topic_name(share.key.topic_id)
        partition = self.broker.partitions.get((topic or "", share.key.partition))
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        settings = share.settings
        if settings.auto_offset_reset == "earliest":
            return partition.log_start_offset
        duration_ms = settings.reset_duration_ms
        if duration_ms is None:
            return _latest(partition)
        timestamp, bound = max(0, at.wall_ms - duration_ms), partition.high_watermark
        try:
            found = self.broker.logs.offset_for_timestamp(
                partition.log, timestamp, upper_bound=bound
            )
        except StorageError as error:
            partition.failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.OFFSET_NOT_AVAILABLE if found is None else found.offset

    # -- what members do ---------------------------------------------------------------------------

    def acknowledge(
        self,
        key: SharePartitionKey,
        member_id: str,
        batches: Sequence[Acknowledgement],
        at: ClockReading,
        then: Done,
    ) -> None:
        """Change the states of a member's records; UNKNOWN_TOPIC_OR_PARTITION if none is here."""
        found = self._found.get(key)
        if found is None:
            then(NOT_HOSTED, at)
            return

        def done(outcome: Outcome, at: ClockReading) -> None:
            if outcome.error == ErrorCode.NONE:
                for each in batches:
                    self.acknowledged.update(each.counts())
            then(outcome, at)

        acknowledge(found, member_id, batches, at, self._fencing(found, done))

    def close_session(self, group_id: str, member_id: str, at: ClockReading) -> None:
        """End a member's session and release its records."""
        closed = self.sessions.close(group_id, member_id)
        if closed is not None:
            self._release(group_id, member_id, closed, at)

    def connection_closed(self, connection_id: int) -> None:
        """Note the end of a connection; its sessions end with the next call that has the time."""
        self._left.append(connection_id)

    def settle_closed(self, at: ClockReading) -> None:
        """End the sessions of closed connections, and release their records."""
        while self._left:
            closed = self.sessions.connection_closed(self._left.pop(0))
            for session in closed.sessions:
                group_id, member_id = session.key
                self._release(group_id, member_id, list(session.partitions.values()), at)
            for group_id in closed.empty_groups:
                self._drop_group(group_id)

    def _release(
        self, group_id: str, member_id: str, used: Sequence[SessionPartition], at: ClockReading
    ) -> None:
        for each in used:
            found = self._found.get(SharePartitionKey(group_id, each.topic_id, each.partition))
            if found is not None:
                release(found, member_id, at, self._fencing(found, lambda outcome, at: None))

    def _fencing(self, found: SharePartition, then: Done) -> Done:
        """Return `then`, before which a share partition is dropped if a write says so."""

        def done(outcome: Outcome, at: ClockReading) -> None:
            if outcome.error in _FENCING_ERRORS:
                self._drop(found)
            then(outcome, at)

        return done

    # -- the broker --------------------------------------------------------------------------------

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Drop the share partitions that are led elsewhere now, or all if they are switched off."""
        if not serves_share_groups(delta.after):
            self.sessions.clear()
            for each in list(self._found.values()):
                self._drop(each)
            return
        for topic_id in delta.deleted:
            self._drop_topic(
                topic_id, delta.before.topics_by_name[delta.deleted[topic_id]].partitions
            )
        for name, numbers in delta.topics.items():
            topic = delta.after.topics_by_name[name]
            self._drop_topic(
                topic.topic_id,
                [
                    number
                    for number in numbers
                    if self.leader_error(name, topic.topic_id, number) != ErrorCode.NONE
                ],
            )

    def _drop_topic(self, topic_id: Uuid, numbers: "Sequence[int] | Mapping[int, object]") -> None:
        for number in numbers:
            for key in list(self._keys.get((topic_id, number), ())):
                self._drop(self._found[key])

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """End the locks whose time has passed."""
        at = ClockReading(now_ms, wall_ms)
        self.settle_closed(at)
        self._locks.end_due(at)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        return 0 if self._left else self._locks.deadline_ms()

    def stop(self) -> None:
        """Leave everything: sessions end with the broker, states are with the share coordinator."""


def _latest(partition: Partition) -> Offset | ErrorCode:
    """Return the high watermark; OFFSET_NOT_AVAILABLE while it may have been higher (KIP-207).

    A former leader may have shown more, and a group that began at a lower one would get records
    from before its beginning.
    """
    leadership = partition.leadership
    if leadership is not None and partition.high_watermark < leadership.epoch_start_offset:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return partition.high_watermark


def share_partitions_of(broker: ShareBroker) -> SharePartitions:
    """Return the share partitions of a broker, put in with the first request about one."""
    found = broker.share_partitions
    if found is None:
        found = broker.share_partitions = SharePartitions(broker, broker.share_persister)
        broker.followers.append(found)
    return found


def readable_topics(
    shares: SharePartitions, context: RequestContext, api_key: int
) -> Callable[[str], bool]:
    """Return a function: whether a request's principal may read a topic."""
    rights = shares.broker.rights
    return (lambda _: True) if rights is None else rights.share_rights(context, api_key)
