"""The three kinds of accepted fetch (KIP-227): sessionless, full with a session, incremental.

A handler reads the partitions of a context's `to_read()` and passes the results to `finish()`,
which decides what the answer contains. A fetch that parks watches `partitions()`, keeps its context
and is read again; only `finish()` changes what a session remembers.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol, TypeAlias

from kraft_wire.broker.fetching.fetch_session import (
    FetchSession,
    PartitionKey,
    TopicNames,
    WantedPartition,
    next_epoch,
    records_size_bytes,
)
from kraft_wire.broker.fetching.fetch_session_shard import NO_SESSION, FetchSessionShard
from kraft_wire.model import ANONYMOUS, Principal
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kraft_wire.wire.runtime import new

__all__ = [
    "FetchContext",
    "FullFetchContext",
    "IncrementalFetchContext",
    "ReadResult",
    "SessionlessFetchContext",
]

_NO_ERROR: Final = ErrorCode.NONE

ReadResult: TypeAlias = tuple[WantedPartition, PartitionData]
Wanted: TypeAlias = Collection[WantedPartition]
IsSettled: TypeAlias = Callable[[WantedPartition], bool]


class FetchContext(Protocol):
    """The partitions of a fetch, and how its answer is built from the results."""

    def partitions(self) -> Wanted:
        """Return every partition of the fetch."""
        ...

    def to_read(self, is_settled: IsSettled = WantedPartition.is_settled) -> Wanted:
        """Return the partitions to read now, in the order in which the byte limits are spent.

        An incremental fetch skips the partitions of which the client is up to date.
        """
        ...

    def finish(self, results: Sequence[ReadResult], now_ms: int) -> FetchResponse:
        """Make the answer out of one result for each partition that was to be read."""
        ...

    def unsent(self, results: Sequence[ReadResult]) -> FetchResponse:
        """Return an answer of the same size as `finish`; the session stays unchanged."""
        ...

    def throttled(self) -> FetchResponse:
        """Return the empty answer of a throttled client; the session stays unchanged."""
        ...


class SessionlessFetchContext:
    """A full fetch that neither uses nor creates a session; every fetch below version 7."""

    __slots__ = ("_wanted",)

    def __init__(self, wanted: dict[PartitionKey, WantedPartition]) -> None:
        self._wanted = wanted

    def partitions(self) -> Wanted:
        return self._wanted.values()

    def to_read(self, is_settled: IsSettled = WantedPartition.is_settled) -> Wanted:
        return self._wanted.values()

    def finish(self, results: Sequence[ReadResult], now_ms: int) -> FetchResponse:
        assert len(results) == len(self._wanted), (len(results), len(self._wanted))
        return _response(NO_SESSION, results)

    def unsent(self, results: Sequence[ReadResult]) -> FetchResponse:
        return _response(NO_SESSION, results)

    def throttled(self) -> FetchResponse:
        return FetchResponse(session_id=NO_SESSION)


class FullFetchContext:
    """A full fetch whose answer creates a session if the cache has room for one."""

    __slots__ = ("_owner", "_privileged", "_take_shard", "_uses_topic_ids", "_wanted")

    def __init__(
        self,
        wanted: dict[PartitionKey, WantedPartition],
        take_shard: Callable[[], FetchSessionShard],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        owner: Principal = ANONYMOUS,
    ) -> None:
        self._owner = owner
        self._wanted = wanted
        self._take_shard = take_shard
        self._privileged = privileged
        self._uses_topic_ids = uses_topic_ids

    def partitions(self) -> Wanted:
        return self._wanted.values()

    def to_read(self, is_settled: IsSettled = WantedPartition.is_settled) -> Wanted:
        return self._wanted.values()

    def finish(self, results: Sequence[ReadResult], now_ms: int) -> FetchResponse:
        assert len(results) == len(self._wanted), (len(results), len(self._wanted))

        def remembered() -> dict[PartitionKey, WantedPartition]:
            for wanted, data in results:
                wanted.sent(data)
            return {wanted.key: wanted for wanted, _ in results}

        session_id = self._take_shard().maybe_create(
            remembered,
            len(results),
            privileged=self._privileged,
            uses_topic_ids=self._uses_topic_ids,
            now_ms=now_ms,
            owner=self._owner,
        )
        return _response(session_id, results)

    def unsent(self, results: Sequence[ReadResult]) -> FetchResponse:
        return _response(NO_SESSION, results)

    def throttled(self) -> FetchResponse:
        return FetchResponse(session_id=NO_SESSION)


class IncrementalFetchContext:
    """An incremental fetch in a session, whose epoch the request has already raised."""

    __slots__ = ("_epoch_after", "_session", "_topic_names")

    def __init__(self, session: FetchSession, request_epoch: int, topic_names: TopicNames) -> None:
        self._session = session
        self._epoch_after = next_epoch(request_epoch)
        self._topic_names = topic_names

    def partitions(self) -> Wanted:
        return self._session.partitions.values()

    def to_read(self, is_settled: IsSettled = WantedPartition.is_settled) -> Wanted:
        self._session.resolve(self._topic_names)
        return [each for each in self._session.partitions.values() if not is_settled(each)]

    def finish(self, results: Sequence[ReadResult], now_ms: int) -> FetchResponse:
        if self._is_overtaken():
            return self._overtaken()
        news = []
        for result in results:
            wanted, data = result
            if wanted.is_news(data):
                news.append(result)
                if records_size_bytes(data) > 0:
                    self._session.move_to_end(wanted)
            wanted.sent(data)
        return _response(self._session.session_id, news)

    def unsent(self, results: Sequence[ReadResult]) -> FetchResponse:
        is_overtaken = self._is_overtaken()
        news = [each for each in results if not is_overtaken and each[0].is_news(each[1])]
        return _response(NO_SESSION, news)

    def throttled(self) -> FetchResponse:
        if self._is_overtaken():
            return self._overtaken()
        return FetchResponse(session_id=self._session.session_id)

    def _is_overtaken(self) -> bool:
        """Whether another copy of the request was accepted while this one was being answered."""
        return self._session.epoch != self._epoch_after

    def _overtaken(self) -> FetchResponse:
        return FetchResponse(
            error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self._session.session_id
        )


def _response(session_id: int, results: Sequence[ReadResult]) -> FetchResponse:
    """Make an answer without its constructor, which takes three times as long by keywords."""
    response = new(FetchResponse)
    response.throttle_time_ms, response.error_code = 0, _NO_ERROR
    response.session_id, response.responses = session_id, _by_topic(results)
    response.node_endpoints = []
    response.unknown_tagged_fields = None
    return response


def _by_topic(results: Sequence[ReadResult]) -> list[FetchableTopicResponse]:
    """Group neighbours of one topic; the order of partitions is kept, as the byte limits need."""
    topics: list[FetchableTopicResponse] = []
    current: object = None
    partitions: list[PartitionData] = []
    for wanted, data in results:
        identity = wanted.key[0]
        if identity != current:
            current = identity
            partitions = []
            topic = new(FetchableTopicResponse)
            topic.topic, topic.topic_id = wanted.topic or "", wanted.topic_id
            topic.partitions = partitions
            topic.unknown_tagged_fields = None
            topics.append(topic)
        partitions.append(data)
    return topics
