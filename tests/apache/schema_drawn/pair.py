"""Two brokers that are asked the same at the same moment, and the first field that differs."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kraft_wire.conformance.case import Listener
from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.target import Target
from kraft_wire.conformance.verdict import ConnectionClosed, Exchange, Mismatch
from kraft_wire.model import ZERO_UUID, Uuid, uuid_to_text
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
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
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message
from kraft_wire.wire.structs import Struct
from tests.apache.schema_drawn.pools import TOPICS

__all__ = ["CLOSED", "SILENT", "Broker", "Difference", "Fields", "difference", "set_scene"]

WAIT_S: Final = 6.0
"""An answer that takes longer waits for something that does not come."""
CLOSED: Final = "(closed)"
SILENT: Final = "(no answer)"
_READY_S: Final = 60.0
_TRIES: Final = 40
_PAUSE_S: Final = 0.1
"""Until 4.3.1's controller leads again, its coordinator has loaded, or its markers are written."""
_EARLY: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)

_MEMBER_ID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID: Final = re.compile(r"(?<![\w-])(?=[\w-]*[A-Z0-9_-])[\w-]{22}(?![\w-])")
_CLOCK_MS: Final = range(1_750_000_000_000, 4_000_000_000_000)
_OWN: Final = frozenset(
    {
        *("session_id", "total_bytes", "usable_bytes", "finalized_features_epoch"),
        *("log_end_offset", "last_fetch_timestamp"),
        *("last_caught_up_timestamp"),
    }
)
"""Numbers that two runs of Apache Kafka would not share either, unless they are 0 or -1."""

_LEFT_OUT: Final = frozenset({"unknown_tagged_fields", "throttle_time_ms", "partition_size"})
"""A share partition's place in its coordinator's topic depends on the drawn id of its topic."""

Fields = Mapping[str, object]


@dataclass(frozen=True)
class Difference:
    """The first field of an answer that differs; both values are in their normal form."""

    path: str
    apache: object
    ours: object

    @property
    def kind(self) -> "Difference":
        """The difference without places in lists and without numbers."""
        path = re.sub(r"\[\d+\]", "[]", self.path)
        return Difference(path, _without_numbers(self.apache), _without_numbers(self.ours))


def _without_numbers(value: object) -> str:
    return re.sub(r"\d+", "N", str(value))[:60]


class Broker:
    """One of the two, with a connection to each of its listeners."""

    def __init__(self, targets: Mapping[Listener, Target], directory: str) -> None:
        """`directory` is where its logs are."""
        self.targets = targets
        self._directory = directory
        self._ports = {str(each.address[1]) for each in targets.values()}
        self._connections: dict[Listener, Connection] = {}
        self._topic_ids: dict[Uuid, Uuid] = {}

    def bind(self, drawn: Uuid, own: Uuid) -> None:
        """Note the id of a topic here that an id of drawn requests stands for."""
        self._topic_ids[drawn] = own

    def send(self, listener: Listener, request: Message, version: int) -> RequestHeader:
        """Send a drawn request with this broker's topic ids."""
        connection = self._connection(listener)
        payload, header = connection.encoded(self._bound(request), version)
        connection.send_frame(payload)
        return header

    def answer(self, listener: Listener, header: RequestHeader) -> Message | str:
        """Return the answer, or `CLOSED` or `SILENT`, after either of which it connects again."""
        connection = self._connection(listener)
        try:
            return connection.response(b"", header, response_class(header.api_key))
        except ConnectionClosed:
            ended = CLOSED
        except Mismatch as problem:
            if "nothing within" not in str(problem):
                raise
            ended = SILENT
        self._connections.pop(listener).close()
        return ended

    def fields(self, answer: Message | str) -> Fields:
        """Return the fields of an answer by their path, in normal form; lists are sorted."""
        return {"": answer} if isinstance(answer, str) else dict(self._fields(answer, ""))

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def ask(self, request: Message, version: int, answer: type[Any]) -> Any:
        """Ask the broker's listener for something that belongs to the scene."""
        return self._connection(Listener.BROKER).ask(request, version, answer)

    def _connection(self, listener: Listener) -> Connection:
        if listener not in self._connections:
            address = self.targets[listener].address
            try:
                self._connections[listener] = Connection(address, WAIT_S, _forget)
            except OSError as error:
                raise ConnectionError(f"{self._directory}: {error}") from error
        return self._connections[listener]

    def _bound(self, value: Any) -> Any:
        """Return a copy of a message, or of a part of one, with this broker's topic ids."""
        if isinstance(value, Struct):
            copy = type(value)()
            for name in value.field_names:
                setattr(copy, name, self._bound(getattr(value, name)))
            return copy
        if isinstance(value, list):
            return [self._bound(each) for each in value]
        return self._topic_ids.get(Uuid(value), value) if isinstance(value, bytes) else value

    def _fields(self, struct: Struct, prefix: str) -> Iterator[tuple[str, object]]:
        for name in struct.field_names:
            if name not in _LEFT_OUT:
                yield from self._value(getattr(struct, name), name, prefix + name)

    def _value(self, value: Any, name: str, path: str) -> Iterator[tuple[str, object]]:
        if isinstance(value, Struct):
            yield from self._fields(value, f"{path}.")
        elif isinstance(value, list):
            yield f"{path}.length", len(value)
            forms = sorted((dict(self._value(each, name, "")) for each in value), key=repr)
            for at, form in enumerate(forms):
                yield from ((f"{path}[{at}]{inner}", found) for inner, found in form.items())
        else:
            yield path, self._plain(value, name)

    def _plain(self, value: Any, name: str) -> object:
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(bytes(value))
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return value
        if value in _CLOCK_MS:
            return "a time"
        if str(value) in self._ports:
            return "a port"
        return "a number" if name in _OWN and value not in (0, -1) else value

    def _bytes(self, value: bytes) -> object:
        own = {known: drawn for drawn, known in self._topic_ids.items()}
        if Uuid(value) in own:
            return own[Uuid(value)]
        is_id = len(value) == len(ZERO_UUID) and value != ZERO_UUID and value not in self._topic_ids
        return "an id" if is_id else value

    def _text(self, value: str) -> str:
        value = value.replace(self._directory, "DIRECTORY").replace("127.0.0.1", "localhost")
        for port in self._ports:
            value = value.replace(port, "PORT")
        return _ID.sub("AN ID", _MEMBER_ID.sub("MEMBER", value))


