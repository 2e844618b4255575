"""Load on a broker from plain sockets: frames are packed once, answers are only counted.

Every function takes an address and works against any broker. Rates are requests per second of wall
time; the client is the same on both sides of a comparison, so its cost cancels out of the order,
not out of the ratio: where the client is the bottleneck the ratio tends to 1.
"""

import selectors
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.attack import frames
from tests.attack.target import read_frame

__all__ = ["await_topic", "fetch_rate", "produce_rate"]

RECEIVE_BYTES = 1 << 20


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


def _drive(
    bootstrap: str, request: bytes, *, connections: int, in_flight: int, seconds: float
) -> float:
    """Keep `in_flight` copies of a request under way on every connection; return answers/s."""
    with (
        _connections(bootstrap, connections) as opened,
        selectors.DefaultSelector() as selector,
    ):
        for connection in opened:
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ, _AnswerCounter())
            _send(connection, request * in_flight)
        answered = 0
        begun = time.perf_counter()
        end = begun + seconds
        while time.perf_counter() < end:
            for key, _ in selector.select(0.5):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                data = connection.recv(RECEIVE_BYTES)
                if not data:
                    raise RuntimeError(f"{bootstrap} closed the connection")
                done = key.data.feed(data)
                if done:
                    answered += done
                    _send(connection, request * done)
        return answered / (time.perf_counter() - begun)


def _send(connection: socket.socket, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[connection.send(view) :]
        except BlockingIOError:
            time.sleep(0)


class _AnswerCounter:
    """Counts whole frames in a stream without keeping them."""

    def __init__(self) -> None:
        self._missing = 0
        self._head = b""

    def feed(self, data: bytes) -> int:
        """Return how many answers ended in `data`."""
        done, position, size = 0, 0, len(data)
        while position < size:
            if self._missing:
                step = min(self._missing, size - position)
                self._missing -= step
                position += step
                done += not self._missing
                continue
            need = 4 - len(self._head)
            self._head += data[position : position + need]
            position += need
            if len(self._head) == 4:
                (self._missing,) = struct.unpack(">i", self._head)
                self._head = b""
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
    return _drive(bootstrap, request, connections=connections, in_flight=in_flight, seconds=seconds)


def fetch_rate(
    bootstrap: str,
    topic: str,
    *,
    fetch_bytes: int,
    connections: int = 1,
    seconds: float = 3.0,
) -> float:
    """Return Fetch requests per second, each answered with about `fetch_bytes` from offset 0."""
    body = struct.pack(">iiiib", -1, 100, 1, fetch_bytes, 0)
    body += struct.pack(">i", 1) + frames.string(topic) + struct.pack(">iiqi", 1, 0, 0, fetch_bytes)
    request = frames.request(1, 4, body)
    return _drive(bootstrap, request, connections=connections, in_flight=1, seconds=seconds)
