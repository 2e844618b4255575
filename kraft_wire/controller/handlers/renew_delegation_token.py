"""RenewDelegationToken, API key 39, versions 1-2.

Behaviour:   moves the end of a token, within its longest life, for its owner and its renewers
Versions:    v2 flexible
Left out:    nothing
"""

from dataclasses import replace

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.delegation_tokens import (
    DEFAULT_LIFE_KEY,
    check_owner,
    check_time,
    found_token,
    later,
)
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image_records import token_record
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: RenewDelegationTokenRequest
) -> ControllerResult:
    """Renew a token.

    Errors, first match wins: DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION
    (metadata.version), DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED,
    DELEGATION_TOKEN_OWNER_MISMATCH.
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    try:
        token_id, token = found_token(controller, bytes(request.hmac))
        check_time(token, context)
        check_owner(token, context)
    except Refusal as refusal:
        return ControllerResult(RenewDelegationTokenResponse(error_code=refusal.error))
    period_ms = controller.settings.integer(DEFAULT_LIFE_KEY)
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    ends_ms = min(token.max_timestamp, later(context.wall_ms, period_ms))
    renewed = replace(token, expiration_timestamp=ends_ms)
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=ends_ms)
    assert ends_ms <= token.max_timestamp, (token, ends_ms)
    return ControllerResult(response, [token_record(token_id, renewed)])


def refuse(
    request: RenewDelegationTokenRequest, error: ErrorCode, message: str | None
) -> RenewDelegationTokenResponse:
    """Return the answer that refuses the request; it has no error message."""
    assert error is not ErrorCode.NONE
    return RenewDelegationTokenResponse(error_code=error)
