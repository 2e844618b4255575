"""Steps that the handlers of delegation tokens share (KIP-48, KIP-900).

The controller only answers to owners and renewers; an authorizer has no part in that, and super
users have no exception.
"""

from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.delegation_tokens import find_token, is_expired, may_renew, secret_key
from kraft_wire.metadata.features import TOKENS_FROM
from kraft_wire.metadata.image import DelegationTokenImage
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["DEFAULT_LIFE_KEY", "check_enabled", "check_owner", "check_time", "found_token", "later"]

DEFAULT_LIFE_KEY: Final = "delegation.token.expiry.time.ms"
_TIME_MAX_MS: Final = 2**63 - 1


def check_enabled(controller: Controller) -> str:
    """Return the key of all tokens.

    Refusals: DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION (metadata.version).
    """
    assert controller.is_active, "others answer NOT_CONTROLLER"
    secret = secret_key(controller.settings)
    if secret is None:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, None)
    if controller.image.metadata_version < TOKENS_FROM:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, None)
    return secret


def found_token(controller: Controller, hmac: bytes) -> tuple[str, DelegationTokenImage]:
    """Return a token with its id.

    Refusals: those of `check_enabled`, DELEGATION_TOKEN_NOT_FOUND.
    """
    token_id = find_token(controller.image, check_enabled(controller), hmac)
    if token_id is None:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, None)
    assert token_id in controller.image.delegation_tokens, token_id
    return token_id, controller.image.delegation_tokens[token_id]


def check_time(token: DelegationTokenImage, context: ControllerContext) -> None:
    """Refuse an expired token: DELEGATION_TOKEN_EXPIRED."""
    if is_expired(token, context.wall_ms):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_EXPIRED, None)


def check_owner(token: DelegationTokenImage, context: ControllerContext) -> None:
    """Refuse all but owner and renewers: DELEGATION_TOKEN_OWNER_MISMATCH."""
    assert context.wall_ms >= 0, context
    if not may_renew(token, context.principal):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, None)


def later(wall_ms: int, period_ms: int) -> int:
    """Return the time after a period, at most the last one that a record can have."""
    assert period_ms >= 0, period_ms
    return min(wall_ms + period_ms, _TIME_MAX_MS)
