"""One incremental fetch session (KIP-227): what a client asked for, and its last answer.

Read `fetch_sessions.py` first. A session keeps one `WantedPartition` per partition for as long as
the client keeps the partition; a request changes only those that it lists, an answer only those
that it contains. Nothing here is rebuilt per request: that is what makes an incremental fetch of a
few partitions among thousands cheap.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from kraft_wire.model import ANONYMOUS, ZERO_UUID, FileSlice, Principal, Uuid
from kraft_wire.settings.topic_names import TOPIC_NAME_LENGTH_MAX
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, PartitionData

if TYPE_CHECKING:
    from kraft_wire.broker.replication.follower_state import FollowerState

__all__ = [
    "FIRST_TOPIC_ID_VERSION",
    "FetchSession",
    "FetchSource",
    "PartitionKey",
    "TopicNames",
    "WantedPartition",
    "can_be_remembered",
    "forgotten_keys",
    "listed_partitions",
    "next_epoch",
    "records_size_bytes",
]

FIRST_TOPIC_ID_VERSION: Final = 13
"""Fetch names topics by id from this version on (KIP-516)."""

INVALID_OFFSET: Final = -1
LARGEST_EPOCH: Final = 2**31 - 1
NONE: Final = int(ErrorCode.NONE)

PartitionKey: TypeAlias = tuple[str | Uuid, int]
"""Topic name below version 13, topic id from there on; a session never mixes them."""

TopicNames: TypeAlias = Callable[[Uuid], str | None]
"""The topic that has an id now, None for an unknown id."""


def next_epoch(epoch: int) -> int:
    """Return the epoch that the request after one with `epoch` must have; it wraps to 1."""
    assert 0 <= epoch <= LARGEST_EPOCH, epoch
    return 1 if epoch == LARGEST_EPOCH else epoch + 1


def records_size_bytes(data: PartitionData) -> int:
    """Return how many bytes of records an answer for one partition carries."""
    records = data.records
    if records is None:
        return 0
    return records.size_bytes if isinstance(records, FileSlice) else len(records)


class SourceLog(Protocol):
    """The bounds of the readable part of a log."""

    @property
    def high_watermark(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...


class FetchSource(Protocol):
    """The part of a partition that decides whether it has new records to read."""

    @property
    def log(self) -> SourceLog: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def is_leader(self) -> bool: ...
    @property
    def offline(self) -> bool: ...


class WantedPartition:
    """One partition of a fetch: the client's parameters, and in a session the last answer's.

    `topic` is None for an unknown topic id.
    """

    __slots__ = (
        "follower",
        "is_drained",
        "key",
        "leader_epoch_read",
        "log",
        "params",
        "sent_high_watermark",
        "sent_log_start_offset",
        "source",
        "topic",
        "topic_id",
    )

    def __init__(
        self, key: PartitionKey, topic: str | None, topic_id: Uuid, params: FetchPartition
    ) -> None:
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.params = params
        self.sent_high_watermark = INVALID_OFFSET
        self.sent_log_start_offset = INVALID_OFFSET
        self.follower: FollowerState | None = None
        """For a follower: the leader's state of it since the partition was read."""
        self.source: FetchSource | None = None
        self.log: SourceLog | None = None
        """The source's log, stored directly because a fetch checks thousands of partitions."""
        self.leader_epoch_read = -1
        self.is_drained = False
        """Whether the client had all records up to the high watermark of its last answer."""

    @property
    def partition(self) -> int:
        """The partition's number within its topic."""
        return self.params.partition

    def note_source(self, source: FetchSource) -> None:
        """Store the source of the partition."""
        self.source = source
        self.log = source.log
        self.leader_epoch_read = source.leader_epoch

    def is_settled(self) -> bool:
        """Return whether reading again would give exactly the client's last answer."""
        if not self.is_drained:
            return False
        source, log = self.source, self.log
        return (
            source is not None
            and log is not None
            and log.high_watermark == self.sent_high_watermark
            and log.log_start_offset == self.sent_log_start_offset
            and source.leader_epoch == self.leader_epoch_read
            and source.is_leader
            and not source.offline
        )

    def update(self, params: FetchPartition) -> None:
        """Take over what a request lists for a partition that the session already has."""
        self.params = params
        self.is_drained = False

    def is_news(self, data: PartitionData) -> bool:
        """Return whether an incremental answer must contain the partition.

        A changed last stable offset alone is not a reason.
        """
        return (
            data.high_watermark != self.sent_high_watermark
            or data.error_code != NONE
            or data.log_start_offset != self.sent_log_start_offset
            or records_size_bytes(data) > 0
            or data.preferred_read_replica >= 0
            or data.diverging_epoch is not None
        )

    def sent(self, data: PartitionData) -> None:
        """Store the values of the client's newest answer.

        After an error the high watermark is dropped, so that the recovered partition is listed
        again even when nothing else about it has changed.
        """
        failed = data.error_code != NONE
        # Non-obvious 4: else a partition that recovers unchanged is never listed.
        self.sent_high_watermark = INVALID_OFFSET if failed else data.high_watermark
        self.sent_log_start_offset = data.log_start_offset
        # Non-obvious 3: no records may only mean that the byte limit was spent.
        self.is_drained = (
            not failed
            and self.params.fetch_offset == data.high_watermark
            and data.preferred_read_replica < 0
            and data.diverging_epoch is None
        )


