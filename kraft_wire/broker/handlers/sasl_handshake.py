"""SaslHandshake, API key 17, versions 0-1.

Behaviour:   ILLEGAL_SASL_STATE without mechanisms, after a login and on listeners without one;
             the connection stays open (KIP-43, KIP-152). `node/security/login` handles the
             handshake of a login
Versions:    v0 and v1 are equal
Left out:    nothing
"""

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraft_wire.wire.message import Message

__all__ = ["handle"]


def handle(broker: Broker, context: RequestContext, request: SaslHandshakeRequest) -> Message:
    """Refuse: there is no login to begin."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
