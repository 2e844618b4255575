"""SaslAuthenticate, API key 36, versions 0-2.

Behaviour:   ILLEGAL_SASL_STATE, after a login and on listeners without one; the connection stays
             open (KIP-152). `node/security/login` handles the tokens of a login
Versions:    v1 session lifetime (KIP-368), which is 0 here
Left out:    nothing
"""

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["handle"]

_MESSAGE = "SaslAuthenticate request received after successful authentication"


def handle(broker: Broker, context: RequestContext, request: SaslAuthenticateRequest) -> Message:
    """Refuse: the login is over."""
    code = ErrorCode.ILLEGAL_SASL_STATE
    return SaslAuthenticateResponse(error_code=code, error_message=_MESSAGE)
