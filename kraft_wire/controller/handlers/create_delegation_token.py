"""CreateDelegationToken, API key 38, versions 1-3.

Behaviour:   records a token for its owner, who may be another principal than the requester, and
             returns its HMAC, which is in no record
Versions:    v2 flexible · v3 another owner (KIP-373)
Left out:    nothing
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.delegation_tokens import DEFAULT_LIFE_KEY, check_enabled, later
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.delegation_tokens import token_hmac
from kraft_wire.metadata.image import DelegationTokenImage
from kraft_wire.metadata.image_records import token_record
from kraft_wire.model import ANONYMOUS, Principal, random_uuid, uuid_to_text
from kraft_wire.wire.generated.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "has_other_renewers", "owner_of", "refuse", "refused"]

_LIFE_MAX_KEY: Final = "delegation.token.max.lifetime.ms"
_NO_TIME: Final = -1
_REQUESTER_FROM: Final = 3
"""First version that names the requester beside the owner."""


def handle(
    controller: Controller, context: ControllerContext, request: CreateDelegationTokenRequest
) -> ControllerResult:
    """Record a token.

    Errors, first match wins: DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION
    (metadata.version), INVALID_PRINCIPAL_TYPE (of a renewer).
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    owner = owner_of(request, context.principal)
    response = _answer(owner, context)
    try:
        secret = check_enabled(controller)
        if has_other_renewers(request.renewers):
            raise Refusal(ErrorCode.INVALID_PRINCIPAL_TYPE, None)
    except Refusal as refusal:
        response.error_code = refusal.error
        return ControllerResult(response)
    token = _token(controller, context, request, owner)
    response.token_id = uuid_to_text(random_uuid(controller.random_source))
    response.hmac = token_hmac(secret, response.token_id)
    response.issue_timestamp_ms = token.issue_timestamp
    response.expiry_timestamp_ms = token.expiration_timestamp
    response.max_timestamp_ms = token.max_timestamp
    return ControllerResult(response, [token_record(response.token_id, token)])


def refuse(
    request: CreateDelegationTokenRequest, error: ErrorCode, message: str | None
) -> CreateDelegationTokenResponse:
    """Return the answer that refuses the whole request. It names ANONYMOUS, as in Kafka."""
    response = CreateDelegationTokenResponse(
        principal_type=ANONYMOUS.type, principal_name=ANONYMOUS.name
    )
    return _without_times(response, error)


def refused(
    context: ControllerContext, request: CreateDelegationTokenRequest, error: ErrorCode
) -> CreateDelegationTokenResponse:
    """Return the answer that refuses a known requester before the controller is asked."""
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    owner = owner_of(request, context.principal)
    return _without_times(_answer(owner, context), error)


def owner_of(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Return the owner of the token: without a name it is the requester."""
    if not request.owner_principal_name:
        return requester
    owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    assert not owner.token_authenticated, "an owner does not log in here"
    return owner


def has_other_renewers(renewers: Sequence[CreatableRenewers]) -> bool:
    """Return whether a renewer has another type than User."""
    return any(each.principal_type != ANONYMOUS.type for each in renewers)


def _answer(owner: Principal, context: ControllerContext) -> CreateDelegationTokenResponse:
    response = CreateDelegationTokenResponse(principal_type=owner.type, principal_name=owner.name)
    if context.api_version >= _REQUESTER_FROM:
        response.token_requester_principal_type = context.principal.type
        response.token_requester_principal_name = context.principal.name
    return response


def _without_times(
    response: CreateDelegationTokenResponse, error: ErrorCode
) -> CreateDelegationTokenResponse:
    assert error is not ErrorCode.NONE
    response.error_code = error
    response.issue_timestamp_ms = response.expiry_timestamp_ms = _NO_TIME
    response.max_timestamp_ms = _NO_TIME
    return response


def _token(
    controller: Controller,
    context: ControllerContext,
    request: CreateDelegationTokenRequest,
    owner: Principal,
) -> DelegationTokenImage:
    settings, wall_ms = controller.settings, context.wall_ms
    life_ms = settings.integer(_LIFE_MAX_KEY)
    if request.max_lifetime_ms > 0:
        life_ms = min(life_ms, request.max_lifetime_ms)
    max_ms = later(wall_ms, life_ms)
    assert max_ms >= wall_ms, (wall_ms, life_ms)
    return DelegationTokenImage(
        owner=str(owner),
        requester=str(context.principal),
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issue_timestamp=wall_ms,
        max_timestamp=max_ms,
        expiration_timestamp=min(max_ms, later(wall_ms, settings.integer(DEFAULT_LIFE_KEY))),
    )
