"""A client's view of a cluster: leaders of partitions, and retries until a deadline.

A leader that moved, a broker that restarts and a topic in creation look alike to a client: a
passing error. After such an error the client refreshes the metadata and waits, longer each time, up
to a deadline; any other error is reported with topic and broker. Requests carry topic names, never
ids (Fetch up to 12, Produce up to 11), as a reader of names expects.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self, TypeVar

from kraft_wire.client.connection import (
    BrokerConnection,
    BrokerConnectionError,
    NotAuthenticated,
)
from kraft_wire.model import TopicPartition
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode
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
)

if TYPE_CHECKING:
    from kraft_wire.login.client_config import Security

__all__ = [
    "EARLIEST_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "PASSING_ERRORS",
    "ClusterClient",
    "ClusterRefused",
    "ClusterSettings",
    "RetryDeadline",
    "connect",
    "the_only",
]

T = TypeVar("T")

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
PASSING_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_PAUSE_SECONDS: Final = 0.02
_PAUSE_SECONDS_MAX: Final = 1.0
_UNKNOWN_TOPIC_SECONDS: Final = 2.0


class ClusterRefused(Exception):
    """The cluster refused a request; the text is one line that names topic and broker."""


def the_only(found: Sequence[T], what: str) -> T:
    """Return the one element that an answer has to have. Errors: ClusterRefused."""
    if len(found) != 1:
        raise ClusterRefused(f"the broker answers about {len(found)} {what}, was asked about one")
    return found[0]


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How a cluster is reached; a value that can be pickled."""

    bootstrap: tuple[str, ...]
    client_id: str = "kraft-wire"
    request_seconds: float = 30.0
    deadline_seconds: float = 60.0
    """How long errors that pass may last."""
    security_keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Kafka's client keys of the connections and their values, secrets among them.

    Without any the connections have the security of the process (`connection.use_security`).
    """


def connect(settings: ClusterSettings, address: str) -> BrokerConnection:
    """Return a new connection to a broker of a cluster.

    Errors: ClusterRefused (unusable security keys), BrokerConnectionError.
    """
    return BrokerConnection(
        address,
        timeout_s=settings.request_seconds,
        client_id=settings.client_id,
        security=_security_of(settings.security_keys),
    )


@lru_cache(maxsize=8)
def _security_of(keys: tuple[tuple[str, str], ...]) -> "Security | None":
    """Return the security of client keys; stores are read once in a process, as by Kafka's."""
    if not keys:
        return None
    from kraft_wire.login.client_config import UnusableConfig, security_of

    try:
        return security_of(dict(keys))
    except UnusableConfig as error:
        raise ClusterRefused(str(error)) from error


class RetryDeadline:
    """One deadline, and pauses that grow until it; progress begins it again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Begin again."""
        self._deadline = time.monotonic() + self._seconds
        self._pause = _PAUSE_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._deadline

    def pause(self) -> None:
        """Wait a little, longer each time."""
        time.sleep(max(min(self._pause, self._deadline - time.monotonic()), 0.0))
        self._pause = min(2 * self._pause, _PAUSE_SECONDS_MAX)


