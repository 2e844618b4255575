"""The login of one connection: Kafka's SASL frames as a state machine (KIP-43, 152, 368).

Before the login only ApiVersions and SaslHandshake are accepted, by a check of the key first; any
other frame closes the connection without an answer. A failure is answered and closes the connection
after a delay, in which nothing is read. With a limited session the state machine stays: a new
handshake starts a re-authentication, by the same mechanism and user.

Not here: the time limit of a login (`limits`), the delay (the host), mechanisms.
"""

import re
from collections.abc import Callable
from enum import Enum
from struct import Struct
from typing import Final

from kraft_wire.apis.registry import key_of
from kraft_wire.broker.handlers.api_versions import names_itself
from kraft_wire.frozen import frozen
from kraft_wire.model import Principal
from kraft_wire.node.event_log import Line
from kraft_wire.node.outputs import Close, LoggedIn, Output, Peer, RefuseLogin, Rejection, Reply
from kraft_wire.node.requests.decoding import Decoded, RequestDecoder, api_name, refused
from kraft_wire.node.requests.replies import encoded_reply
from kraft_wire.node.security.mechanisms import LoginRefused, Mechanism
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraft_wire.wire.header import RequestHeader

__all__ = ["Login", "LoginRules"]

_HANDSHAKE: Final = key_of("SaslHandshake")
_AUTHENTICATE: Final = key_of("SaslAuthenticate")
_API_VERSIONS: Final = key_of("ApiVersions")
_API_KEY: Final = Struct(">h")
_HEADER_BYTES_MIN: Final = 8
_FIRST_SOFTWARE_VERSION: Final = 3
_RENEWAL_PAUSE_MS: Final = 1_000
"""Least time between the starts of two re-authentications."""


class _State(Enum):
    BEGIN = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake"
    TOKENS = "SaslAuthenticate"
    RAW_TOKENS = "tokens without headers"
    DONE = "logged in, for a limited time"


@frozen
class LoginRules:
    """The login settings of a listener."""

    mechanisms: tuple[str, ...]
    new_mechanism: Callable[[str], Mechanism]
    decoder: RequestDecoder
    session_ms: Callable[[str], int]
    """Lifetime of a login by a mechanism; 0: that of its connection."""
    delay_ms: int
    """Delay between a failure and its answer."""
    note: Callable[[str], None] = lambda _: None
    """Counts an outcome, under its name in Kafka's metrics."""


