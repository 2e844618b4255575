"""Requests about delegation tokens to a whole node: who may ask, and with which rights."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from kraft_wire.apis.rights import AclOperation as Op
from kraft_wire.model import ANONYMOUS, Principal
from kraft_wire.node.links.envelopes import pack
from kraft_wire.node.outputs import Peer
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraft_wire.wire.generated.describe_delegation_token import DescribeDelegationTokenRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.expire_delegation_token import ExpireDelegationTokenRequest
from kraft_wire.wire.generated.renew_delegation_token import RenewDelegationTokenRequest
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message
from tests.node.authorization.guarded_node import CONTROLLER_LISTENER, GuardedDoor

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
REFUSED = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
TOKEN, USER = 6, 7
ANN, BOB, ROOT = (Principal("User", name) for name in ("ann", "bob", "root"))
BY_TOKEN = Principal("User", "root", token_authenticated=True)
PLAIN_LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="root" password="r" user_root="r";'
)


class TokenNode(GuardedDoor):
    """A node with a listener for logins; connections are made with a principal."""

    def __init__(self, **overrides: str) -> None:
        self._numbers = count(50_000)
        super().__init__(
            listeners="PLAINTEXT://127.0.0.1:9092,SECURE://127.0.0.1:9095,"
            "CONTROLLER://127.0.0.1:9093",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT,"
            "CONTROLLER:PLAINTEXT",
            sasl_enabled_mechanisms="PLAIN",
            listener_name_secure_plain_sasl_jaas_config=PLAIN_LOGIN,
            **{
                "super_users": "User:root;User:ANONYMOUS",
                "delegation_token_secret_key": "s",
                **overrides,
            },
        )

    def asked_by(self, who: Principal, request: Message, listener: str = "SECURE") -> Any:
        """Return the answer to a principal."""
        number = next(self._numbers)
        self._peers[number] = Peer(number, "10.0.0.3", 1, listener, principal=who)
        return self.ask(request, connection=number)


def creation(owner: str = "", renewer: str = "User") -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type="User" if owner else "",
        owner_principal_name=owner,
        renewers=[CreatableRenewers(principal_type=renewer, principal_name="r")],
        max_lifetime_ms=-1,
    )


ALL = DescribeDelegationTokenRequest(owners=None)
EVERY = [
    creation("bob", "Group"),
    RenewDelegationTokenRequest(hmac=b"h"),
    ExpireDelegationTokenRequest(hmac=b"h"),
    ALL,
]


@pytest.mark.parametrize(
    ("who", "listener"),
    [
        (ROOT, "PLAINTEXT"),
        (ANONYMOUS, "PLAINTEXT"),
        (BY_TOKEN, "SECURE"),
        (ROOT, CONTROLLER_LISTENER),
    ],
)
def test_clients_without_a_login_or_with_a_token_are_refused_first(
    who: Principal, listener: str
) -> None:
    """SEC-TOKEN-03: before rights, before the key, on both kinds of listener."""
    node = TokenNode(delegation_token_secret_key="")
    answers = [node.asked_by(who, each, listener) for each in EVERY]
    assert [each.error_code for each in answers] == [NOT_ALLOWED] * 4
    made, renewed, expired, _ = answers
    times = made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms
    assert times == (-1, -1, -1)
    assert made.principal_name == "bob"
    assert (renewed.expiry_timestamp_ms, expired.expiry_timestamp_ms) == (-1, -1)


@pytest.mark.parametrize("listener", ["SECURE", "PLAINTEXT", CONTROLLER_LISTENER])
def test_an_owner_with_a_name_but_no_type_is_nobody(listener: str) -> None:
    """KafkaApis and ControllerApis of 4.3.1 fail before they look at the login (KafkaPrincipal)."""
    request = creation("bob")
    request.owner_principal_type = None
    answer = TokenNode().asked_by(ROOT, request, listener)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (answer.principal_type, answer.principal_name) == (ANONYMOUS.type, ANONYMOUS.name)
    assert answer.expiry_timestamp_ms == -1


def forwarded(node: TokenNode, who: Principal, request: Message) -> Any:
    """Return the answer to a request that a broker forwards in an envelope."""
    header = RequestHeader(request.API_KEY, request.MAX_VERSION, 1, "client")
    sent = pack(header, request, "10.0.0.3", who)
    answer = node.asked_by(ANONYMOUS, sent, CONTROLLER_LISTENER)
    assert answer.error_code == 0
    return CreateDelegationTokenResponse.decode(answer.response_data, 3, 5)[0]


def test_envelope_tells_the_controller_of_a_login_by_token() -> None:
    """SEC-TOKEN-03, SEC-TOKEN-10, SEC-ENV-15: the protocol cannot be seen there, but the mark."""
    node = TokenNode()
    assert forwarded(node, BY_TOKEN, creation()).error_code == NOT_ALLOWED
    assert forwarded(node, ANN, creation("bob", "Group")).error_code == REFUSED
    made = forwarded(node, ANN, creation())
    assert made.error_code == 0
    assert node.node.controller.image.delegation_tokens[made.token_id].owner == "User:ann"
    anonymous = forwarded(node, ANONYMOUS, creation())
    assert anonymous.error_code == 0, "only a broker tests the protocol"


def test_token_for_another_owner_needs_a_right() -> None:
    """SEC-TOKEN-04: CREATE_TOKENS on the user; for oneself none, for super users none."""
    node = TokenNode()
    assert node.asked_by(ANN, creation("bob")).error_code == REFUSED
    assert node.asked_by(ANN, creation("ann")).error_code == 0
    assert node.asked_by(ROOT, creation("bob")).error_code == 0


def test_broker_checks_renewers_before_the_controller_is_asked() -> None:
    """SEC-TOKEN-05: after the right, and before the key."""
    node = TokenNode(delegation_token_secret_key="")
    assert node.asked_by(ANN, creation("bob", "Group")).error_code == REFUSED
    assert node.asked_by(ANN, creation("", "Group")).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    off = node.asked_by(ANN, creation())
    assert off.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_super_users_see_all_tokens_and_change_only_their_own() -> None:
    """SEC-TOKEN-07, SEC-TOKEN-09."""
    node = TokenNode()
    mine, of_bob = node.asked_by(ANN, creation()), node.asked_by(ROOT, creation("bob"))

    def seen(who: Principal) -> set[str]:
        return {each.token_id for each in node.asked_by(who, ALL).tokens}

    assert seen(ROOT) == {mine.token_id, of_bob.token_id}
    assert seen(ANN) == {mine.token_id}
    assert seen(BOB) == {of_bob.token_id}
    renewal = RenewDelegationTokenRequest(hmac=mine.hmac)
    refused = node.asked_by(ROOT, renewal)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


@pytest.mark.parametrize(
    ("kind", "name_of", "operation"),
    [(TOKEN, "token_id", Op.DESCRIBE), (USER, "owner", Op.DESCRIBE_TOKENS)],
)
def test_others_see_a_token_by_a_right_on_it_or_on_its_owner(
    kind: int, name_of: str, operation: Op
) -> None:
    """SEC-TOKEN-09."""
    node = TokenNode()
    made = node.asked_by(ANN, creation())
    assert node.asked_by(BOB, ALL).tokens == []
    assert any("DESCRIBE_TOKENS" in line and "User:ann" in line for line in node.denied)
    name = made.token_id if name_of == "token_id" else "User:ann"
    permit(node, BOB, kind, name, operation)
    assert [each.token_id for each in node.asked_by(BOB, ALL).tokens] == [made.token_id]


def permit(node: TokenNode, who: Principal, kind: int, name: str, operation: Op) -> None:
    """Allow a principal something."""
    entry = AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=3,
        principal=str(who),
        host="*",
        operation=operation,
        permission_type=3,
    )
    answer = node.asked_by(ROOT, CreateAclsRequest(creations=[entry]))
    assert answer.results[0].error_code == 0


def test_right_on_an_owner_lets_others_ask_for_tokens() -> None:
    """SEC-TOKEN-04."""
    node = TokenNode()
    permit(node, ANN, USER, "User:bob", Op.CREATE_TOKENS)
    made = node.asked_by(ANN, creation("bob"))
    assert (made.error_code, made.principal_name) == (0, "bob")
    assert made.token_requester_principal_name == "ann"
    assert node.asked_by(ANN, creation("eve")).error_code == REFUSED


def test_active_controller_removes_expired_tokens_in_time() -> None:
    """SEC-TOKEN-13: within the interval, by records, and nobody has to ask."""
    node = TokenNode(delegation_token_expiry_check_interval_ms="5000")
    node.asked_by(ANN, creation())
    short = creation()
    short.max_lifetime_ms = 1_000
    ended = node.asked_by(ANN, short)
    assert len(node.node.controller.image.delegation_tokens) == 2
    node.advance(6_000)
    left = node.node.raft.committed.image.delegation_tokens
    assert ended.token_id not in left
    assert len(left) == 1
