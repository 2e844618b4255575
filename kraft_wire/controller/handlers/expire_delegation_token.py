"""ExpireDelegationToken, API key 40, versions 1-2.

Behaviour:   moves the end of a token, within its longest life, or removes it at once if the period
             is negative, for its owner and its renewers
Versions:    v2 flexible
Left out:    nothing
"""

from dataclasses import replace

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.delegation_tokens import check_owner, check_time, found_token, later
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image_records import token_record
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kraft_wire.wire.generated.remove_delegation_token_record import RemoveDelegationTokenRecord

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: ExpireDelegationTokenRequest
) -> ControllerResult:
    """End a token.

    Errors, first match wins: DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION
    (metadata.version), DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_OWNER_MISMATCH,
    DELEGATION_TOKEN_EXPIRED (unless it is removed).
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    is_removed = request.expiry_time_period_ms < 0
    try:
        token_id, token = found_token(controller, bytes(request.hmac))
        check_owner(token, context)
        if not is_removed:
            check_time(token, context)
    except Refusal as refusal:
        return ControllerResult(ExpireDelegationTokenResponse(error_code=refusal.error))
    if is_removed:
        response = ExpireDelegationTokenResponse(expiry_timestamp_ms=context.wall_ms)
        removal = RemoveDelegationTokenRecord(token_id=token_id)
        return ControllerResult(response, [VersionedRecord(removal)])
    ends_ms = min(token.max_timestamp, later(context.wall_ms, request.expiry_time_period_ms))
    ended = replace(token, expiration_timestamp=ends_ms)
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=ends_ms)
    assert ends_ms <= token.max_timestamp, (token, ends_ms)
    return ControllerResult(response, [token_record(token_id, ended)])


def refuse(
    request: ExpireDelegationTokenRequest, error: ErrorCode, message: str | None
) -> ExpireDelegationTokenResponse:
    """Return the answer that refuses the request; it has no error message."""
    assert error is not ErrorCode.NONE
    return ExpireDelegationTokenResponse(error_code=error)
