"""Two doors for the same story: our coordinator under virtual time, and a broker on a socket.

A reply waits when it is looked at: on a socket for the frame, in this process by letting virtual
time pass. `plain` makes answers of both comparable: ids that chance drew become their number.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Any

from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.request_header import RequestHeader
from kraft_wire.wire.generated.response_header import ResponseHeader
from kraft_wire.wire.message import Message, Struct
from tests.broker.groups.harness import Harness, Reply, topic_id_of
from tests.broker.groups.requests import Member, moments

ANSWER_SECONDS_MAX = 60
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class VirtualReply:
    """An answer of the harness; time passes until it is there."""

    def __init__(self, harness: Harness, reply: Reply) -> None:
        self._harness = harness
        self._reply = reply

    @property
    def is_parked(self) -> bool:
        """Whether there is no answer now."""
        return self._reply.is_parked

    @property
    def response(self) -> Any:
        for _ in range(ANSWER_SECONDS_MAX * 10):
            if not self._reply.is_parked:
                break
            self._harness.advance(100)
        return self._reply.response

    @property
    def error(self) -> int:
        return int(self.response.error_code)


class VirtualDoor:
    """Our coordinator."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness

    def send(
        self,
        request: Message,
        version: int,
        *,
        client_id: str | None = "client",
        connection: int = 1,
    ) -> VirtualReply:
        reply = self.harness.send(request, version, client_id=client_id, connection=connection)
        self.harness.settle()
        return VirtualReply(self.harness, reply)

    def create_topic(self, name: str) -> Uuid:
        self.harness.create_topic(name)
        return topic_id_of(name)


class SocketReply:
    """An answer that a broker sends."""

    def __init__(
        self, line: SocketLine, correlation_id: int, request: Message, version: int
    ) -> None:
        self._line = line
        self._correlation_id = correlation_id
        self._request = request
        self._version = version
        self._response: Any = None

    @property
    def response(self) -> Any:
        if self._response is None:
            body = self._line.receive(self._correlation_id)
            kind = response_class(self._request.API_KEY)
            header_version = 1 if self._version >= kind.FLEXIBLE_FROM else 0
            _, start = ResponseHeader.decode(body, header_version)
            self._response, end = kind.decode(body, self._version, start)
            assert end == len(body)
        return self._response

    @property
    def error(self) -> int:
        return int(self.response.error_code)


class SocketLine:
    """One connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS_MAX)
        self._sent = 0
        self._received: dict[int, bytes] = {}

    def send(self, request: Message, version: int, client_id: str | None) -> SocketReply:
        self._sent += 1
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=self._sent,
            client_id=client_id,
        )
        header_version = 2 if version >= type(request).FLEXIBLE_FROM else 1
        frame = bytes(header.encode(header_version)) + bytes(request.encode(version))
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        return SocketReply(self, self._sent, request, version)

    def receive(self, correlation_id: int) -> bytes:
        while correlation_id not in self._received:
            (size,) = struct.unpack(">i", self._exactly(4))
            body = self._exactly(size)
            self._received[struct.unpack_from(">i", body)[0]] = body
        return self._received.pop(correlation_id)

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the broker closed the connection"
            data += part
        return data


class SocketDoor:
    """A broker on a socket; each connection number is a connection of its own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lines: dict[int, SocketLine] = {}

    def send(
        self,
        request: Message,
        version: int,
        *,
        client_id: str | None = "client",
        connection: int = 1,
    ) -> SocketReply:
        line = self._lines.get(connection)
        if line is None:
            line = self._lines[connection] = SocketLine(self._address)
        return line.send(request, version, client_id)

    def close(self) -> None:
        for line in self._lines.values():
            line.close()

    def create_topic(self, name: str) -> Uuid:
        """Create a topic with one partition and wait until the broker knows it."""
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        self.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).response  # noqa: B018  # waits for the answer
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        for _ in moments():
            (known,) = self.send(request, 12).response.topics
            if known.error_code == 0 and known.topic_id != ZERO_UUID and known.partitions:
                return Uuid(bytes(known.topic_id))
        raise AssertionError(f"{name} does not appear")

    def await_coordinator(self, *group_ids: str) -> None:
        """Wait until the groups' coordinator is found, created and loaded."""
        for group_id in group_ids:
            find = FindCoordinatorRequest(coordinator_keys=[group_id])
            self._until_good(lambda: self.send(find, 4).response.coordinators[0].error_code)  # noqa: B023  # asked before the next
            describe = DescribeGroupsRequest(groups=[group_id])
            self._until_good(lambda: self.send(describe, 5).response.groups[0].error_code)  # noqa: B023  # as above

    def flush_coordinator(self, topic: str, group_ids: Iterable[str]) -> None:
        """Wait until all that the groups' coordinators wrote so far stands in their logs.

        Some requests are answered before their records are appended, but never a commit, and what
        is appended after others is behind them.
        """
        for group_id in group_ids:
            assert Member(self, group_id).commit(topic) == 0

    def _until_good(self, error: Callable[[], int]) -> None:
        for _ in moments():
            if error() == 0:
                return
        raise AssertionError("the coordinator does not come")


def answers_of(story: Any, door: Any, topic_id: Uuid, name: str | None = None) -> list[Any]:
    """Tell a story, under its own name or another; return its answers in a comparable form."""
    plain = Plain()
    return [
        tuple(plain(part) for part in answer) if isinstance(answer, tuple) else plain(answer)
        for answer in story(door, name or story.__name__, topic_id)
    ]


class Plain:
    """Makes answers comparable: lists of structs in order, drawn ids by order of appearance."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        return self._numbered(_sorted(value))

    def _numbered(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._numbered(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._numbered(each) for each in value]
        if isinstance(value, str):
            return _UUID.sub(lambda found: self._number(found[0]), value)
        return value

    def _number(self, drawn: str) -> str:
        return self._ids.setdefault(drawn, f"#{len(self._ids)}")


def _sorted(value: Any) -> Any:
    """Return plain values; lists of structs are in an order that drawn ids have no part in."""
    if isinstance(value, Struct):
        names = [name for name in value.__slots__ if name != "unknown_tagged_fields"]
        return {name: _sorted(getattr(value, name)) for name in names}
    if isinstance(value, list):
        items = [_sorted(item) for item in value]
        ordered = bool(items) and isinstance(items[0], dict)
        return sorted(items, key=lambda item: _UUID.sub("", repr(item))) if ordered else items
    if isinstance(value, bytes | memoryview | bytearray):
        return bytes(value).decode("latin-1")
    return int(value) if isinstance(value, int) else value
