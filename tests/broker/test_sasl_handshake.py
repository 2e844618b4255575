"""SaslHandshake on a listener without logins; `tests/node/security` tests logins."""

from kraft_wire.broker.handlers.sasl_handshake import handle
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.broker.small_broker import context, image_of, small_broker


def test_a_connection_without_a_login_is_told_its_state() -> None:
    """SEC-SASL-18: ILLEGAL_SASL_STATE and no mechanisms, in both versions."""
    for version in (0, 1):
        request = SaslHandshakeRequest(mechanism="PLAIN")
        body = handle(small_broker(image_of({})), context(version), request).encode(version)
        answer, _ = SaslHandshakeResponse.decode(body, version)
        assert (answer.error_code, answer.mechanisms) == (34, [])
