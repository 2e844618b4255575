"""Load on a broker from plain sockets: frames are packed once, answers judged by size and head.

Every function takes an address and works against any broker. Rates are requests per second of wall
time; the client is the same on both sides of a comparison, so its cost cancels out of the order,
not out of the ratio: where the client is the bottleneck the ratio tends to 1.
"""

import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.attack import frames
from tests.attack.target import read_frame

__all__ = ["await_topic", "fetch_rate", "produce_rate"]

RECEIVE_BYTES = 1 << 18
"""Fits a second-level cache: with 1 MiB the copy of large answers costs the client a tenth more."""
_PRODUCE_REST_BYTES = struct.calcsize(">qqi")
"""Version 3, behind the error code: base offset, append time, throttle time."""
_FETCH_REST_BYTES = struct.calcsize(">qqii")
"""Version 4: high watermark, last stable offset, no aborted transactions, size of the records."""


def _address(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


@contextmanager
def _connections(bootstrap: str, count: int) -> Iterator[list[socket.socket]]:
    opened = [socket.create_connection(_address(bootstrap)) for _ in range(count)]
    for connection in opened:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        yield opened
    finally:
        for connection in opened:
            connection.close()


def await_topic(bootstrap: str, topic: str, deadline_s: float = 60.0) -> None:
    """Create a topic through Metadata and wait until a produce to it succeeds."""
    probe = frames.produce_v3(topic, frames.batch(frames.one_record(b"probe"), 1))
    deadline = time.monotonic() + deadline_s
    with _connections(bootstrap, 1) as (connection,):
        while time.monotonic() < deadline:
            connection.sendall(frames.metadata_v1([topic]))
            read_frame(connection)
            connection.sendall(probe)
            answer = read_frame(connection)
            if answer is not None and answer[18 + len(topic) : 20 + len(topic)] == b"\0\0":
                return
            time.sleep(0.1)
    raise RuntimeError(f"{topic} did not become writable at {bootstrap}")


class _Expected(NamedTuple):
    """What every answer to a request looks like: how it begins, and how long it is.

    The beginning ends with the error code of the one partition, so that an answer of the right
    size that says something else, or that belongs to another request, is noticed.
    """

    head: bytes
    size_bytes: int


def _expected(correlation_id: int, body_head: bytes, rest_bytes: int) -> _Expected:
    """Put length and correlation id in front; `rest_bytes` follow the head unseen."""
    payload = struct.pack(">i", correlation_id) + body_head
    size = len(payload) + rest_bytes
    return _Expected(struct.pack(">i", size) + payload, 4 + size)


def _drive(
    bootstrap: str,
    request: bytes,
    expected: _Expected,
    *,
    connections: int,
    in_flight: int,
    seconds: float,
) -> float:
    """Keep `in_flight` copies of a request under way on every connection; return answers/s."""
    buffer = bytearray(RECEIVE_BYTES)  # used again and again: fresh memory costs more than recv
    with _connections(bootstrap, connections) as opened, select.epoll() as poll:
        streams: dict[int, tuple[socket.socket, _Answers]] = {}
        for connection in opened:
            connection.setblocking(False)
            streams[connection.fileno()] = connection, _Answers(expected)
            poll.register(connection, select.EPOLLIN)
            _send(connection, request * in_flight)
        answered = 0
        begun = time.perf_counter()
        end = begun + seconds
        while time.perf_counter() < end:
            for descriptor, _ in poll.poll(0.5):
                connection, answers = streams[descriptor]
                count = connection.recv_into(buffer)
                if not count:
                    raise RuntimeError(f"{bootstrap} closed the connection")
                done = answers.feed(buffer, count)
                if done:
                    answered += done
                    _send(connection, request * done)
        return answered / (time.perf_counter() - begun)


def _correlation_id(request: bytes) -> int:
    found: int = struct.unpack_from(">i", request, 8)[0]
    return found


def _send(connection: socket.socket, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[connection.send(view) :]
        except BlockingIOError:
            time.sleep(0)


class _Answers:
    """Counts the answers in one connection's stream and looks at the head of each."""

    def __init__(self, expected: _Expected) -> None:
        self._expected = expected
        self._at = 0
        """Bytes seen of the answer that is coming in."""

    def feed(self, data: bytearray, count: int) -> int:
        """Return how many answers ended in `data[:count]`."""
        head, size = self._expected
        done, position, at = 0, 0, self._at
        while position < count:
            if at < len(head):
                step = min(len(head) - at, count - position)
                seen = data[position : position + step]
                if seen != head[at : at + step]:
                    wanted = head[at : at + step].hex()
                    raise RuntimeError(f"byte {at} of an answer: {seen.hex()} is not {wanted}")
            else:
                step = min(size - at, count - position)
            position += step
            at += step
            if at == size:
                at = 0
                done += 1
        self._at = at
        return done


def produce_rate(
    bootstrap: str,
    topic: str,
    *,
    value_bytes: int,
    connections: int = 1,
    in_flight: int = 1,
    seconds: float = 3.0,
) -> float:
    """Return Produce requests per second, one record of `value_bytes` each, acks=1."""
    records = frames.batch(frames.one_record(b"v" * value_bytes), 1)
    request = frames.produce_v3(topic, records)
    body_head = struct.pack(">i", 1) + frames.string(topic) + struct.pack(">iih", 1, 0, 0)
    return _drive(
        bootstrap,
        request,
        _expected(_correlation_id(request), body_head, _PRODUCE_REST_BYTES),
        connections=connections,
        in_flight=in_flight,
        seconds=seconds,
    )


def fetch_rate(
    bootstrap: str,
    topic: str,
    *,
    fetch_bytes: int,
    connections: int = 1,
    seconds: float = 3.0,
) -> float:
    """Return Fetch requests per second, each answered with `fetch_bytes` from offset 0.

    The topic has at least that much, and its last batch is cut where the bytes end, as Kafka does.
    """
    body = struct.pack(">iiiib", -1, 100, 1, fetch_bytes, 0)
    body += struct.pack(">i", 1) + frames.string(topic) + struct.pack(">iiqi", 1, 0, 0, fetch_bytes)
    request = frames.request(1, 4, body)
    body_head = struct.pack(">ii", 0, 1) + frames.string(topic) + struct.pack(">iih", 1, 0, 0)
    rest_bytes = _FETCH_REST_BYTES + fetch_bytes
    return _drive(
        bootstrap,
        request,
        _expected(_correlation_id(request), body_head, rest_bytes),
        connections=connections,
        in_flight=1,
        seconds=seconds,
    )
