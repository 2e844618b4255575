"""Who sees, renews and uses delegation tokens (KIP-48, KIP-373), and what their password is."""

from base64 import b64decode

import pytest

from kraft_wire.metadata.delegation_tokens import (
    find_token,
    is_expired,
    may_describe,
    may_renew,
    may_use_tokens,
    named_principal,
    secret_key,
    token_hmac,
    token_password,
)
from kraft_wire.metadata.image import DelegationTokenImage, MetadataImage
from kraft_wire.model import ANONYMOUS, Principal
from kraft_wire.settings.node_settings import NodeSettings

ANN, BOB, CAT, DAN = (Principal("User", name) for name in ("ann", "bob", "cat", "dan"))
TOKEN = DelegationTokenImage(
    owner="User:ann",
    requester="User:bob",
    renewers=("User:cat", "Group:dan"),
    issue_timestamp=1,
    max_timestamp=50,
    expiration_timestamp=20,
)
HMAC = bytes.fromhex(
    "1bf286334fac5b119bb98af7d15fcf1bb5f7bc6a37341bcdad383b79955a8c91"
    "33bc8c60e9e2dd7e57a6116226bcfc0b70c018d628374c06cd0a019293af9fc7"
)
"""Of `id-1` under `key`, as `openssl dgst -sha512 -hmac key` prints it."""


@pytest.mark.parametrize(
    ("principal", "sees", "renews"),
    [
        (ANN, True, True),
        (BOB, True, False),
        (CAT, True, True),
        (DAN, False, False),
        (Principal("Group", "dan"), True, True),
        (Principal("Group", "ann"), False, False),
    ],
)
def test_owner_requester_and_renewers_see_a_token(
    principal: Principal, sees: bool, renews: bool
) -> None:
    assert (may_describe(TOKEN, principal), may_renew(TOKEN, principal)) == (sees, renews)


@pytest.mark.parametrize(("wall_ms", "ended"), [(19, False), (20, False), (21, True), (51, True)])
def test_token_ends_at_the_sooner_of_its_two_ends(wall_ms: int, ended: bool) -> None:
    later = DelegationTokenImage("User:ann", "User:ann", (), 1, 20, 50)
    assert (is_expired(TOKEN, wall_ms), is_expired(later, wall_ms)) == (ended, ended)


def test_clients_with_a_login_of_their_own_use_tokens() -> None:
    by_token = Principal("User", "ann", token_authenticated=True)
    allowed = {
        (name, protocol)
        for name, principal in (("ann", ANN), ("token", by_token), ("anonymous", ANONYMOUS))
        for protocol in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", None)
        if may_use_tokens(principal, protocol)
    }
    assert allowed == {
        *(("ann", protocol) for protocol in ("SSL", "SASL_PLAINTEXT", "SASL_SSL", None)),
        *(("anonymous", protocol) for protocol in ("SASL_PLAINTEXT", "SASL_SSL", None)),
    }


def test_password_is_the_hmac_of_the_id() -> None:
    assert token_hmac("key", "id-1") == HMAC
    assert b64decode(token_password("key", "id-1"), validate=True) == HMAC
    image = MetadataImage(delegation_tokens={"id-0": TOKEN, "id-1": TOKEN})
    assert find_token(image, "key", HMAC) == "id-1"
    assert find_token(image, "key", HMAC[:-1]) is None
    assert find_token(image, "yek", HMAC) is None


def test_key_and_principals_are_read_from_text() -> None:
    key = "delegation.token.secret.key"
    assert secret_key(NodeSettings({key: "x"})) == "x"
    assert secret_key(NodeSettings({key: ""})) is None
    assert secret_key(NodeSettings({})) is None
    assert named_principal("User:a:b") == Principal("User", "a:b")
    assert named_principal("User:") == Principal("User", "")
