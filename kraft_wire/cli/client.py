"""A small synchronous client for the command line: one connection, one request at a time.

Speaks to any broker: the first request is ApiVersions, every other one goes out in the highest
version that both sides know. Not here: retries, several brokers, anything that a library offers.
"""

import socket
from types import TracebackType
from typing import Final, Self, TypeVar

from kraft_wire.wire.frame import FrameReader, MalformedFrame, frame_prefix
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import MalformedMessage, Message

__all__ = ["BrokerConnection", "CannotTalk"]

R = TypeVar("R", bound=Message)

_RESPONSE_BYTES_MAX: Final = 256 * 1024 * 1024
_RECEIVE_BYTES: Final = 1 << 20
_HEADER_BYTES_MIN: Final = 4
_PORT_DEFAULT: Final = 9092


class CannotTalk(Exception):
    """The broker cannot be reached, or does not answer as a broker does; the text is one line."""


class BrokerConnection:
    """One connection to a broker."""

    def __init__(self, address: str, *, timeout_s: float = 30.0) -> None:
        """Connect to `host:port` and learn which versions the broker speaks."""
        host, port = split_address(address)
        self._address = address
        self._correlation_id = 0
        self._reader = FrameReader(_RESPONSE_BYTES_MAX)
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout_s)
        except OSError as error:
            reason = error.strerror or str(error)
            raise CannotTalk(f"cannot connect to {address}: {reason.lower()}") from error
        try:
            self._versions = self._learn_versions()
        except CannotTalk:
            self._socket.close()
            raise

    def send(self, request: Message, response: type[R], *, version: int | None = None) -> R:
        """Send a request and return its answer, in the highest common version if none is named."""
        chosen = self.version_of(request) if version is None else version
        answer = self._exchange(request, chosen)
        if not isinstance(answer, response):
            raise CannotTalk(f"{self._address} answered {request.NAME} with {answer.NAME}")
        return answer

    def version_of(self, request: Message) -> int:
        """Return the highest version of a request that both sides know."""
        offered = self._versions.get(request.API_KEY)
        if offered is None:
            raise CannotTalk(f"{self._address} does not serve {request.NAME}")
        version = min(offered[1], request.MAX_VERSION)
        if version < max(offered[0], request.MIN_VERSION):
            raise CannotTalk(f"{self._address} and this program share no version of {request.NAME}")
        return version

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _learn_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name="kraft-wire", client_software_version="1")
        answer = self._exchange(request, 3)
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code:
            raise CannotTalk(f"{self._address} refused ApiVersions: error {answer.error_code}")
        return {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    def _exchange(self, request: Message, version: int) -> Message:
        self._correlation_id += 1
        try:
            self._socket.sendall(self._frame(request, version))
            data = self._answer()
        except MalformedFrame as error:
            raise CannotTalk(f"{self._address} does not answer as a Kafka broker does") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise CannotTalk(f"lost {self._address}: {reason.lower()}") from error
        return self._decode(data, request, version)

    def _answer(self) -> bytes:
        """Receive the one answer that is under way."""
        while True:
            chunk = self._socket.recv(_RECEIVE_BYTES)
            if not chunk:
                raise CannotTalk(f"{self._address} closed the connection")
            for frame in self._reader.feed(chunk):
                if len(frame) < _HEADER_BYTES_MIN:
                    raise CannotTalk(f"{self._address} does not answer as a Kafka broker does")
                return frame

    def _frame(self, request: Message, version: int) -> bytes:
        header = RequestHeader(request.API_KEY, version, self._correlation_id, "kraft-wire")
        frame = encode_request_header(header) + request.encode(version)
        return frame_prefix(len(frame)) + frame

    def _decode(self, data: bytes, request: Message, version: int) -> Message:
        try:
            correlation_id, offset = parse_response_header(data, request.API_KEY, version)
            if correlation_id != self._correlation_id:
                raise CannotTalk(f"{self._address} answered out of order")
            answer, _ = response_class(request.API_KEY).decode(data, version, offset)
        except MalformedMessage as error:
            raise CannotTalk(f"{self._address} sent a broken answer: {error}") from error
        return answer


def split_address(address: str) -> tuple[str, int]:
    """Split `host`, `host:port` or `[v6]:port`; without a port it is Kafka's 9092."""
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(_PORT_DEFAULT)
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise CannotTalk(f"{address} is not an address of the form host:port")
    return host.strip("[]") or "127.0.0.1", int(port)