def _forget(_: Exchange) -> None:
    """The frames are not kept."""


def difference(
    apache: Broker, ours: Broker, listener: Listener, request: Message, version: int
) -> Difference | None:
    """Ask both, and return the first field in which the answers differ."""
    headers = [each.send(listener, request, version) for each in (apache, ours)]
    answers = [
        each.answer(listener, header) for each, header in zip((apache, ours), headers, strict=True)
    ]
    one, other = apache.fields(answers[0]), ours.fields(answers[1])
    for _ in range(_TRIES):
        if _is_early(one) == _is_early(other):
            break
        time.sleep(_PAUSE_S)
        if _is_early(one):
            one = apache.fields(apache.answer(listener, apache.send(listener, request, version)))
        else:
            other = ours.fields(ours.answer(listener, ours.send(listener, request, version)))
    for path in {**one, **other}:
        mine, theirs = one.get(path, "(absent)"), other.get(path, "(absent)")
        if mine != theirs:
            return Difference(path, mine, theirs)
    return None


def _is_early(fields: Fields) -> bool:
    """Whether coordinator or controller are not ready: some refusals make 4.3.1's resign."""
    return any(path.endswith("error_code") and value in _EARLY for path, value in fields.items())


def set_scene(broker: Broker) -> None:
    """Create all topics, also internal ones, the group `g0` and the producer `x0`."""
    topics = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, (count, _) in TOPICS.items()
    ]
    created = broker.ask(
        CreateTopicsRequest(topics=topics, timeout_ms=9_000), 7, CreateTopicsResponse
    )
    for topic in created.topics:
        assert topic.error_code == 0, topic
        broker.bind(TOPICS[topic.name][1], topic.topic_id)
    for key_type, key in enumerate(("g0", "x0")):
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        _until_served(broker, request, 3, FindCoordinatorResponse)
    share_key = f"g0:{uuid_to_text(created.topics[0].topic_id)}:0"
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=[share_key])
    _until_served(broker, request, 6, FindCoordinatorResponse)
    producer = InitProducerIdRequest(transactional_id="x0", transaction_timeout_ms=60_000)
    _until_served(broker, producer, 4, InitProducerIdResponse)
    position = OffsetCommitRequestPartition(committed_offset=1, committed_metadata="")
    commit = OffsetCommitRequest(
        group_id="g0", topics=[OffsetCommitRequestTopic(name="t0", partitions=[position])]
    )
    _until_served(broker, commit, 8, OffsetCommitResponse)


def _until_served(broker: Broker, request: Message, version: int, answer: type[Any]) -> None:
    """Ask until the coordinator is there."""
    deadline_s = time.monotonic() + _READY_S
    while True:
        found = broker.ask(request, version, answer)
        first = found
        if getattr(found, "topics", None):
            first = found.topics[0].partitions[0]
        elif getattr(found, "coordinators", None):
            first = found.coordinators[0]
        if first.error_code == 0:
            return
        assert time.monotonic() < deadline_s, found
        time.sleep(0.1)
