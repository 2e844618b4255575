"""Guards of requests about delegation tokens (KIP-48, KIP-373).

Owners and renewers need no right. Others need one on the token, or on its owner as a user.
"""

from typing import cast

from kraft_wire.controller.handlers.create_delegation_token import owner_of, refused
from kraft_wire.metadata.delegation_tokens import may_describe
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import finishing
from kraft_wire.wire.generated.create_delegation_token import CreateDelegationTokenRequest
from kraft_wire.wire.generated.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)

__all__ = ["create_delegation_token", "describe_delegation_token"]


def create_delegation_token(asked: Asked) -> Verdict:
    """CreateDelegationToken: a right on the owner, if it is not the requester."""
    request = cast("CreateDelegationTokenRequest", asked.request)
    (need,) = asked.needs
    requester = asked.context.principal
    owner = owner_of(request, requester)
    if str(owner) == str(requester) or asked.asker.meets(need, str(owner)):
        return Passed(request)
    return refused(asked.context, request, need.error)


def describe_delegation_token(asked: Asked) -> Verdict:
    """DescribeDelegationToken: leaves out tokens of others without a right on token or owner."""

    def visible(answer: DescribeDelegationTokenResponse) -> DescribeDelegationTokenResponse:
        answer.tokens = [each for each in answer.tokens if _is_visible(asked, each)]
        return answer

    return Passed(asked.request, finishing(DescribeDelegationTokenResponse, visible))


def _is_visible(asked: Asked, token: DescribedDelegationToken) -> bool:
    (need,) = asked.needs
    of_token, of_owner = need.rights
    known = asked.image.delegation_tokens.get(token.token_id)
    if known is not None and may_describe(known, asked.context.principal):
        return True
    owner = f"{token.principal_type}:{token.principal_name}"
    return asked.asker.has(of_token, token.token_id) or asked.asker.has(of_owner, owner)
