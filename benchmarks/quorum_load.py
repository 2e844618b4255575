"""Load on a leading controller from plain sockets: the same frames for whoever answers.

Each client sets `interval.ms` of a client-metrics subscription of its own to a value that differs
every time, because neither side writes a record for what does not change. A request is a template
in which six digits are replaced. An answer with an error ends the run: a refusal is quick.
"""

import selectors
import socket
import struct
import time

from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.header import RequestHeader, encode_request_header
from tests.mixed.load import CLIENT_METRICS, KEY

__all__ = ["Refused", "latencies", "rate"]

_DIGITS = b"777777"
_FIRST = 100_000
_VALUES = 900_000
_ERROR_AT = 14
"""Where an answer of one resource has its error code, the length in front included."""
_RECEIVE_BYTES = 1 << 16
_ANSWER_SECONDS_MAX = 120.0


class Refused(RuntimeError):
    """An answer with this error: as a rule somebody else leads by now."""


class _Client:
    """One connection with one request under way."""

    def __init__(self, address: str, number: int) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head, self._tail = _template(f"bench-{number}")
        self._value = time.monotonic_ns() % _VALUES
        self._buffer = b""

    def ask(self) -> None:
        """Send the next change."""
        self._value = (self._value + 1) % _VALUES
        self.socket.sendall(b"%s%d%s" % (self._head, _FIRST + self._value, self._tail))

    def is_answered(self) -> bool:
        """Read what is there; tell whether the answer is whole, which must be a success."""
        data = self.socket.recv(_RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the connection was closed")
        self._buffer += data
        if len(self._buffer) < 4 + struct.unpack_from(">i", self._buffer)[0]:
            return False
        error = struct.unpack_from(">h", self._buffer, _ERROR_AT)[0]
        if error:
            raise Refused(ErrorCode(error).name)
        self._buffer = b""
        return True


def _template(register: str) -> tuple[bytes, bytes]:
    config = AlterableConfig(name=KEY, config_operation=0, value=_DIGITS.decode())
    resource = AlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name=register, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    head = encode_request_header(RequestHeader(request.API_KEY, 1, 1, "bench"))
    body = head + request.encode(1)
    frame = struct.pack(">i", len(body)) + body
    before, _, after = frame.partition(_DIGITS)
    return before, after


def latencies(address: str, seconds: float) -> list[float]:
    """Seconds from request to answer of one client, one change after the other."""
    client = _Client(address, 0)
    found = []
    with client.socket:
        end = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < end:
            client.ask()
            while not client.is_answered():
                pass
            found.append(time.perf_counter() - begun)
    return found


def rate(address: str, clients: int, seconds: float) -> float:
    """Changes acknowledged per second to clients that each have one under way.

    Goes on until there is one at least; TimeoutError where none comes.
    """
    opened = [_Client(address, number) for number in range(clients)]
    answered = 0
    with selectors.DefaultSelector() as selector:
        for client in opened:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.ask()
        begun = time.perf_counter()
        while (taken := time.perf_counter() - begun) < seconds or not answered:
            if taken > _ANSWER_SECONDS_MAX + seconds:
                raise TimeoutError(f"no answer from {address}")
            for key, _ in selector.select(1.0):
                if key.data.is_answered():
                    answered += 1
                    key.data.ask()
    for client in opened:
        client.socket.close()
    return answered / taken
