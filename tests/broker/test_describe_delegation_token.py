"""DescribeDelegationToken: which tokens a request names; rights are the guard's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.describe_delegation_token import handle
from kraft_wire.metadata.delegation_tokens import token_hmac
from kraft_wire.metadata.image import DelegationTokenImage
from kraft_wire.model import ANONYMOUS, Principal
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import context, image_of, small_broker

ANN = Principal("User", "ann")
BY_TOKEN = Principal("User", "ann", token_authenticated=True)
TOKENS = {
    "b": DelegationTokenImage("User:bob", "User:ann", ("User:eve", "User:x:y"), 1, 30, 20),
    "a": DelegationTokenImage("User:ann", "User:ann", (), 1, 3, 2),
}


def broker_with(protocol: str, secret: str = "s") -> Broker:
    settings = NodeSettings({"delegation.token.secret.key": secret})
    broker = small_broker(replace(image_of({}), delegation_tokens=TOKENS), source=settings)
    broker.listener_protocols = {"SECURE": protocol}
    return broker


def described(
    broker: Broker, who: Principal, *owners: str, version: int = 3
) -> DescribeDelegationTokenResponse:
    named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=n) for n in owners]
    asked = replace(context(version, listener="SECURE"), principal=who)
    wanted = named if owners != ("all",) else None
    return handle(broker, asked, DescribeDelegationTokenRequest(owners=wanted))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tokens_are_described_whole_with_their_hmacs(version: int) -> None:
    """SEC-TOKEN-02, SEC-TOKEN-09."""
    answer = described(broker_with("SASL_SSL"), ANN, "all", version=version)
    assert DescribeDelegationTokenResponse.decode(answer.encode(version), version)[0] == answer
    own, of_bob = answer.tokens
    assert (own.token_id, of_bob.token_id) == ("a", "b")
    assert of_bob.principal_name == "bob"
    assert of_bob.token_requester_principal_name == ("ann" if version == 3 else "")
    times = of_bob.issue_timestamp, of_bob.expiry_timestamp, of_bob.max_timestamp
    assert times == (1, 20, 30)
    assert of_bob.hmac == token_hmac("s", "b")
    assert [each.principal_name for each in of_bob.renewers] == ["eve", "x:y"]


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        ((), []),
        (("ann",), ["a", "b"]),
        (("bob",), ["b"]),
        (("eve",), ["b"]),
        (("x", "zoe"), []),
        (("bob", "ann"), ["a", "b"]),
    ],
)
def test_owners_of_a_request_are_owners_requesters_or_renewers(
    owners: tuple[str, ...], found: list[str]
) -> None:
    """SEC-TOKEN-09: no owners means no tokens."""
    answer = described(broker_with("SASL_PLAINTEXT"), ANN, *owners)
    assert [each.token_id for each in answer.tokens] == found


@pytest.mark.parametrize(
    ("protocol", "who", "is_allowed"),
    [
        ("PLAINTEXT", ANN, False),
        ("SSL", ANONYMOUS, False),
        ("SSL", ANN, True),
        ("SASL_SSL", ANN, True),
        ("SASL_SSL", BY_TOKEN, False),
        ("SSL", BY_TOKEN, False),
    ],
)
def test_only_those_who_logged_in_without_a_token_may_ask(
    protocol: str, who: Principal, is_allowed: bool
) -> None:
    """SEC-TOKEN-03."""
    refused = 0 if is_allowed else ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert described(broker_with(protocol), who, "all").error_code == refused


def test_errors_in_order() -> None:
    """SEC-TOKEN-01, SEC-TOKEN-03."""

    def error(broker: Broker) -> int:
        return described(broker, ANN, "all").error_code

    assert error(broker_with("PLAINTEXT", "")) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert error(broker_with("SASL_SSL", "")) == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert error(broker_with("SASL_SSL")) == ErrorCode.NONE


@pytest.mark.parametrize(("kind", "name"), [("", "ann"), ("", ""), ("User", ""), ("a:b", "c")])
def test_an_owner_without_type_or_name_has_no_tokens(kind: str, name: str) -> None:
    owner = DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
    asked = replace(context(3, listener="SECURE"), principal=ANN)
    request = DescribeDelegationTokenRequest(owners=[owner])
    answer = handle(broker_with("SASL_SSL"), asked, request)
    assert (answer.error_code, answer.tokens) == (ErrorCode.NONE, [])
