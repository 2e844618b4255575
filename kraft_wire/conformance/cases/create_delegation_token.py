"""CreateDelegationToken, API key 38: a client has a token made (KIP-48)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.token_clients import needs_no_login
from kraft_wire.wire.generated.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "KIP-48, kafka.server.KafkaApis, handleCreateTokenRequest"


@case("CreateDelegationToken", _SOURCE)
def client_without_a_login(broker: Subject, version: int) -> None:
    """A client without a login is refused with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

    Ask for a token: without renewers, with a user and with a group as renewers.
    """
    needs_no_login(broker)
    for kind in (None, "User", "Group"):
        renewers = [CreatableRenewers(principal_type=kind, principal_name="a")] if kind else []
        request = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1)
        answer = broker.ask(request, version, CreateDelegationTokenResponse)
        expect.error(answer, "error_code", ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        expect.equal(answer, "principal_type", "User")
        expect.equal(answer, "principal_name", "ANONYMOUS")
        expect.equal(answer, "token_id", "")
        expect.equal(answer, "hmac", b"")
