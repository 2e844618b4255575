"""A controller that is asked for delegation tokens, at a clock of the test's."""

from __future__ import annotations

from dataclasses import replace

from kraft_wire.metadata.image import DelegationTokenImage
from kraft_wire.model import Principal
from kraft_wire.wire.generated.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraft_wire.wire.generated.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kraft_wire.wire.generated.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from tests.controller.cluster import OneNodeCluster

__all__ = ["ANN", "BEGIN_MS", "BOB", "LIFE_MS", "LONGEST_MS", "SECRET", "TokenCluster"]

SECRET = "keyed with this"
LIFE_MS, LONGEST_MS = 1_000, 10_000
BEGIN_MS = 1_700_000_000_000
ANN, BOB = Principal("User", "ann"), Principal("User", "bob")
OLD_LEVEL = 13
"""A metadata.version without delegation tokens."""


class TokenCluster(OneNodeCluster):
    """One controller; a token lives for a second, and ten at most."""

    def __init__(self, **settings: str) -> None:
        super().__init__(
            {
                "delegation.token.secret.key": SECRET,
                "delegation.token.expiry.time.ms": str(LIFE_MS),
                "delegation.token.max.lifetime.ms": str(LONGEST_MS),
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )

    def age(self) -> None:
        """Go back to a release without tokens."""
        image = replace(self.controller.image, finalized_features={"metadata.version": OLD_LEVEL})
        self.controller.renounce(self.loader.image)
        self.controller.become_active(
            image, leader_epoch=2, in_transaction=False, bootstrap=(), now_ms=0
        )

    def token(self, token_id: str) -> DelegationTokenImage:
        """Return what the metadata has of a token."""
        return self.loader.image.delegation_tokens[token_id]

    def creates(
        self,
        who: Principal = ANN,
        *renewers: str,
        at_ms: int = BEGIN_MS,
        life_ms: int = -1,
        owner: str = "",
    ) -> CreateDelegationTokenResponse:
        named = [each.partition(":")[::2] for each in renewers]
        request = CreateDelegationTokenRequest(
            owner_principal_type="User" if owner else "",
            owner_principal_name=owner,
            renewers=[CreatableRenewers(principal_type=a, principal_name=b) for a, b in named],
            max_lifetime_ms=life_ms,
        )
        answer = self.ask(request, 3, wall_ms=at_ms, principal=who)
        assert isinstance(answer, CreateDelegationTokenResponse)
        return answer

    def renews(
        self, hmac: bytes | memoryview, who: Principal = ANN, *, at_ms: int, period_ms: int = -1
    ) -> RenewDelegationTokenResponse:
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        answer = self.ask(request, 2, wall_ms=at_ms, principal=who)
        assert isinstance(answer, RenewDelegationTokenResponse)
        return answer

    def expires(
        self, hmac: bytes | memoryview, who: Principal = ANN, *, at_ms: int, period_ms: int = -1
    ) -> ExpireDelegationTokenResponse:
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = self.ask(request, 2, wall_ms=at_ms, principal=who)
        assert isinstance(answer, ExpireDelegationTokenResponse)
        return answer
