"""ExpireDelegationToken, API key 40: a token is ended (KIP-48)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.token_clients import needs_no_login
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

_SOURCE: Final = "KIP-48, kafka.server.KafkaApis, handleExpireTokenRequest"
_HMAC: Final = b"made-up"


@case("ExpireDelegationToken", _SOURCE)
def client_without_a_login(broker: Subject, version: int) -> None:
    """A client without a login is refused with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

    End a token that does not exist.
    """
    needs_no_login(broker)
    request = ExpireDelegationTokenRequest(hmac=_HMAC, expiry_time_period_ms=-1)
    answer = broker.ask(request, version, ExpireDelegationTokenResponse)
    expect.error(answer, "error_code", ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    expect.equal(answer, "expiry_timestamp_ms", -1)
