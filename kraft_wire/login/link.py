"""The login of a link to another node: SaslHandshake and SaslAuthenticate, before anything else.

Bytes in, bytes out; the link is up for the node when the login is complete. A session of limited
lifetime is not renewed: the peer closes the link at its end, and the node opens another (KIP-368).
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

__all__ = ["LinkLogin"]

_VERSION: Final = 1
_CLIENT_ID: Final = "kraft-wire"


class LinkLogin:
    """One login; `begin`, then `take` each frame of the peer until there is nothing to send."""

    def __init__(self, credentials: Credentials) -> None:
        self._mechanism = credentials.mechanism
        self._dialogue: Dialogue = dialogue(credentials)
        self._has_begun = False
        """Whether the peer has agreed to the mechanism."""

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
            return None
        return _framed(SaslAuthenticateRequest(auth_bytes=token))


def _framed(request: Message) -> bytes:
    header = RequestHeader(request.API_KEY, _VERSION, 0, _CLIENT_ID)
    payload = encode_request_header(header) + request.encode(_VERSION)
    return frame_prefix(len(payload)) + payload
