"""Refusals of requests about delegation tokens that precede the controller's own (KIP-48).

Like Kafka, a broker checks before it forwards: the client's login, its rights, the types of
renewers. The controller checks the first two again, and decides the rest.
"""

from typing import Final

from kraft_wire.apis.registry import key_of
from kraft_wire.broker.context import RequestContext
from kraft_wire.controller.handlers.create_delegation_token import (
    has_other_renewers,
    refused,
)
from kraft_wire.controller.requests import refuse
from kraft_wire.wire.generated.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.expire_delegation_token import ExpireDelegationTokenResponse
from kraft_wire.wire.generated.renew_delegation_token import RenewDelegationTokenResponse
from kraft_wire.wire.message import Message

__all__ = ["CHANGES_OF_TOKENS", "refused_owner", "refused_renewers", "refused_tokens"]

_NO_TIME: Final = -1

CHANGES_OF_TOKENS: Final = frozenset(
    key_of(f"{verb}DelegationToken") for verb in ("Create", "Renew", "Expire")
)
"""Requests that the controller decides."""


def refused_tokens(context: RequestContext, request: Message) -> Message:
    """Return the answer to a client that may not send requests about tokens."""
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if isinstance(request, CreateDelegationTokenRequest):
        return refused(context, request, error)
    answer = refuse(request, error, None)
    assert isinstance(answer, RenewDelegationTokenResponse | ExpireDelegationTokenResponse), answer
    answer.expiry_timestamp_ms = _NO_TIME
    return answer


def refused_owner(request: Message) -> Message | None:
    """Return the refusal of an owner with a name and without a type, None for other requests."""
    if not isinstance(request, CreateDelegationTokenRequest):
        return None
    if not request.owner_principal_name or request.owner_principal_type is not None:
        return None
    return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)


def refused_renewers(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse | None:
    """Return the refusal of renewers with another type than User, None if all are users."""
    if not has_other_renewers(request.renewers):
        return None
    return refused(context, request, ErrorCode.INVALID_PRINCIPAL_TYPE)
