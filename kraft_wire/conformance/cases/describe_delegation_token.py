"""DescribeDelegationToken, API key 41: tokens and their HMACs (KIP-48)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.token_clients import needs_no_login
from kraft_wire.wire.generated.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "KIP-48, kafka.server.KafkaApis, handleDescribeTokensRequest"


@case("DescribeDelegationToken", _SOURCE)
def client_without_a_login(broker: Subject, version: int) -> None:
    """A client without a login is refused with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

    Ask for the tokens of all owners, of none and of one.
    """
    needs_no_login(broker)
    one = DescribeDelegationTokenOwner(principal_type="User", principal_name="ANONYMOUS")
    for owners in (None, [], [one]):
        request = DescribeDelegationTokenRequest(owners=owners)
        answer = broker.ask(request, version, DescribeDelegationTokenResponse)
        expect.error(answer, "error_code", ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        expect.equal(answer, "tokens", [])
