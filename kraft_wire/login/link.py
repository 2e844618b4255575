"""One login of a link to another node: SaslHandshake and SaslAuthenticate.

Bytes in, bytes out. When a link logs in is decided by `session`.
"""

from typing import Final

from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import Dialogue, LoginFailed, dialogue
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import MalformedMessage, Message

__all__ = ["LOGIN_CORRELATION_ID", "LinkLogin"]

LOGIN_CORRELATION_ID: Final = (1 << 31) - 1
"""Of every frame of a login; no request has it, as answers to requests may come between."""
_VERSION: Final = 1
_CLIENT_ID: Final = "kraft-wire"


class LinkLogin:
    """One login; `begin`, then `take` each frame of the peer until there is nothing to send."""

    def __init__(self, credentials: Credentials) -> None:
        self._mechanism = credentials.mechanism
        self._dialogue: Dialogue = dialogue(credentials)
        self._has_begun = False
        """Whether the peer has agreed to the mechanism."""
        self.lifetime_ms = 0
        """Lifetime of the session, when the login is complete; 0: that of the link."""

    def begin(self) -> bytes:
        """Return the first frame."""
        return _framed(SaslHandshakeRequest(mechanism=self._mechanism))

    def take(self, frame: bytes) -> bytes | None:
        """Return the next frame to send, None when the login is complete.

        Errors: LoginFailed.
        """
        try:
            return self._answer(frame)
        except (MalformedMessage, ValueError) as error:
            raise LoginFailed(f"the peer's answer to a login is none: {error}") from error

    def _answer(self, frame: bytes) -> bytes | None:
        if not self._has_begun:
            _, at = parse_response_header(frame, SaslHandshakeRequest.API_KEY, _VERSION)
            shaken, _ = SaslHandshakeResponse.decode(frame, _VERSION, at)
            if shaken.error_code:
                offered = ", ".join(shaken.mechanisms) or "none"
                raise LoginFailed(f"the peer offers the mechanisms: {offered}")
            self._has_begun = True
            return _framed(SaslAuthenticateRequest(auth_bytes=next(self._dialogue)))
        _, at = parse_response_header(frame, SaslAuthenticateRequest.API_KEY, _VERSION)
        answer, _ = SaslAuthenticateResponse.decode(frame, _VERSION, at)
        if answer.error_code:
            raise LoginFailed(answer.error_message or f"error {answer.error_code}")
        try:
            token = self._dialogue.send(bytes(answer.auth_bytes))
        except StopIteration:
            self.lifetime_ms = answer.session_lifetime_ms
            return None
        return _framed(SaslAuthenticateRequest(auth_bytes=token))


def _framed(request: Message) -> bytes:
    header = RequestHeader(request.API_KEY, _VERSION, LOGIN_CORRELATION_ID, _CLIENT_ID)
    payload = encode_request_header(header) + request.encode(_VERSION)
    return frame_prefix(len(payload)) + payload
