"""A broker of a few fake partitions behind real fetch sessions, and requests as clients send them.

`FakeBroker.fetch` does what the Fetch handler does with a context, in its simplest form: read in
order while bytes are left, the first record whatever the limit. It never waits.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_wire.broker.fetching.fetch_contexts import FetchContext, ReadResult
from kraft_wire.broker.fetching.fetch_session import WantedPartition
from kraft_wire.broker.fetching.fetch_sessions import FetchSessionCache
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

RECORD_BYTES = 10
NAMES_VERSION = 12
IDS_VERSION = 18

Name = tuple[str, int]


class SeededRandomSource:
    """The port `model.RandomSource` over a seeded generator."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def topic_id(topic: str) -> Uuid:
    """The id that the fake broker's topic of this name has."""
    return Uuid(topic.encode().ljust(16, b"."))


@dataclass
class FakePartition:
    """What a session looks at in a partition, and one record of ten bytes per offset."""

    high_watermark: int = 0
    log_start_offset: int = 0
    last_stable_offset: int = 0
    leader_epoch: int = 0
    is_leader: bool = True
    offline: bool = False
    error: ErrorCode = ErrorCode.NONE
    extra: dict[str, Any] = field(default_factory=dict)
    """Fields of the answer to set as they are."""
    reads: int = 0

    @property
    def log(self) -> "FakePartition":
        """Its own log: what a session reads of one stands here too."""
        return self


class FakeBroker:
    """Partitions by name, and a session cache over them."""

    def __init__(
        self,
        names: Iterable[Name] = (),
        *,
        slots: int = 1_000,
        shards: int = 8,
        seed: int = 0,
        partitions: int = 100_000,
    ) -> None:
        self.partitions = {name: FakePartition() for name in names}
        self.names = {topic_id(topic): topic for topic, _ in self.partitions}
        self.sessions = FetchSessionCache(
            slots, SeededRandomSource(seed), partitions=partitions, shards=shards
        )

    def begin(
        self,
        request: FetchRequest,
        version: int = NAMES_VERSION,
        *,
        now_ms: int = 0,
        follower: bool = False,
    ) -> FetchContext | ErrorCode:
        """Accept a request without reading yet."""
        return self.sessions.begin(
            request, version, now_ms, privileged=follower, topic_names=self.names.get
        )

    def fetch(
        self,
        request: FetchRequest,
        version: int = NAMES_VERSION,
        *,
        now_ms: int = 0,
        follower: bool = False,
    ) -> FetchResponse:
        """Accept, read and answer."""
        context = self.begin(request, version, now_ms=now_ms, follower=follower)
        if isinstance(context, ErrorCode):
            return FetchResponse(error_code=context)
        return context.finish(self.read(context, request.max_bytes), now_ms)

    def read(self, context: FetchContext, max_bytes: int = 2**31 - 1) -> list[ReadResult]:
        """Read what the context asks for, in its order, within a byte limit."""
        left = max_bytes
        results: list[ReadResult] = []
        for wanted in context.to_read():
            data = self._read_one(wanted, left, is_first=left == max_bytes)
            left = max(0, left - len(bytes(data.records or b"")))  # type: ignore[arg-type]  # bytes here
            results.append((wanted, data))
        return results

    def _read_one(self, wanted: WantedPartition, left: int, *, is_first: bool) -> PartitionData:
        index = wanted.partition
        if wanted.topic is None:
            return failed(index, ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self.partitions.get((wanted.topic, index))
        if partition is None:
            return failed(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition.reads += 1
        if partition.error is not ErrorCode.NONE:
            return failed(index, partition.error)
        wanted.note_source(partition)
        unread = max(0, partition.high_watermark - wanted.params.fetch_offset) * RECORD_BYTES
        allowed = min(unread, left, wanted.params.partition_max_bytes)
        size = max(allowed - allowed % RECORD_BYTES, RECORD_BYTES if is_first and unread else 0)
        return PartitionData(
            partition_index=index,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log_start_offset,
            records=bytes(size) if size else b"",
            **partition.extra,
        )


def failed(index: int, error: ErrorCode) -> PartitionData:
    """What a broker answers for a partition that it cannot read."""
    return PartitionData(partition_index=index, error_code=error, high_watermark=-1)


def fetch_request(
    session_id: int,
    session_epoch: int,
    offsets: Mapping[Name, int] | Iterable[Name] = (),
    *,
    forget: Iterable[Name] = (),
    by_id: bool = False,
    max_bytes: int = 2**31 - 1,
    **params: Any,
) -> FetchRequest:
    """A request that lists partitions with their fetch offsets, 0 unless given."""
    wanted = dict(offsets) if isinstance(offsets, Mapping) else dict.fromkeys(offsets, 0)
    params.setdefault("partition_max_bytes", 1 << 20)
    topics: dict[str, FetchTopic] = {}
    for (topic, index), offset in wanted.items():
        entry = topics.setdefault(topic, FetchTopic(**_identity(topic, by_id), partitions=[]))
        entry.partitions.append(FetchPartition(partition=index, fetch_offset=offset, **params))
    return FetchRequest(
        session_id=session_id,
        session_epoch=session_epoch,
        max_bytes=max_bytes,
        topics=list(topics.values()),
        forgotten_topics_data=[
            ForgottenTopic(**_identity(topic, by_id), partitions=[index]) for topic, index in forget
        ],
    )


def listed(response: FetchResponse) -> list[Name]:
    """The partitions of an answer, in its order, under the names that the test uses."""
    return [
        (topic.topic or bytes(topic.topic_id).rstrip(b".").decode(), data.partition_index)
        for topic in response.responses
        for data in topic.partitions
    ]


def _identity(topic: str, by_id: bool) -> dict[str, Any]:
    return (
        {"topic": "", "topic_id": topic_id(topic)}
        if by_id
        else {"topic": topic, "topic_id": ZERO_UUID}
    )
