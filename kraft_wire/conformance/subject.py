"""A case's access to the broker under judgment: connections, topics, groups, producer ids.

Topics are made with the broker under judgment as their only replica, and groups get ids that it
coordinates, so that a case needs one connection in a cluster of any size. All names begin with the
prefix of the run; the run deletes the topics.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count
from typing import Final, TypeVar

from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.target import Target, new_prefix
from kraft_wire.conformance.verdict import Exchange, Mismatch, NotSupported
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kraft_wire.wire.message import Message

__all__ = ["Subject", "Topic", "name_mark"]

R = TypeVar("R", bound=Message)

_PAUSE_S: Final = 0.01
_GROUP_IDS_TRIED_MAX: Final = 256
_OF_TRANSACTIONS: Final = 1
_EARLIEST: Final = -2
_OFFSETS_TOPIC: Final = "__consumer_offsets"
_ONE_GROUP_MAX: Final = 7
"""The last version of OffsetFetch that is about one group."""
_NOT_SERVING: Final = frozenset(
    {
        int(ErrorCode.NOT_COORDINATOR),
        int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    }
)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that a case made."""

    name: str
    topic_id: Uuid
    """ZERO_UUID if the broker has no topic ids."""


def name_mark(row: str) -> str:
    """Return the unique part of all names that a row makes: `-1a2b3c-`."""
    return f"-{blake2b(row.encode(), digest_size=3).hexdigest()}-"


