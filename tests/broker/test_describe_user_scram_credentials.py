"""DescribeUserScramCredentials: mechanisms and iterations of users, never their keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.describe_user_scram_credentials import handle
from kraft_wire.metadata.image import ScramImage
from kraft_wire.wire.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResult,
    UserName,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import context, image_of, small_broker

SHA_256, SHA_512 = 1, 2


@pytest.fixture
def broker() -> Broker:
    stored = {
        ("bob", SHA_256): 4096,
        ("alice", SHA_512): 8192,
        ("alice", SHA_256): 4096,
    }
    scram = {
        key: ScramImage(b"salt", b"stored", b"server", iterations)
        for key, iterations in stored.items()
    }
    return small_broker(replace(image_of({}), scram=scram))


def described(broker: Broker, *names: str) -> list[DescribeUserScramCredentialsResult]:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
    response = handle(broker, context(0), request)
    assert response.error_code == ErrorCode.NONE
    data = bytes(response.encode(0))
    assert not any(key in data for key in (b"salt", b"stored", b"server"))
    return response.results


def test_no_users_mean_all_with_every_mechanism(broker: Broker) -> None:
    """SEC-SCRAM-16."""
    shown = [
        (each.user, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in described(broker)
    ]
    assert shown == [("alice", [(SHA_256, 4096), (SHA_512, 8192)]), ("bob", [(SHA_256, 4096)])]


def test_user_without_credentials_is_not_found_and_the_others_are_described(
    broker: Broker,
) -> None:
    """SEC-SCRAM-16: 91 in Kafka's words."""
    carol, bob = described(broker, "carol", "bob")
    assert (carol.user, carol.error_code) == ("carol", ErrorCode.RESOURCE_NOT_FOUND)
    assert carol.error_message == "Attempt to describe a user credential that does not exist: carol"
    assert (bob.error_code, len(bob.credential_infos)) == (ErrorCode.NONE, 1)


def test_user_that_is_asked_for_twice_is_refused_whether_it_exists_or_not(broker: Broker) -> None:
    """SEC-SCRAM-16: 92."""
    found = {each.user: each.error_code for each in described(broker, "bob", "bob", "x", "x")}
    assert found == {"bob": ErrorCode.DUPLICATE_RESOURCE, "x": ErrorCode.DUPLICATE_RESOURCE}
