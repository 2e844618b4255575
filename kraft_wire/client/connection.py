"""One connection to a broker: requests are sent in order, and answered in the same order.

Works with any broker: the first request is ApiVersions, repeated in version 0 if the broker does
not know our version (KIP-511); other requests use the highest version that both sides know. `post`
sends and `answer` receives, so that one request can be in progress while the answer before it is
worked on; `send` is both. TLS and the login come before all that, by `login.client_config`; the
login is repeated before its session ends (KIP-368). Not here: retries, several brokers.
"""

import socket
from collections import deque
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from kraft_wire.client.refused import one_line
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.frame import FRAME_PREFIX_BYTES, frame_prefix
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import MalformedMessage, Message

if TYPE_CHECKING:
    from kraft_wire.login.client_config import Credentials, Security

__all__ = [
    "BrokerConnection",
    "BrokerConnectionError",
    "NotAuthenticated",
    "split_address",
    "use_security",
]

R = TypeVar("R", bound=Message)

_RESPONSE_BYTES_MAX: Final = 256 * 1024 * 1024
_HEADER_BYTES_MIN: Final = 4
_PORT_DEFAULT: Final = 9092
_API_VERSIONS_VERSION: Final = 3
_LOGIN_VERSION: Final = 1
"""Of SaslHandshake and SaslAuthenticate: every broker since 2.2 has it."""
_REFUSED: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")
"""The first bytes of a refusal of ApiVersions, which is in version 0 (KIP-511)."""


class BrokerConnectionError(Exception):
    """The broker cannot be reached, or does not answer as a broker does; the text is one line."""


class NotAuthenticated(BrokerConnectionError):
    """TLS or the login failed, as it would again: clients do not retry it, nor do Kafka's."""


_security: "Security | None" = None
"""The default security of the process's connections; None: plain text."""


def use_security(security: "Security | None") -> None:
    """Use this for all later connections of the process; a command has one for all of them."""
    global _security
    _security = security


class _Posted(NamedTuple):
    """A request whose answer is in flight."""

    correlation_id: int
    request: Message
    version: int


