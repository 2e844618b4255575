"""One raw connection to the broker under judgment: bytes out, frames in, and all of it kept.

It takes nothing for granted: a response must carry the right correlation id, be decodable in the
version that was asked with, and end where its frame ends. Requests may be bytes that no encoder
would write.
"""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from kraft_wire.conformance.verdict import ConnectionClosed, Exchange, Mismatch
from kraft_wire.login.client_config import Credentials, Security
from kraft_wire.login.sasl import LoginFailed, log_in
from kraft_wire.wire.frame import FRAME_PREFIX_BYTES, FrameReader, MalformedFrame, frame_prefix
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import MalformedMessage, Message

__all__ = ["CLIENT_ID", "Connection", "split_address"]

R = TypeVar("R", bound=Message)

_CHUNK_BYTES: Final = 64 * 1024
_FRAME_BYTES_MAX: Final = 128 * 1024 * 1024
_PLAINTEXT: Final = Security()
_HANDSHAKE_VERSION: Final = 1
_AUTHENTICATE_VERSION: Final = 1
CLIENT_ID: Final = "kraft-wire-conformance"


class Connection:
    """A connection with a time limit on each wait; `keep` is handed every exchange."""

    def __init__(
        self,
        address: tuple[str, int],
        timeout_s: float,
        keep: Callable[[Exchange], None],
        security: Security = _PLAINTEXT,
    ) -> None:
        """Connect, and log in where `security` has credentials; raises OSError."""
        self._socket = _opened(address, timeout_s, security)
        self._timeout_s = timeout_s
        self._keep = keep if security.credentials is None else _forget
        self._reader = FrameReader(_FRAME_BYTES_MAX)
        self._frames: list[bytes] = []
        self._correlation_id = 0
        if security.credentials is not None:
            self._log_in(security.credentials)
            self._keep, self._correlation_id = keep, 0

    def _log_in(self, credentials: Credentials) -> None:
        """Log in by SASL; nothing of it is kept. Raises LoginFailed."""
        try:
            request = SaslHandshakeRequest(mechanism=credentials.mechanism)
            shaken = self.ask(request, _HANDSHAKE_VERSION, SaslHandshakeResponse)
            if shaken.error_code:
                offered = ", ".join(shaken.mechanisms) or "none"
                raise LoginFailed(f"the broker offers the mechanisms: {offered}")
            log_in(credentials, self._sent_token)
        except Mismatch as error:
            self.close()
            raise LoginFailed(f"the broker ended the login: {error}") from error
        except LoginFailed:
            self.close()
            raise

    def _sent_token(self, token: bytes) -> bytes:
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = self.ask(request, _AUTHENTICATE_VERSION, SaslAuthenticateResponse)
        if answer.error_code:
            raise LoginFailed(answer.error_message or f"error {answer.error_code}")
        return bytes(answer.auth_bytes)

    def ask(self, request: Message, version: int, response: type[R]) -> R:
        """Send a request and return its response. Errors: Mismatch without a proper one."""
        payload, header = self.encoded(request, version)
        return self.ask_bytes(payload, header, response)

    def ask_as(self, client_id: str | None, request: Message, version: int, response: type[R]) -> R:
        """As `ask`, in the name of another client."""
        payload, header = self.encoded(request, version, client_id)
        return self.ask_bytes(payload, header, response)

    def encoded(
        self, request: Message, version: int, client_id: str | None = CLIENT_ID
    ) -> tuple[bytes, RequestHeader]:
        """Return header and body of a request as bytes, and the header."""
        header = self.header(request.API_KEY, version, client_id)
        return encode_request_header(header) + request.encode(version), header

    def tell(self, request: Message, version: int) -> None:
        """Send a request that gets no response."""
        payload, header = self.encoded(request, version)
        self._keep(Exchange(header.api_key, version, _framed(payload), None))
        self.send_frame(payload)

    def ask_bytes(self, payload: bytes, header: RequestHeader, response: type[R]) -> R:
        """Send a header and body as they are, and return the response to `header`."""
        self.send_frame(payload)
        return self.response(payload, header, response)

    def response(self, payload: bytes, header: RequestHeader, response: type[R]) -> R:
        """Return the next response, which must belong to a request that was sent before."""
        frame = self.next_frame()
        received = None if frame is None else _framed(frame)
        self._keep(Exchange(header.api_key, header.api_version, _framed(payload), received))
        if frame is None:
            raise ConnectionClosed(f"a {response.NAME}")
        return _decoded(frame, header, response)

    def header(
        self, api_key: int, version: int, client_id: str | None = CLIENT_ID
    ) -> RequestHeader:
        """Return a header with the next correlation id."""
        self._correlation_id += 1
        return RequestHeader(api_key, version, self._correlation_id, client_id)

    def send_frame(self, payload: bytes) -> None:
        """Write bytes behind their length."""
        self.send(_framed(payload))

    def send(self, data: bytes) -> None:
        """Write bytes as they are; a connection that the broker has closed takes them silently."""
        with suppress(ConnectionError, ssl.SSLEOFError):
            self._socket.sendall(data)

    def next_frame(self) -> bytes | None:
        """Return the next frame without its length, None if the broker closed the connection.

        Errors: Mismatch if neither happens in time.
        """
        while not self._frames:
            try:
                chunk = self._socket.recv(_CHUNK_BYTES)
                self._frames = self._reader.feed(chunk)
            except (ConnectionError, ssl.SSLEOFError):
                return None
            except TimeoutError as error:
                wait = f"nothing within {self._timeout_s:g} s"
                raise Mismatch("a response, or a closed connection", wait) from error
            except MalformedFrame as error:
                raise Mismatch("a frame", str(error)) from error
            if not chunk:
                return None
        return self._frames.pop(0)

    def is_silent(self, seconds: float) -> bool:
        """Return whether neither a frame nor the end of the connection comes within `seconds`."""
        assert not self._frames, "a frame was not read yet"
        self._socket.settimeout(seconds)
        try:
            self._frames = self._reader.feed(chunk := self._socket.recv(_CHUNK_BYTES))
        except TimeoutError:
            return True
        except (ConnectionError, ssl.SSLEOFError):
            return False
        finally:
            self._socket.settimeout(self._timeout_s)
        return bool(chunk) and not self._frames

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def _forget(_: Exchange) -> None:
    """Keep nothing."""


def _opened(address: tuple[str, int], timeout_s: float, security: Security) -> socket.socket:
    opened = socket.create_connection(address, timeout=timeout_s)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if security.tls is None:
        return opened
    try:
        return security.tls.wrap_socket(opened, server_hostname=address[0])
    except OSError:
        opened.close()
        raise


def split_address(text: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[host]:port`; raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _framed(payload: bytes) -> bytes:
    return frame_prefix(len(payload)) + payload


def _decoded(frame: bytes, header: RequestHeader, response: type[R]) -> R:
    try:
        correlation_id, at = parse_response_header(frame, header.api_key, header.api_version)
        if correlation_id != header.correlation_id:
            wanted, seen = str(header.correlation_id), str(correlation_id)
            raise Mismatch(wanted, seen, "header.correlation_id")
        message, end = response.decode(frame, header.api_version, at)
    except MalformedMessage as error:
        raise Mismatch(f"a {response.NAME}", f"a malformed frame: {error}") from error
    if end != len(frame):
        rest = len(frame) - end
        raise Mismatch(f"the end of the frame at byte {end + FRAME_PREFIX_BYTES}", f"{rest} more")
    return message
