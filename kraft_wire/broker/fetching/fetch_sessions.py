"""Fetch sessions (KIP-227): the cache of one broker, and its handling of requests.

Read this file, then `fetch_contexts.py` (what an answer contains), `fetch_session.py` (what is
remembered), `fetch_session_shard.py` (which sessions are evicted). The pair (session id, session
epoch) of a request decides:

    id 0, epoch -1      full fetch without a session (also every request below version 7)
    id 0, epoch 0       full fetch that creates a session if possible
    id n, epoch 0       the same, after closing session n
    id n, epoch -1      full fetch without a session, after closing session n
    id n, epoch >= 1    incremental fetch in session n

Sessions belong to clients and followers of data partitions; fetches of the metadata log by
replicas (KIP-595) never have one.
"""

from typing import Final

from kraft_wire.broker.fetching.fetch_contexts import (
    FetchContext,
    FullFetchContext,
    IncrementalFetchContext,
    SessionlessFetchContext,
)
from kraft_wire.broker.fetching.fetch_session import (
    FIRST_TOPIC_ID_VERSION,
    FetchSession,
    TopicNames,
    WantedPartition,
    can_be_remembered,
    forgotten_keys,
    listed_partitions,
    next_epoch,
)
from kraft_wire.broker.fetching.fetch_session_shard import (
    NO_SESSION,
    FetchSessionShard,
    PartitionBudget,
)
from kraft_wire.model import ANONYMOUS, Principal, RandomSource
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest

__all__ = [
    "DEFAULT_PARTITIONS",
    "DEFAULT_SLOTS",
    "EVICTION_MS",
    "SHARDS",
    "FetchContext",
    "FetchSessionCache",
    "WantedPartition",
]

DEFAULT_SLOTS: Final = 1_000
"""`max.incremental.fetch.session.cache.slots` unless configured."""

DEFAULT_PARTITIONS: Final = 100_000
"""`max.incremental.fetch.session.cache.partitions`, a key of ours: about 35 MB when all are taken.
Kafka bounds sessions only, and one request can name more partitions than the memory holds.
"""

EVICTION_MS: Final = 120_000
"""KIP-227's `min.incremental.fetch.session.eviction.ms`, a constant in Kafka too."""

SHARDS: Final = 8
"""Kafka divides slots and ids so that threads do not meet; clients can see it, so it is kept."""

IDS_PER_SHARD: Final = (2**31 - 1) // SHARDS

FULL_EPOCHS: Final = (0, -1)
FINAL_EPOCH: Final = -1


class FetchSessionCache:
    """All sessions of one broker, divided over shards that evict independently."""

    def __init__(
        self,
        slots: int,
        random_source: RandomSource,
        *,
        partitions: int = DEFAULT_PARTITIONS,
        eviction_ms: int = EVICTION_MS,
        shards: int = SHARDS,
    ) -> None:
        assert slots >= 0, slots
        # Non-obvious 12: slots bound no memory: one session may name any number.
        self._budget = PartitionBudget(partitions)
        self._shards = [
            FetchSessionShard(
                # Non-obvious 6: clients see this rounding: 100 slots hold 96 sessions.
                slots // shards,
                max(1, number * IDS_PER_SHARD),
                (number + 1) * IDS_PER_SHARD,
                eviction_ms,
                random_source,
                self._budget,
            )
            for number in range(shards)
        ]
        self._next_shard = 0

    @property
    def sessions_count(self) -> int:
        """`NumIncrementalFetchSessions`."""
        return sum(len(shard) for shard in self._shards)

    @property
    def partitions_count(self) -> int:
        """`NumIncrementalFetchPartitionsCached`."""
        return self._budget.used

    @property
    def evictions_count(self) -> int:
        """The count behind `IncrementalFetchSessionEvictionsPerSec`."""
        return sum(shard.evictions_count for shard in self._shards)

    def begin(
        self,
        request: FetchRequest,
        version: int,
        now_ms: int,
        *,
        privileged: bool,
        topic_names: TopicNames,
        owner: Principal = ANONYMOUS,
    ) -> FetchContext | ErrorCode:
        """Accept a request, or return the error of the whole of it.

        `privileged` marks a follower; `owner` sends the request, and finds only its own sessions.
        Errors, first match wins: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
        FETCH_SESSION_TOPIC_ID_ERROR; their answers have session id 0 and no partitions, and change
        nothing.
        """
        if request.session_epoch not in FULL_EPOCHS:
            return self._begin_incremental(request, version, now_ms, topic_names, owner)
        if request.session_id != NO_SESSION:
            shard = self._shard_of(request.session_id)
            session = shard.get(request.session_id)
            if session is not None and session.owner == owner:
                shard.remove(request.session_id)
        wanted = listed_partitions(request, version, topic_names)
        if request.session_epoch == FINAL_EPOCH or not can_be_remembered(request):
            return SessionlessFetchContext(wanted)
        return FullFetchContext(
            wanted,
            self._take_next_shard,
            privileged=privileged,
            uses_topic_ids=version >= FIRST_TOPIC_ID_VERSION,
            owner=owner,
        )

    def _begin_incremental(
        self,
        request: FetchRequest,
        version: int,
        now_ms: int,
        topic_names: TopicNames,
        owner: Principal,
    ) -> FetchContext | ErrorCode:
        shard = self._shard_of(request.session_id)
        session = shard.get(request.session_id)
        if session is None or session.owner != owner:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != (version >= FIRST_TOPIC_ID_VERSION):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return self._accept(shard, session, request, version, now_ms, topic_names)

    def _accept(
        self,
        shard: FetchSessionShard,
        session: FetchSession,
        request: FetchRequest,
        version: int,
        now_ms: int,
        topic_names: TopicNames,
    ) -> FetchContext:
        """Apply an incremental request; a session that it empties is closed.

        The epoch moves on here, not with the answer: a copy of the request that arrives while
        this one is parked finds it too old.
        """
        listed = listed_partitions(request, version, topic_names)
        session.update(listed, forgotten_keys(request, version))
        if not session.partitions:
            shard.remove(session.session_id)
            return SessionlessFetchContext(listed)
        if can_be_remembered(request):
            shard.touch(session, now_ms)
        else:
            shard.remove(session.session_id)
        # Non-obvious 5: at acceptance, so that a retry beside a parked copy is refused.
        session.epoch = next_epoch(session.epoch)
        return IncrementalFetchContext(session, request.session_epoch, topic_names)

    def _shard_of(self, session_id: int) -> FetchSessionShard:
        """Return the shard of a session id; an id out of range belongs to no session."""
        number = max(0, session_id) // IDS_PER_SHARD
        return self._shards[min(number, len(self._shards) - 1)]

    def _take_next_shard(self) -> FetchSessionShard:
        taken = self._shards[self._next_shard]
        self._next_shard = (self._next_shard + 1) % len(self._shards)
        return taken
