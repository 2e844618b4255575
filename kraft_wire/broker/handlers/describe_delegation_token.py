"""DescribeDelegationToken, API key 41, versions 1-3.

Behaviour:   returns the tokens of the named owners, or of all, with their HMACs; an empty list of
             owners means none. Without an authorizer everyone with a login sees all tokens
Versions:    v2 flexible · v3 names who requested a token (KIP-373)
Left out:    nothing
"""

from typing import Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_reader import MetadataReader
from kraft_wire.metadata.delegation_tokens import (
    may_describe,
    may_use_tokens,
    named_principal,
    secret_key,
    token_hmac,
)
from kraft_wire.metadata.image import DelegationTokenImage
from kraft_wire.model import Principal
from kraft_wire.wire.generated.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]

_REQUESTER_FROM: Final = 3
"""First version that names the requester beside the owner."""
_NOBODY: Final = Principal("", "")


def handle(
    broker: MetadataReader, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Describe tokens.

    Errors, first match wins: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (no login, or one by a token),
    DELEGATION_TOKEN_AUTH_DISABLED.
    """
    protocol = broker.listener_protocols.get(context.listener, "PLAINTEXT")
    if not may_use_tokens(context.principal, protocol):
        refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return DescribeDelegationTokenResponse(error_code=refused)
    secret = secret_key(broker.settings.source)
    if secret is None:
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        return DescribeDelegationTokenResponse(error_code=disabled)
    owners = None
    if request.owners is not None:
        owners = [Principal(each.principal_type, each.principal_name) for each in request.owners]
    tokens = broker.image.delegation_tokens
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token_id, tokens[token_id], secret, context.api_version)
            for token_id in sorted(tokens)
            if owners is None or any(may_describe(tokens[token_id], owner) for owner in owners)
        ]
    )


def _described(
    token_id: str, token: DelegationTokenImage, secret: str, version: int
) -> DescribedDelegationToken:
    owner = named_principal(token.owner)
    requester = named_principal(token.requester) if version >= _REQUESTER_FROM else _NOBODY
    renewers = [named_principal(each) for each in token.renewers]
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token_id,
        hmac=token_hmac(secret, token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in renewers
        ],
    )