class ClusterClient:
    """Connections to the brokers of one cluster; used by one thread, closed at the end."""

    def __init__(self, settings: ClusterSettings) -> None:
        assert settings.bootstrap, "give a broker"
        self.settings = settings
        self._connections: dict[str, BrokerConnection] = {}
        self._brokers: dict[int, str] = {}
        self._leaders: dict[TopicPartition, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def topic_names(self) -> list[str]:
        """Return the names of all topics that are not internal."""
        answer = self._metadata(None)
        return sorted(t.name for t in answer.topics if t.name and not t.is_internal)

    def partitions_of(self, topics: Iterable[str], *, create: bool = False) -> dict[str, int]:
        """Return the number of partitions of each topic; ClusterRefused names a missing one.

        An unknown topic is requested again for two seconds: it may be in creation, with `create` by
        this request itself, if brokers allow it.
        """
        wanted = list(topics)
        patience = RetryDeadline(self.settings.deadline_seconds)
        unknown = RetryDeadline(min(_UNKNOWN_TOPIC_SECONDS, self.settings.deadline_seconds))
        while True:
            answer = self._metadata(wanted, create=create)
            described = {t.name: t for t in answer.topics}
            unknown_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            codes = {
                name: described[name].error_code if name in described else unknown_code
                for name in wanted
            }
            wrong = {name: code for name, code in codes.items() if code}
            if not wrong:
                return {name: len(described[name].partitions) for name in wanted}
            name, code = min(wrong.items())
            waiting = unknown if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else patience
            if code not in PASSING_ERRORS or waiting.is_over:
                raise ClusterRefused(self._about_topic(name, code))
            waiting.pause()

    def offsets_at(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Return the offsets at timestamps in ms, -1 where no record is that late.

        `LATEST_TIMESTAMP` is the high watermark, under read_committed the last stable offset;
        `EARLIEST_TIMESTAMP` is where the log starts.
        """
        found: dict[TopicPartition, int] = {}

        def ask() -> str | None:
            missing = {key: at for key, at in wanted.items() if key not in found}
            problem = None
            for address, keys in self._by_leader(missing).items():
                request = _list_offsets({key: missing[key] for key in keys}, read_committed)
                answer = self._connection(address).send(request, ListOffsetsResponse)
                problem = _take_offsets(answer, address, missing, found) or problem
            if problem is None and len(found) < len(wanted):
                absent = next(key for key in wanted if key not in found)
                problem = f"{absent}: no leader"
            return problem

        self.until_done(ask, wanted)
        return found

    def until_done(self, ask: Callable[[], str | None], keys: Iterable[TopicPartition]) -> None:
        """Call `ask` until it returns None; its result, or BrokerConnectionError, is a passing
        error.

        ClusterRefused with the last of them at the deadline.
        """
        patience = RetryDeadline(self.settings.deadline_seconds)
        topics = sorted({key.topic for key in keys})
        while True:
            try:
                if any(key not in self._leaders for key in keys):
                    self.learn_leaders(topics)
                problem = ask()
                if problem is None:
                    return
            except NotAuthenticated as error:
                raise ClusterRefused(str(error)) from error
            except BrokerConnectionError as error:
                problem = str(error)
            if patience.is_over:
                raise ClusterRefused(f"{problem} (for {self.settings.deadline_seconds:g} s)")
            self.forget()
            patience.pause()

    def learn_leaders(self, topics: Sequence[str]) -> None:
        """Request the leaders of the partitions of some topics."""
        answer = self._metadata(topics)
        for topic in answer.topics:
            for each in topic.partitions:
                key = TopicPartition(topic.name or "", each.partition_index)
                if each.leader_id in self._brokers and not each.error_code:
                    self._leaders[key] = each.leader_id
                else:
                    self._leaders.pop(key, None)

    def forget(self) -> None:
        """Discard all cached state: connections are closed, leaders are asked for again."""
        self.close()
        self._leaders.clear()

    def leader_of(self, key: TopicPartition) -> BrokerConnection:
        """Return a connection to a partition's leader; BrokerConnectionError if unknown."""
        if key not in self._leaders:
            self.learn_leaders([key.topic])
        leader = self._leaders.get(key)
        if leader is None:
            raise BrokerConnectionError(
                f"{key} has no leader at {', '.join(self.settings.bootstrap)}"
            )
        return self._connection(self._brokers[leader])

    def leader_address(self, key: TopicPartition) -> str:
        """Return the address of a partition's leader, if it is known."""
        leader = self._leaders.get(key)
        return "no leader" if leader is None else self._brokers[leader]

    def any_broker(self) -> BrokerConnection:
        """Return a connection to any broker.

        Errors: NotAuthenticated by the first that refuses, BrokerConnectionError that names all
        that cannot be reached.
        """
        places = dict.fromkeys([*self.settings.bootstrap, *self._brokers.values()])
        problems: list[str] = []
        for address in sorted(places, key=lambda each: each not in self._connections):
            try:
                return self._connection(address)
            except NotAuthenticated:
                raise
            except BrokerConnectionError as error:
                problems.append(str(error))
        raise BrokerConnectionError("; ".join(problems))

    def broker_ids(self) -> list[int]:
        """Return the ids of all brokers that are alive."""
        self._metadata(())
        return sorted(self._brokers)

    def broker(self, broker_id: int) -> BrokerConnection:
        """Return a connection to one broker; BrokerConnectionError where no live one has the id."""
        if broker_id not in self._brokers:
            self._metadata(())
        if broker_id not in self._brokers:
            where = ", ".join(self.settings.bootstrap)
            raise BrokerConnectionError(f"no live broker has id {broker_id} at {where}")
        return self._connection(self._brokers[broker_id])

    def _connection(self, address: str) -> BrokerConnection:
        known = self._connections.get(address)
        if known is None:
            known = self._connections[address] = connect(self.settings, address)
        return known

    def _metadata(self, topics: Sequence[str] | None, *, create: bool = False) -> MetadataResponse:
        """Ask any broker; if none answers, each in turn until the deadline."""
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=create)
        patience = RetryDeadline(self.settings.deadline_seconds)
        while True:
            try:
                answer = self.any_broker().send(request, MetadataResponse)
                break
            except BrokerConnectionError as error:
                self.close()
                if patience.is_over or isinstance(error, NotAuthenticated):
                    raise ClusterRefused(str(error)) from error
                patience.pause()
        self._brokers = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
        known = self._leaders.items()
        self._leaders = {key: leader for key, leader in known if leader in self._brokers}
        return answer

    def _by_leader(self, keys: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
        places: dict[str, list[TopicPartition]] = {}
        for key in keys:
            leader = self._leaders.get(key)
            if leader is not None:
                places.setdefault(self._brokers[leader], []).append(key)
        return places

    def _about_topic(self, name: str, code: int) -> str:
        where = ", ".join(self.settings.bootstrap)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return f"topic {name!r} does not exist at {where}"
        return f"topic {name!r} cannot be read at {where}: {error_name(code)}"


def _list_offsets(wanted: Mapping[TopicPartition, int], read_committed: bool) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for key, timestamp in wanted.items():
        partition = ListOffsetsPartition(partition_index=key.partition, timestamp=timestamp)
        topics.setdefault(key.topic, []).append(partition)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(read_committed),
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )


def _take_offsets(
    answer: ListOffsetsResponse,
    address: str,
    wanted: Collection[TopicPartition],
    found: dict[TopicPartition, int],
) -> str | None:
    """Take the requested offsets of an answer; return the error of a partition without one."""
    problem: str | None = None
    for topic in answer.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            if key not in wanted:
                continue
            if not each.error_code:
                found[key] = each.offset
            elif each.error_code in PASSING_ERRORS:
                problem = f"{key}: {error_name(each.error_code)} at {address}"
            else:
                raise ClusterRefused(f"{key}: {error_name(each.error_code)} at {address}")
    return problem