class BrokerConnection:
    """One connection to a broker."""

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = 30.0,
        client_id: str = "kraft-wire",
        security: "Security | None" = None,
    ) -> None:
        """Connect to `host:port`, log in, and learn which versions the broker speaks.

        Without `security` it is the one of `use_security`.
        """
        security = security or _security
        host, port = split_address(address)
        self._address = address
        self._client_id = client_id
        self._correlation_id = 0
        self._posted: deque[_Posted] = deque()
        self._received: deque[Message] = deque()
        """Answers that came before a second login, not asked for yet."""
        self._credentials = None if security is None else security.credentials
        self._renews_s: float | None = None
        """When the next login is due."""
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout_s)
        except OSError as error:
            reason = error.strerror or str(error)
            raise BrokerConnectionError(f"cannot connect to {address}: {reason.lower()}") from error
        except ValueError as error:  # neither DNS nor the system could carry it
            raise BrokerConnectionError(f"cannot connect to {address!a}: unknown host") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if security is not None:
                self._secure(security, host)
            self._versions = self._learn_versions()
        except BrokerConnectionError:
            self._socket.close()
            raise

    @property
    def address(self) -> str:
        """The `host:port` that it is connected to."""
        return self._address

    def send(self, request: Message, response: type[R], *, version: int | None = None) -> R:
        """Send a request and return its answer, by default in the highest common version."""
        assert not self._posted, "a response is outstanding"
        assert not self._received, "a response is outstanding"
        self.post(request, version=version)
        return self.answer(response)

    def post(self, request: Message, *, version: int | None = None) -> None:
        """Send a request; `answer` returns its answer later."""
        if self._renews_s is not None and monotonic() >= self._renews_s:
            self._renew()
        self._post(request, self.version_of(request) if version is None else version)

    def answer(self, response: type[R]) -> R:
        """Return the answer to the oldest unanswered request."""
        answer = self._received.popleft() if self._received else self._receive()
        if not isinstance(answer, response):
            raise BrokerConnectionError(
                f"{self._address} answered {answer.NAME} for {response.NAME}"
            )
        return answer

    def version_of(self, request: Message, *, at_most: int | None = None) -> int:
        """Return the highest version of a request that both sides know, up to a limit."""
        offered = self._versions.get(request.API_KEY)
        if offered is None:
            raise BrokerConnectionError(f"{self._address} does not serve {request.NAME}")
        version = min(offered[1], request.MAX_VERSION if at_most is None else at_most)
        if version < max(offered[0], request.MIN_VERSION):
            raise BrokerConnectionError(
                f"{self._address} supports no version of {request.NAME} that this program supports"
            )
        return version

    def wait_at_most(self, seconds: float) -> None:
        """Be as patient as that with later answers."""
        self._socket.settimeout(seconds)

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

    def _secure(self, security: "Security", host: str) -> None:
        if security.tls is not None:
            from ssl import SSLEOFError, SSLError

            try:
                self._socket = security.tls.wrap_socket(self._socket, server_hostname=host)
            except OSError as error:
                words = getattr(error, "verify_message", None) or getattr(error, "reason", error)
                # A broker that stops ends a handshake too, and may be back soon.
                is_final = isinstance(error, SSLError) and not isinstance(error, SSLEOFError)
                kind = NotAuthenticated if is_final else BrokerConnectionError
                raise kind(f"no TLS with {self._address}: {words}") from error
        if security.credentials is not None:
            self._log_in(security.credentials)

    def _renew(self) -> None:
        """Log in again, behind the answers in flight."""
        while self._posted:
            self._received.append(self._receive())
        assert self._credentials is not None, "only a login has a lifetime"
        self._log_in(self._credentials)

    def _log_in(self, credentials: "Credentials") -> None:
        from kraft_wire.login.sasl import LoginFailed, log_in  # most connections need no login

        shaken = self._asked(SaslHandshakeRequest(mechanism=credentials.mechanism))
        assert isinstance(shaken, SaslHandshakeResponse), shaken
        if shaken.error_code:
            offered = ", ".join(shaken.mechanisms) or "none"
            raise NotAuthenticated(f"{self._address} offers the mechanisms {offered}")
        try:
            log_in(credentials, self._token)
        except LoginFailed as error:
            raise NotAuthenticated(f"no login at {self._address}: {error}") from error

    def _token(self, token: bytes) -> bytes:
        from secrets import randbelow

        from kraft_wire.login.session import until_renewal_ms

        asked_s = monotonic()
        answer = self._asked(SaslAuthenticateRequest(auth_bytes=token))
        assert isinstance(answer, SaslAuthenticateResponse), answer
        if answer.error_code:
            words = one_line(answer.error_message or error_name(answer.error_code))
            raise NotAuthenticated(f"no login at {self._address}: {words}")
        renewal_ms = until_renewal_ms(answer.session_lifetime_ms, randbelow)
        self._renews_s = None if renewal_ms is None else asked_s + renewal_ms / 1_000
        return bytes(answer.auth_bytes)

    def _asked(self, request: Message) -> Message:
        self._post(request, _LOGIN_VERSION)
        return self._receive()

    def _learn_versions(self) -> dict[int, tuple[int, int]]:
        for version in (_API_VERSIONS_VERSION, 0):
            request = ApiVersionsRequest(client_software_name="kraft-wire")
            request.client_software_version = "1"
            self._post(request, version)
            answer = self.answer(ApiVersionsResponse)
            if answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
                break
        if answer.error_code:
            name = error_name(answer.error_code)
            raise BrokerConnectionError(f"{self._address} refused ApiVersions: {name}")
        return {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    def _post(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        frame = encode_request_header(header) + request.encode(version)
        try:
            self._socket.sendall(frame_prefix(len(frame)) + frame)
        except OSError as error:
            raise self._lost(error) from error
        self._posted.append(_Posted(self._correlation_id, request, version))

    def _receive(self) -> Message:
        assert self._posted, "no response is outstanding"
        posted = self._posted.popleft()
        try:
            size = int.from_bytes(self._exactly(FRAME_PREFIX_BYTES), "big", signed=True)
            if not _HEADER_BYTES_MIN <= size <= _RESPONSE_BYTES_MAX:
                raise BrokerConnectionError(f"{self._address} does not answer like a Kafka broker")
            data = self._exactly(size)
        except OSError as error:
            raise self._lost(error) from error
        return self._decode(data, posted)

    def _exactly(self, size_bytes: int) -> memoryview:
        """Receive as many bytes, into a buffer of just that size."""
        view = memoryview(bytearray(size_bytes))
        received = 0
        while received < size_bytes:
            count = self._socket.recv_into(view[received:])
            if not count:
                raise BrokerConnectionError(f"{self._address} closed the connection")
            received += count
        return view

    def _decode(self, data: memoryview, posted: _Posted) -> Message:
        request, version = posted.request, posted.version
        try:
            correlation_id, offset = parse_response_header(data, request.API_KEY, version)
            if correlation_id != posted.correlation_id:
                raise BrokerConnectionError(f"{self._address} answered out of order")
            if isinstance(request, ApiVersionsRequest) and data[offset : offset + 2] == _REFUSED:
                version = 0
            answer, _ = response_class(request.API_KEY).decode(data, version, offset)
        except MalformedMessage as error:
            raise BrokerConnectionError(
                f"{self._address} sent a malformed response: {error}"
            ) from error
        return answer

    def _lost(self, error: OSError) -> BrokerConnectionError:
        reason = error.strerror or str(error)
        return BrokerConnectionError(f"lost {self._address}: {reason.lower()}")


def split_address(address: str) -> tuple[str, int]:
    """Split `host`, `host:port` or `[v6]:port`; without a port it is Kafka's 9092."""
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(_PORT_DEFAULT)
    if not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 65_536:
        raise BrokerConnectionError(f"{address} is not an address of the form host:port")
    return host.strip("[]") or "127.0.0.1", int(port)