class Subject:
    """The broker as one row of the report meets it."""

    def __init__(self, target: Target, row: str) -> None:
        self.target = target
        self.exchanges: list[Exchange] = []
        self.made_topics: list[str] = []
        self._connections: list[Connection] = []
        self._names = count()
        self._mark = name_mark(row)
        self._own: Connection | None = None
        self._is_preparing = False

    # -- requests --------------------------------------------------------------------------------

    def ask(self, request: Message, version: int, response: type[R]) -> R:
        """Send a request on the row's own connection and return its response.

        Errors: Mismatch without a proper response.
        """
        if self._own is None:
            self._own = self.connect()
        return self._own.ask(request, version, response)

    def prepare(self, request: Message, response: type[R], *, until: int | None = None) -> R:
        """Send a request that only prepares a case, in the newest version that both sides have.

        Errors: NotSupported without such a version.
        """
        first, last = self.target.versions.get(request.API_KEY, (0, -1))
        version = min(last, request.MAX_VERSION if until is None else until)
        if version < max(first, request.MIN_VERSION):
            raise NotSupported(f"preparation needs {request.NAME}")
        self._is_preparing = True
        try:
            return self.ask(request, version, response)
        finally:
            self._is_preparing = False

    def _keep(self, exchange: Exchange) -> None:
        self.exchanges.append(replace(exchange, is_preparation=self._is_preparing))

    def connect(self) -> Connection:
        """Open another connection; it is closed with the row."""
        address, timeout_s = self.target.address, self.target.timeout_s
        connection = Connection(address, timeout_s, self._keep, self.target.security)
        self._connections.append(connection)
        return connection

    def begin_again(self) -> None:
        """Discard what was exchanged; new names have the form that they had the first time."""
        self.exchanges.clear()
        self._names = count()
        self.target = replace(self.target, prefix=new_prefix())

    def close(self) -> None:
        """Close all connections of the row."""
        for connection in self._connections:
            connection.close()

    # -- preparations ----------------------------------------------------------------------------

    def name(self, kind: str = "topic") -> str:
        """Return a new name."""
        return f"{self.target.prefix}{self._mark}{kind}-{next(self._names)}"

    def topic(
        self, partitions: int = 1, configs: Mapping[str, str] | None = None, name: str = ""
    ) -> Topic:
        """Create a topic that the broker under judgment leads, and wait until it serves it.

        By default it gets a new name.
        """
        name = name or self.name()
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()],
        )
        if self.target.node_id >= 0:
            topic.num_partitions = topic.replication_factor = -1
            topic.assignments = [
                CreatableReplicaAssignment(partition_index=each, broker_ids=[self.target.node_id])
                for each in range(partitions)
            ]
        request = CreateTopicsRequest(topics=[topic], timeout_ms=self._timeout_ms)
        answer = self.prepare(request, CreateTopicsResponse)
        self.made_topics.append(name)
        code = answer.topics[0].error_code
        if code != ErrorCode.NONE:
            raise NotSupported(f"CreateTopics of {name} failed with error {code}")
        found = self._served(name, partitions)
        return Topic(name, found.topic_id)

    def _served(self, name: str, partitions: int) -> MetadataResponseTopic:
        """Wait until Metadata shows a leader of each partition, and each leader answers."""
        for _ in self.attempts(f"topic {name} to have leaders"):
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
            )
            found = self.prepare(request, MetadataResponse).topics[0]
            leaders = [each for each in found.partitions if each.leader_id >= 0]
            if len(leaders) == partitions and self._is_led(name, partitions):
                return found
        raise AssertionError("attempts end in an exception")

    def _is_led(self, name: str, partitions: int) -> bool:
        wanted = [
            ListOffsetsPartition(partition_index=each, timestamp=_EARLIEST)
            for each in range(partitions)
        ]
        topics = [ListOffsetsTopic(name=name, partitions=wanted)]
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        answer = self.prepare(request, ListOffsetsResponse)
        return all(each.error_code == ErrorCode.NONE for each in answer.topics[0].partitions)

    def offsets_topic(self) -> Topic:
        """Return the internal topic of committed offsets, which a first group creates.

        Errors: NotSupported if the broker keeps offsets elsewhere.
        """
        self.group()
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=_OFFSETS_TOPIC)], allow_auto_topic_creation=False
        )
        found = self.prepare(request, MetadataResponse).topics[0]
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NotSupported(f"the broker has no topic {_OFFSETS_TOPIC}")
        return Topic(_OFFSETS_TOPIC, found.topic_id)

    def group(self) -> str:
        """Return the id of a new group that the broker under judgment coordinates."""
        for name in self._names_tried("group"):
            if self._coordinator(name) in (self.target.node_id, -1):
                self._await_group(name)
                return name
        raise NotSupported(f"the broker coordinates none of {_GROUP_IDS_TRIED_MAX} groups")

    def transactional_id(self) -> str:
        """Return a new transactional id that the broker under judgment coordinates."""
        for name in self._names_tried("transactional-id"):
            if self._coordinator(name, _OF_TRANSACTIONS) in (self.target.node_id, -1):
                return name
        raise NotSupported(f"the broker coordinates none of {_GROUP_IDS_TRIED_MAX} producers")

    def _names_tried(self, kind: str) -> Iterator[str]:
        """Yield new names until one has the right coordinator.

        They differ in the run's digits alone, so that the chosen name has the same form everywhere.
        """
        ending = f"{self._mark}{kind}-{next(self._names)}"
        yield self.target.prefix + ending
        for _ in range(1, _GROUP_IDS_TRIED_MAX):
            yield new_prefix() + ending

    def _coordinator(self, key: str, key_type: int = 0) -> int:
        for _ in self.attempts(f"a coordinator of {key}"):
            request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[])
            answer = self.prepare(request, FindCoordinatorResponse, until=3)
            if answer.error_code == ErrorCode.NONE:
                return answer.node_id if self.target.node_id >= 0 else -1
        raise AssertionError("attempts end in an exception")

    def _await_group(self, group_id: str) -> None:
        """Wait until the coordinator has loaded the group's partition.

        A broker is named as the coordinator before it serves: at first it answers NOT_COORDINATOR.
        """
        for _ in self.attempts(f"the coordinator of group {group_id} to serve"):
            request = OffsetFetchRequest(group_id=group_id, topics=None)
            answer = self.prepare(request, OffsetFetchResponse, until=_ONE_GROUP_MAX)
            if answer.error_code not in _NOT_SERVING:
                return

    def producer(self) -> tuple[int, int]:
        """Return a new producer id and its epoch."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        for _ in self.attempts("a producer id"):
            answer = self.prepare(request, InitProducerIdResponse, until=5)
            if answer.error_code == ErrorCode.NONE:
                return answer.producer_id, answer.producer_epoch
        raise AssertionError("attempts end in an exception")

    @property
    def _timeout_ms(self) -> int:
        return int(self.target.timeout_s * 1000)

    def attempts(self, what: str, seconds: float = 0.0) -> "_Attempts":
        """Return an iterator with pauses that ends `seconds` after the limit."""
        return _Attempts(what, self.target.timeout_s + seconds)


class _Attempts:
    """Iterates with pauses until the time is over, then raises Mismatch."""

    def __init__(self, what: str, seconds: float) -> None:
        self._what = what
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._is_first = True

    def __iter__(self) -> "_Attempts":
        return self

    def __next__(self) -> None:
        if self._is_first:
            self._is_first = False
            return
        if time.monotonic() > self._until:
            raise Mismatch(self._what, f"nothing of the kind within {self._seconds:g} s")
        time.sleep(_PAUSE_S)
