"""SaslAuthenticate where the login is over; logins are in `tests/node/security`."""

from kraft_wire.broker.handlers.sasl_authenticate import handle
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tests.broker.small_broker import context, image_of, small_broker


def test_a_token_after_the_login_is_told_so() -> None:
    """SEC-SASL-18: ILLEGAL_SASL_STATE in Kafka's words, in every version."""
    for version in (0, 1, 2):
        request = SaslAuthenticateRequest(auth_bytes=b"\0ann\0x")
        body = handle(small_broker(image_of({})), context(version), request).encode(version)
        answer, _ = SaslAuthenticateResponse.decode(body, version)
        words = "SaslAuthenticate request received after successful authentication"
        assert (answer.error_code, answer.error_message) == (34, words)
        assert (bytes(answer.auth_bytes), answer.session_lifetime_ms) == (b"", 0)
