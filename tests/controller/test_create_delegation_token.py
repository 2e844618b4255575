"""CreateDelegationToken: whose token, until when, and what is recorded of it."""

import hmac

import pytest

from kraft_wire.metadata.records import encode_record
from kraft_wire.model import Principal
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.controller.tokens import (
    ANN,
    BEGIN_MS,
    BOB,
    LIFE_MS,
    LONGEST_MS,
    SECRET,
    TokenCluster,
)


def test_hmac_is_that_of_the_id_and_stands_in_no_record() -> None:
    """SEC-TOKEN-02, SEC-TOKEN-12: HMAC-SHA512 of 22 characters."""
    cluster = TokenCluster()
    made = cluster.creates(ANN, "User:bob")
    assert made.error_code == 0
    assert len(made.token_id) == 22
    expected = hmac.new(SECRET.encode(), made.token_id.encode(), "sha512").digest()
    assert made.hmac == expected
    cluster.renews(made.hmac, at_ms=BEGIN_MS)
    cluster.expires(made.hmac, at_ms=BEGIN_MS)
    written = b"".join(encode_record(each) for each in cluster.committed)
    assert written.count(made.token_id.encode()) == 3
    assert expected not in written
    assert SECRET.encode() not in written


def test_token_is_recorded_with_its_owner_requester_and_renewers() -> None:
    """SEC-TOKEN-12: principals as `Type:name`."""
    cluster = TokenCluster()
    made = cluster.creates(ANN, "User:eve", "User:a:b", owner="bob")
    token = cluster.token(made.token_id)
    assert (token.owner, token.requester) == ("User:bob", "User:ann")
    assert token.renewers == ("User:eve", "User:a:b")
    named = made.principal_name, made.token_requester_principal_name
    assert named == ("bob", "ann")


@pytest.mark.parametrize("who", [Principal("User", ""), Principal("", "ann"), Principal("", "")])
def test_a_forwarded_principal_may_have_no_type_or_name(who: Principal) -> None:
    """An envelope of any peer may say so; 4.3.1 takes it as it is."""
    cluster = TokenCluster()
    made = cluster.creates(who)
    assert (made.error_code, made.principal_type, made.principal_name) == (0, *who[:2])
    assert cluster.renews(made.hmac, who, at_ms=BEGIN_MS).error_code == ErrorCode.NONE
    assert cluster.expires(made.hmac, who, at_ms=BEGIN_MS).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("asked_ms", "longest_ms"),
    [(-1, LONGEST_MS), (0, LONGEST_MS), (5_000, 5_000), (500, 500), (2**63 - 1, LONGEST_MS)],
)
def test_times_are_bounded_by_the_settings(asked_ms: int, longest_ms: int) -> None:
    """SEC-TOKEN-06."""
    made = TokenCluster().creates(life_ms=asked_ms)
    assert made.issue_timestamp_ms == BEGIN_MS
    assert made.max_timestamp_ms == BEGIN_MS + longest_ms
    assert made.expiry_timestamp_ms == BEGIN_MS + min(LIFE_MS, longest_ms)


def test_times_do_not_pass_the_end_of_time() -> None:
    """SEC-TOKEN-06: a setting may be as long as a number can be."""
    forever = str(2**63 - 1)
    cluster = TokenCluster(
        delegation_token_max_lifetime_ms=forever, delegation_token_expiry_time_ms=forever
    )
    made = cluster.creates()
    assert made.max_timestamp_ms == made.expiry_timestamp_ms == 2**63 - 1


def test_empty_key_switches_tokens_off() -> None:
    """SEC-TOKEN-01."""
    cluster = TokenCluster(delegation_token_secret_key="")
    assert cluster.creates().error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert TokenCluster().creates(BOB).error_code == 0


def test_errors_in_order() -> None:
    """SEC-TOKEN-01, SEC-TOKEN-05."""

    def error(cluster: TokenCluster, renewer: str) -> int:
        answer = cluster.creates(Principal("User", "ann"), renewer)
        return answer.error_code

    off = TokenCluster(delegation_token_secret_key="")
    off.age()
    assert error(off, "Group:g") == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    old = TokenCluster()
    old.age()
    assert error(old, "Group:g") == ErrorCode.UNSUPPORTED_VERSION
    new = TokenCluster()
    assert error(new, "Group:g") == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert error(new, "User:g") == ErrorCode.NONE
