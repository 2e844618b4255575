"""RenewDelegationToken: who may, and until when."""

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.controller.tokens import ANN, BEGIN_MS, BOB, LIFE_MS, LONGEST_MS, TokenCluster

LATER_MS = BEGIN_MS + 500


@pytest.mark.parametrize("period_ms", [-1, 0, 2**63 - 1])
def test_end_moves_by_the_default_unless_less_is_asked(period_ms: int) -> None:
    """SEC-TOKEN-06, SEC-TOKEN-07."""
    cluster = TokenCluster()
    made = cluster.creates(ANN, "User:bob")
    renewed = cluster.renews(made.hmac, BOB, at_ms=LATER_MS, period_ms=period_ms)
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, LATER_MS + LIFE_MS)
    shorter = cluster.renews(made.hmac, at_ms=LATER_MS, period_ms=7)
    assert shorter.expiry_timestamp_ms == LATER_MS + 7
    token = cluster.token(made.token_id)
    assert token.expiration_timestamp == LATER_MS + 7
    assert (token.issue_timestamp, token.max_timestamp) == (BEGIN_MS, BEGIN_MS + LONGEST_MS)


def test_no_renewal_passes_the_longest_life() -> None:
    """SEC-TOKEN-06."""
    cluster = TokenCluster()
    made = cluster.creates(life_ms=1_200)
    renewed = cluster.renews(made.hmac, at_ms=LATER_MS)
    assert renewed.expiry_timestamp_ms == BEGIN_MS + 1_200
    at_the_end = cluster.renews(made.hmac, at_ms=BEGIN_MS + 1_200)
    assert at_the_end.error_code == ErrorCode.NONE
    after = cluster.renews(made.hmac, at_ms=BEGIN_MS + 1_201)
    assert after.error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_requester_for_another_owner_may_not_renew() -> None:
    """SEC-TOKEN-07: only owner and renewers."""
    cluster = TokenCluster()
    made = cluster.creates(ANN, owner="bob")
    assert cluster.renews(made.hmac, BOB, at_ms=LATER_MS).error_code == 0
    refused = cluster.renews(made.hmac, ANN, at_ms=LATER_MS)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert refused.expiry_timestamp_ms == 0


@pytest.mark.parametrize("part", [slice(0, 63), slice(1, 64), slice(0, 0)])
def test_part_of_an_hmac_finds_nothing(part: slice) -> None:
    """SEC-TOKEN-07."""
    cluster = TokenCluster()
    made = cluster.creates()
    found = cluster.renews(bytes(made.hmac)[part], at_ms=BEGIN_MS)
    assert found.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_errors_in_order() -> None:
    """SEC-TOKEN-01, SEC-TOKEN-07."""
    late_ms = BEGIN_MS + LIFE_MS + 1

    def error(cluster: TokenCluster, hmac: bytes | memoryview, at_ms: int = late_ms) -> int:
        return cluster.renews(hmac, BOB, at_ms=at_ms).error_code

    off = TokenCluster(delegation_token_secret_key="")
    off.age()
    assert error(off, b"none") == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    old = TokenCluster()
    old.age()
    assert error(old, b"none") == ErrorCode.UNSUPPORTED_VERSION
    new = TokenCluster()
    made = new.creates()
    wrong = bytearray(made.hmac)
    wrong[-1] ^= 1
    assert error(new, bytes(wrong)) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert error(new, made.hmac) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert error(new, made.hmac, BEGIN_MS) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert new.renews(made.hmac, at_ms=BEGIN_MS).error_code == ErrorCode.NONE
