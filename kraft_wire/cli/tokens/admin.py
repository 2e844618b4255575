"""Requests about delegation tokens (KIP-48, KIP-373)."""

from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple

from kraft_wire.client import BrokerConnection
from kraft_wire.client.refused import AdminRefused
from kraft_wire.model import Principal
from kraft_wire.wire.generated.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraft_wire.wire.generated.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kraft_wire.wire.generated.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kraft_wire.wire.generated.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

__all__ = ["Token", "create_token", "described_tokens", "expire_token", "renew_token"]


class Token(NamedTuple):
    """A token with its secret."""

    token_id: str
    hmac: str
    """In base64, as clients use it for a password."""
    owner: str
    requester: str
    renewers: list[str]
    issued_ms: int
    expires_ms: int
    max_ms: int


def create_token(
    connection: BrokerConnection,
    renewers: Sequence[Principal],
    owner: Principal | None,
    life_ms: int,
) -> Token:
    """Ask for a token of the user of the connection, or of another owner."""
    request = CreateDelegationTokenRequest(
        owner_principal_type="" if owner is None else owner.type,
        owner_principal_name="" if owner is None else owner.name,
        renewers=[
            CreatableRenewers(principal_type=each.type, principal_name=each.name)
            for each in renewers
        ],
        max_lifetime_ms=life_ms,
    )
    made = connection.send(request, CreateDelegationTokenResponse)
    _check(made.error_code)
    return Token(
        made.token_id,
        b64encode(made.hmac).decode(),
        f"{made.principal_type}:{made.principal_name}",
        f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
        list(map(str, renewers)),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


def described_tokens(
    connection: BrokerConnection, owners: Sequence[Principal] | None
) -> list[Token]:
    """Return the visible tokens of owners, None for all, by time of issue."""
    named = [
        DescribeDelegationTokenOwner(principal_type=each.type, principal_name=each.name)
        for each in owners or ()
    ]
    request = DescribeDelegationTokenRequest(owners=None if owners is None else named)
    answer = connection.send(request, DescribeDelegationTokenResponse)
    _check(answer.error_code)
    found = [
        Token(
            each.token_id,
            b64encode(each.hmac).decode(),
            f"{each.principal_type}:{each.principal_name}",
            f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
            [f"{one.principal_type}:{one.principal_name}" for one in each.renewers],
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
        )
        for each in answer.tokens
    ]
    return sorted(found, key=lambda each: (each.issued_ms, each.token_id))


def renew_token(connection: BrokerConnection, hmac: bytes, period_ms: int) -> int:
    """Move the end of a token; return it."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    answer = connection.send(request, RenewDelegationTokenResponse)
    _check(answer.error_code)
    return answer.expiry_timestamp_ms


def expire_token(connection: BrokerConnection, hmac: bytes, period_ms: int) -> int:
    """End a token after a period, at once if it is negative; return the end."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    answer = connection.send(request, ExpireDelegationTokenResponse)
    _check(answer.error_code)
    return answer.expiry_timestamp_ms


def _check(error_code: int) -> None:
    """Raise AdminRefused for an error; its message has no HMAC."""
    if error_code:
        raise AdminRefused("token", error_code, None)