class Login:
    """The state of one connection; `take` gets each of its frames first."""

    def __init__(self, rules: LoginRules, peer: Peer) -> None:
        self._rules = rules
        self._peer = peer
        self._state = _State.BEGIN
        self._name = ""
        """The exchange of the mechanism that the client has chosen."""
        self._mechanism: Mechanism | None = None
        self._renewed_ms: int | None = None
        """Start of the last re-authentication; the first one may follow the login at once."""
        self._expires_ms: int | None = None
        self.is_over = False
        """Whether the client has logged in, also if the session has ended."""

    def take(self, frame: bytearray, now_ms: int, wall_ms: int) -> list[Output] | None:
        """Return the outputs of a frame; None: it is a request to serve as any other."""
        match self._state:
            case _State.RAW_TOKENS:
                return self._step(bytes(frame), None, now_ms, wall_ms)
            case _State.DONE:
                return self._serve_or_renew(frame, now_ms)
            case _State.TOKENS:
                return self._token(frame, now_ms, wall_ms)
            case _:
                return self._begin(frame, now_ms)

    # -- before a mechanism is chosen ------------------------------------------------------------

    def _begin(self, frame: bytearray, now_ms: int) -> list[Output] | None:
        api_key = _API_KEY.unpack_from(frame)[0] if len(frame) >= _HEADER_BYTES_MIN else -1
        if api_key not in (_HANDSHAKE, _API_VERSIONS):
            return self._end("not_logged_in")
        decoded = self._rules.decoder.decode(frame)
        if isinstance(decoded, Rejection):
            return [Close(self._peer.connection_id, decoded)]
        if api_key == _HANDSHAKE:
            assert isinstance(decoded, tuple), "no other version is answered"
            return self._shake_hands(decoded, now_ms)
        if self._state is _State.HANDSHAKE:
            header = decoded[0] if isinstance(decoded, tuple) else decoded.header
            return [Close(self._peer.connection_id, refused(header, "not_logged_in"))]
        if isinstance(decoded, tuple) and _is_good(decoded):
            self._state = _State.HANDSHAKE
        return None

    def _shake_hands(self, decoded: Decoded, now_ms: int) -> list[Output]:
        header, request, _ = decoded
        assert isinstance(request, SaslHandshakeRequest), request
        response = SaslHandshakeResponse(mechanisms=list(self._rules.mechanisms))
        if request.mechanism not in self._rules.mechanisms:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            answer = encoded_reply(self._peer.connection_id, header, response)
            return self._refuse(answer, f"the mechanism {request.mechanism!a} is not enabled")
        if self.is_over and header.api_version == 0:
            return [Close(self._peer.connection_id, refused(header, "version_not_served"))]
        self._state = _State.TOKENS if header.api_version else _State.RAW_TOKENS
        if self.is_over:
            self._renewed_ms = now_ms
        changes = self.is_over and request.mechanism != self._name
        self._mechanism = None if changes else self._rules.new_mechanism(request.mechanism)
        self._name = self._name if self.is_over else request.mechanism
        return [encoded_reply(self._peer.connection_id, header, response)]

    # -- tokens ----------------------------------------------------------------------------------

    def _token(self, frame: bytearray, now_ms: int, wall_ms: int) -> list[Output]:
        decoded = self._rules.decoder.decode(frame)
        if isinstance(decoded, Rejection):
            return [Close(self._peer.connection_id, decoded)]
        if not isinstance(decoded, tuple) or decoded[0].api_key != _AUTHENTICATE:
            return self._out_of_turn(decoded[0] if isinstance(decoded, tuple) else None)
        header, request, _ = decoded
        assert isinstance(request, SaslAuthenticateRequest), request
        return self._step(bytes(request.auth_bytes), header, now_ms, wall_ms)

    def _out_of_turn(self, header: RequestHeader | None) -> list[Output]:
        """Refuse a request other than a token, with an answer of its own kind if possible."""
        if header is None:
            return self._end("not_logged_in")
        answer = response_class(header.api_key)()
        told = {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "error_message": _unexpected(header)}
        for name, value in told.items():
            if name in answer.field_names:
                setattr(answer, name, value)
        reply = encoded_reply(self._peer.connection_id, header, answer)
        return self._refuse(reply, "another request came before the login was over")

    def _step(
        self, token: bytes, header: RequestHeader | None, now_ms: int, wall_ms: int
    ) -> list[Output]:
        """Pass a token to the mechanism; without a header it is a bare token (KIP-43)."""
        if self._mechanism is None:
            return self._refuse(None, "the mechanism changed in a re-authentication")
        try:
            answer = self._mechanism.step(token, wall_ms)
            if self._mechanism.user is not None:
                self._check_user(self._mechanism.user)
        except LoginRefused as refusal:
            message = refusal.message or self._usual_text()
            return self._refuse(self._refusal(header, message), refusal.reason or message)
        orders: list[Output] = []
        session_ms = 0
        if self._mechanism.user is not None:
            limit_ms = self._limit_ms(self._mechanism.expires_ms, wall_ms)
            self._finish(self._mechanism.user, self._mechanism.by_token, limit_ms, now_ms)
            session_ms = limit_ms or 0
            orders.append(LoggedIn(self._peer.connection_id))
        if header is None:
            size = frame_prefix(len(answer))
            reply = Reply(self._peer.connection_id, [size + answer], len(size) + len(answer))
            return [reply, *orders]
        response = SaslAuthenticateResponse(
            error_message="", auth_bytes=answer, session_lifetime_ms=session_ms
        )
        return [encoded_reply(self._peer.connection_id, header, response), *orders]

    def _check_user(self, user: str) -> None:
        known = self._peer.principal
        if self.is_over and known.name != user:
            raise LoginRefused(
                "Cannot change principals during re-authentication from "
                f"{known.type}.{known.name}: {known.type}.{user}"
            )

    def _usual_text(self) -> str:
        step = "re-authentication" if self.is_over else "authentication"
        return (
            f"Authentication failed during {step} due to invalid credentials with SASL mechanism "
            f"{self._name}"
        )

    def _refusal(self, header: RequestHeader | None, message: str) -> Reply | Close | None:
        if header is None:
            return None
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        response = SaslAuthenticateResponse(error_code=code, error_message=message)
        return encoded_reply(self._peer.connection_id, header, response)

    def _limit_ms(self, expires_ms: int | None, wall_ms: int) -> int | None:
        """Return the session's lifetime, None for that of the connection (KIP-368)."""
        setting_ms = self._rules.session_ms(self._name) or None
        if expires_ms is None:
            return setting_ms
        left_ms = max(0, expires_ms - wall_ms)
        return left_ms if setting_ms is None else min(left_ms, setting_ms)

    def _finish(self, user: str, by_token: bool, limit_ms: int | None, now_ms: int) -> None:
        self._note("successful")
        self._peer.principal = Principal("User", user, by_token)
        self.is_over, self._mechanism = True, None
        if limit_ms is None:
            self._peer.login = None  # its requests are like those of other listeners
        else:
            self._state = _State.DONE
            self._expires_ms = now_ms + (limit_ms or -1)  # nothing is served after the end

    # -- after the login -------------------------------------------------------------------------

    def _serve_or_renew(self, frame: bytearray, now_ms: int) -> list[Output] | None:
        if _API_KEY.unpack_from(frame)[0] == _HANDSHAKE:
            if self._renewed_ms is not None and now_ms - self._renewed_ms < _RENEWAL_PAUSE_MS:
                return None  # the handler says that the client has logged in
            decoded = self._rules.decoder.decode(frame)
            return self._shake_hands(decoded, now_ms) if isinstance(decoded, tuple) else None
        assert self._expires_ms is not None, "a login without an end leaves no machine behind"
        if now_ms > self._expires_ms:
            self._rules.note("expired_connections_killed_count")
            return self._end("session_expired")
        return None

    # -- ends ------------------------------------------------------------------------------------

    def _note(self, outcome: str) -> None:
        self._rules.note(f"{outcome}_{'reauthentication' if self.is_over else 'authentication'}")

    def _end(self, reason: str) -> list[Output]:
        return [Close(self._peer.connection_id, Rejection(reason))]

    def _refuse(self, answer: Reply | Close | None, reason: str) -> list[Output]:
        """Close the connection after the delay; `reason` is for the log."""
        self._note("failed")
        reply = answer if isinstance(answer, Reply) else None
        details = (("mechanism", self._name or "-"), ("detail", Line(reason)))
        rejection = Rejection("authentication_failed", details=details)
        return [RefuseLogin(self._peer.connection_id, reply, rejection, self._rules.delay_ms)]


def _unexpected(header: RequestHeader) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api_name(header.api_key)).upper()
    return f"Unexpected Kafka request of type {name} during SASL authentication."


def _is_good(decoded: Decoded) -> bool:
    """Whether an ApiVersions request is answered without an error."""
    header, request, _ = decoded
    assert isinstance(request, ApiVersionsRequest), request
    return header.api_version < _FIRST_SOFTWARE_VERSION or names_itself(request)