def can_be_remembered(request: FetchRequest) -> bool:
    """Return whether a session may keep the partitions of a request.

    A name that no topic can have would make its client's session as large as its request.
    """
    return all(len(topic.topic) <= TOPIC_NAME_LENGTH_MAX for topic in request.topics)


def listed_partitions(
    request: FetchRequest, version: int, topic_names: TopicNames
) -> dict[PartitionKey, WantedPartition]:
    """Return the partitions that a request lists, in its order; of a duplicate the last counts."""
    wanted: dict[PartitionKey, WantedPartition] = {}
    by_id = version >= FIRST_TOPIC_ID_VERSION
    for topic in request.topics:
        topic_id = topic.topic_id if by_id else ZERO_UUID
        name = topic_names(topic_id) if by_id else topic.topic
        identity = topic_id if by_id else topic.topic
        for params in topic.partitions:
            params.unknown_tagged_fields = None  # unused, but a session would keep them
            key = (identity, params.partition)
            wanted[key] = WantedPartition(key, name, topic_id, params)
    return wanted


def forgotten_keys(request: FetchRequest, version: int) -> Iterable[PartitionKey]:
    """Return the partitions that a request removes from its session."""
    by_id = version >= FIRST_TOPIC_ID_VERSION
    for topic in request.forgotten_topics_data:
        identity = topic.topic_id if by_id else topic.topic
        for partition in topic.partitions:
            yield identity, partition


class FetchSession:
    """The partitions of one client's session, in the order in which they are read next."""

    __slots__ = (
        "cached_size",
        "created_ms",
        "epoch",
        "is_old",
        "last_used_ms",
        "owner",
        "partitions",
        "privileged",
        "session_id",
        "unresolved",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, WantedPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
        owner: Principal = ANONYMOUS,
    ) -> None:
        assert session_id > 0, session_id
        self.session_id = session_id
        self.partitions = partitions
        self.owner = owner
        """The only principal that may use it: others could read its topics' names otherwise."""
        self.privileged = privileged
        """Whether it belongs to a follower, which may evict any consumer's session."""
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.is_old = False
        """Whether it was older than the eviction time when it was last used."""
        self.epoch = next_epoch(0)
        """The epoch that the next request must have."""
        self.cached_size = len(partitions)
        """Number of partitions when the session was last used: what eviction compares."""
        self.unresolved = [each for each in partitions.values() if each.topic is None]

    def update(
        self, listed: dict[PartitionKey, WantedPartition], forgotten: Iterable[PartitionKey]
    ) -> None:
        """Apply one incremental request: additions and changes first, then removals."""
        for key, asked in listed.items():
            kept = self.partitions.get(key)
            if kept is not None:
                kept.update(asked.params)
                continue
            self.partitions[key] = asked
            if asked.topic is None:
                self.unresolved.append(asked)
        for key in forgotten:
            self.partitions.pop(key, None)
        if self.unresolved:
            self.unresolved = [each for each in self.unresolved if each.key in self.partitions]

    def resolve(self, topic_names: TopicNames) -> None:
        """Name the topics whose ids were unknown so far; a name, once found, is kept."""
        if not self.unresolved:
            return
        for wanted in self.unresolved:
            wanted.topic = topic_names(wanted.topic_id)
        self.unresolved = [each for each in self.unresolved if each.topic is None]

    def move_to_end(self, wanted: WantedPartition) -> None:
        """Give every other partition precedence over one that records were returned for.

        A partition that a later request has dropped meanwhile is not brought back.
        """
        if self.partitions.get(wanted.key) is wanted:
            del self.partitions[wanted.key]
            self.partitions[wanted.key] = wanted
