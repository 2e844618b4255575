"""ExpireDelegationToken: an earlier end, a later one, or none at all."""

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.controller.tokens import ANN, BEGIN_MS, BOB, LIFE_MS, LONGEST_MS, TokenCluster

LATER_MS = BEGIN_MS + 500


def test_negative_period_removes_a_token_at_once() -> None:
    """SEC-TOKEN-08: an expired one too."""
    cluster = TokenCluster()
    for at_ms in (LATER_MS, BEGIN_MS + LONGEST_MS + 1):
        made = cluster.creates(ANN, "User:bob")
        ended = cluster.expires(made.hmac, BOB, at_ms=at_ms, period_ms=-7)
        assert (ended.error_code, ended.expiry_timestamp_ms) == (0, at_ms)
        assert not cluster.loader.image.delegation_tokens


def test_period_is_bounded_by_the_longest_life_alone() -> None:
    """SEC-TOKEN-08: min(max, now + period), whatever `expiry.time.ms`."""
    cluster = TokenCluster()
    made = cluster.creates()
    for period_ms, ends_ms in (
        (0, LATER_MS),
        (LIFE_MS * 3, LATER_MS + LIFE_MS * 3),
        (2**63 - 1, BEGIN_MS + LONGEST_MS),
    ):
        ended = cluster.expires(made.hmac, at_ms=LATER_MS, period_ms=period_ms)
        assert (ended.error_code, ended.expiry_timestamp_ms) == (0, ends_ms)
        assert cluster.token(made.token_id).expiration_timestamp == ends_ms


def test_errors_in_order() -> None:
    """SEC-TOKEN-01, SEC-TOKEN-08."""
    late_ms = BEGIN_MS + LIFE_MS + 1

    def error(cluster: TokenCluster, hmac: bytes | memoryview) -> int:
        return cluster.expires(hmac, BOB, at_ms=late_ms, period_ms=1).error_code

    off = TokenCluster(delegation_token_secret_key="")
    off.age()
    assert error(off, b"none") == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    old = TokenCluster()
    old.age()
    assert error(old, b"none") == ErrorCode.UNSUPPORTED_VERSION
    new = TokenCluster()
    made = new.creates()
    assert error(new, b"none") == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert error(new, made.hmac) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    ended = new.expires(made.hmac, at_ms=late_ms, period_ms=1)
    assert ended.error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert new.expires(made.hmac, at_ms=late_ms).error_code == ErrorCode.NONE
