"""Load on a leading controller from plain sockets: the same frames for whoever answers.

Each client sets `interval.ms` of a client-metrics subscription of its own to a value that differs
every time, because neither side writes a record for what does not change. A request is a template
in which six digits are replaced. An answer with an error ends the run: a refusal is quick.
"""

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable

from kraft_wire.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.header import RequestHeader, encode_request_header
from tests.mixed.load import CLIENT_METRICS, KEY
from tests.server.wire_client import WireClient

__all__ = ["fill_quotas", "latencies", "rate"]

_DIGITS = b"777777"
_FIRST = 100_000
_VALUES = 900_000
_ERROR_AT = 14
"""Where an answer of one resource has its error code, the length in front included."""
_RECEIVE_BYTES = 1 << 16
_ENTRIES = 8_000
_IN_FLIGHT = 2
_FILL_SECONDS_MAX = 1_800.0
_ANSWER_SECONDS_MAX = 120.0
_PAUSE_S = 0.5


class _Refused(RuntimeError):
    """An answer with this error."""


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
            raise _Refused(ErrorCode(error).name)
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
    """Changes acknowledged per second to clients that each have one under way."""
    opened = [_Client(address, number) for number in range(clients)]
    answered = 0
    with selectors.DefaultSelector() as selector:
        for client in opened:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.ask()
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            for key, _ in selector.select(1.0):
                if key.data.is_answered():
                    answered += 1
                    key.data.ask()
        taken = time.perf_counter() - begun
    for client in opened:
        client.socket.close()
    return answered / taken


def fill_quotas(leader: Callable[[], str], records: int) -> float:
    """Write as many quotas, each of a user of its own, a few requests ahead; return the seconds.

    What was not acknowledged when the leader changes is asked of the next one again: a value that
    is there already makes no record.
    """
    begun = time.perf_counter()
    left = deque(range(0, records, _ENTRIES))
    deadline = begun + _FILL_SECONDS_MAX
    while left:
        try:
            _fill(leader(), left, records)
        except (OSError, AssertionError, _Refused):
            if time.perf_counter() > deadline:
                raise
            time.sleep(_PAUSE_S)
    return time.perf_counter() - begun


def _fill(address: str, left: deque[int], records: int) -> None:
    """Ask one leader for what is left; an acknowledged request leaves the queue."""
    with WireClient(address) as client:
        client.sock.settimeout(_ANSWER_SECONDS_MAX)
        waiting: deque[RequestHeader] = deque()
        for first in tuple(left):
            waiting.append(client.send(_quotas(range(first, min(first + _ENTRIES, records))), 1))
            if len(waiting) == _IN_FLIGHT:
                _take(client, waiting.popleft())
                left.popleft()
        for header in waiting:
            _take(client, header)
            left.popleft()


def _quotas(users: Iterable[int]) -> AlterClientQuotasRequest:
    ops = [OpData(key="producer_byte_rate", value=1_000_000.0)]
    return AlterClientQuotasRequest(
        entries=[
            EntryData(entity=[EntityData(entity_type="user", entity_name=f"user-{each}")], ops=ops)
            for each in users
        ]
    )


def _take(client: WireClient, header: RequestHeader) -> None:
    answer = client.receive(AlterClientQuotasResponse, header)
    refused = [each.error_code for each in answer.entries if each.error_code]
    if refused:
        raise _Refused(ErrorCode(refused[0]).name)
