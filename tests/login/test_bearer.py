"""Tokens of a client's file: made of its options, or read from a file; and how they are shown."""

import json
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.login.bearer import InvalidTokenSource, unsecured_token
from kraft_wire.login.client_config import Credentials, UnusableConfig, read_client_config
from kraft_wire.login.sasl import LoginFailed, log_in
from kraft_wire.node.config.token_settings import UnsecuredTokenSettings
from kraft_wire.node.security.oauth.unsecured import UnsecuredTokens
from tests.process import write_properties

OAUTH = "org.apache.kafka.common.security.oauthbearer"
FROM_URLS = f"{OAUTH}.OAuthBearerLoginCallbackHandler"


def credentials(directory: Path, options: str, **more: str) -> Credentials:
    file = directory / "client.properties"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required {options};",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    write_properties(file, settings)
    found = read_client_config(file)[0].credentials
    assert found is not None
    return found


def claims_of(token: str) -> Any:
    part = token.split(".")[1]
    return json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_a_token_is_made_of_the_options() -> None:
    """SEC-OAUTH-06: the options of 4.3.1's login module, and its form."""
    options = {
        "unsecuredLoginStringClaim_sub": 'a"n\\n',
        "unsecuredLoginNumberClaim_level": "5",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginListClaim_none": "",
        "unsecuredLoginLifetimeSeconds": "60",
        "username": "x",
    }
    token = unsecured_token(options, 1_700_000_000)
    claims = {"sub": 'a"n\\n', "level": 5, "scope": ["a", "b"], "none": []}
    assert claims_of(token) == {**claims, "iat": 1_700_000_000, "exp": 1_700_000_060}
    check = UnsecuredTokens(UnsecuredTokenSettings(required_scope=("b",)))
    assert check.check(token, 1_700_000_000_000) == ('a"n\\n', 1_700_000_060_000)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unsecuredLoginStringClaim_sub": " "},
        {"unsecuredLoginNumberClaim_sub": "5"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginPrincipalClaimName": "client"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginStringClaim_exp": "1"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_x": "many"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "long"},
    ],
)
def test_options_that_name_no_user_or_time_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidTokenSource):
        unsecured_token(options, 0)


def test_a_file_is_read_for_each_login(tmp_path: Path) -> None:
    """SEC-OAUTH-07: as 4.3.1 reads `sasl.oauthbearer.token.endpoint.url=file:`."""
    file = tmp_path / "a token"
    found = credentials(
        tmp_path,
        "",
        sasl_login_callback_handler_class=FROM_URLS,
        sasl_oauthbearer_token_endpoint_url=file.as_uri(),
    )
    shown: list[bytes] = []

    def accept(token: bytes) -> bytes:
        shown.append(token)
        return b""

    for text in ("first.a.b", " second.a.b\n"):
        file.write_text(text)
        log_in(found, accept)
    assert shown == [
        f"n,,\x01auth=Bearer {name}.a.b\x01\x01".encode() for name in ("first", "second")
    ]
    file.write_text("not a token\n")
    with pytest.raises(LoginFailed, match="has no token") as refused:
        log_in(found, accept)
    assert "not a" not in str(refused.value)


def test_a_refusal_is_acknowledged(tmp_path: Path) -> None:
    """SEC-OAUTH-03: by %x01, whatever the broker answers to it."""
    shown: list[bytes] = []

    def refuse(token: bytes) -> bytes:
        shown.append(token)
        return b'{"status":"invalid_token"}'

    with pytest.raises(LoginFailed, match="refuses the token"):
        log_in(credentials(tmp_path, 'unsecuredLoginStringClaim_sub="a"'), refuse)
    assert shown[1:] == [b"\x01"]


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ("", {}),
        ("", {"sasl_login_callback_handler_class": "a.B"}),
        ("", {"sasl_login_callback_handler_class": FROM_URLS}),
        (
            "",
            {
                "sasl_login_callback_handler_class": FROM_URLS,
                "sasl_oauthbearer_token_endpoint_url": "https://idp/token",
            },
        ),
        (
            'unsecuredLoginStringClaim_sub="a"',
            {"sasl_oauthbearer_token_endpoint_url": "file:///token"},
        ),
        (
            'username="a" password="b"',
            {
                "sasl_mechanism": "PLAIN",
                "sasl_oauthbearer_token_endpoint_url": "file:///token",
            },
        ),
    ],
)
def test_settings_that_give_no_token_are_refused(
    tmp_path: Path, options: str, more: dict[str, str]
) -> None:
    with pytest.raises(UnusableConfig):
        credentials(tmp_path, options, **more)
