"""Logins by delegation tokens: SCRAM with `tokenauth=true`, sessions that end with the token."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import served
from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import LoginFailed, log_in
from kraft_wire.metadata.delegation_tokens import token_hmac
from kraft_wire.metadata.image import DelegationTokenImage, MetadataImage
from kraft_wire.model import Principal
from kraft_wire.node.config.security import ListenerSecurity, SaslSettings
from kraft_wire.node.outputs import Close, Peer, RefuseLogin, Reply
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.node.security import logins
from kraft_wire.node.security.logins import Logins
from kraft_wire.testing.seeded_random import SeededRandom
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import DecodeLimits, Message

SECRET, ID = "keyed with this", "aaaaaaaaaaaaaaaaaaaaaa"
WALL_MS, LIFE_MS = 1_700_000_000_000, 10_000
TOKEN = DelegationTokenImage(
    "User:bob", "User:ann", ("User:eve",), WALL_MS, WALL_MS + 2 * LIFE_MS, WALL_MS + LIFE_MS
)
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD = b64encode(token_hmac(SECRET, ID)).decode()


class Door:
    """A node's logins, and one connection at a time."""

    def __init__(self, secret: str | None = SECRET, session_ms: int = 0) -> None:
        sasl = SaslSettings(MECHANISMS, {}, 65_536, 100, dict.fromkeys(MECHANISMS, session_ms))
        decoder = RequestDecoder(served(ListenerType.BROKER), DecodeLimits())
        self.image = MetadataImage(delegation_tokens={ID: TOKEN})
        self._logins = Logins(
            {"S": ListenerSecurity("SASL_SSL", sasl=sasl)},
            lambda _: decoder,
            lambda: self.image,
            SeededRandom(1),
            secret,
        )
        self.heard: list[bytes] = []
        self.now_ms = 0
        self.connects()

    def connects(self) -> None:
        self.peer = Peer(1, "h", 2, "S")
        self._logins.begin(self.peer)

    def sends(self, request: Message, version: int = 1) -> list[object] | None:
        header = RequestHeader(request.API_KEY, version, 1, None)
        frame = bytearray(encode_request_header(header) + request.encode(version))
        assert self.peer.login is not None
        taken = self.peer.login.take(frame, self.now_ms, WALL_MS + self.now_ms)
        return None if taken is None else list(taken)

    def logs_in(
        self,
        user: str = ID,
        password: str = PASSWORD,
        mechanism: str = MECHANISMS[0],
        *,
        by_token: bool = True,
    ) -> int:
        """Return the lifetime of the session; raises LoginFailed."""
        self.sends(SaslHandshakeRequest(mechanism=mechanism))
        lifetimes: list[int] = []

        def send(token: bytes) -> bytes:
            first = (self.sends(SaslAuthenticateRequest(auth_bytes=token)) or [None])[0]
            reply = first.reply if isinstance(first, RefuseLogin) else first
            assert isinstance(reply, Reply)
            frame = b"".join(reply.buffers)[4:]
            _, at = parse_response_header(frame, 36, 1)
            answer, _ = SaslAuthenticateResponse.decode(frame, 1, at)
            if answer.error_code:
                raise LoginFailed(str(answer.error_message))
            lifetimes.append(answer.session_lifetime_ms)
            self.heard.append(bytes(answer.auth_bytes))
            return self.heard[-1]

        login = Credentials(mechanism, user, password, by_delegation_token=by_token)
        log_in(login, send, "nonce")
        return lifetimes[-1]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_holder_of_a_token_is_its_owner_and_marked(mechanism: str) -> None:
    """SEC-TOKEN-10, SEC-TOKEN-11."""
    door = Door()
    assert door.logs_in(mechanism=mechanism) == LIFE_MS
    assert door.peer.principal == Principal("User", "bob", token_authenticated=True)


def test_one_token_logs_in_by_every_mechanism() -> None:
    """KIP-48: a broker makes the credentials of a token for each mechanism of SCRAM."""
    door = Door()
    for mechanism in MECHANISMS:
        door.connects()
        door.logs_in(mechanism=mechanism)
        assert door.peer.principal.name == "bob"


def test_owner_of_another_type_logs_in_as_a_user() -> None:
    """SEC-TOKEN-10: as in 4.3.1; the name may have colons."""
    door = Door()
    tokens = {ID: replace(TOKEN, owner="Group:b:c")}
    door.image = replace(door.image, delegation_tokens=tokens)
    door.logs_in()
    assert door.peer.principal == Principal("User", "b:c", token_authenticated=True)


@pytest.mark.parametrize(
    "login",
    [
        {"by_token": False},
        {"password": PASSWORD[:-3] + "A=="},
        {"password": SECRET},
        {"user": "bob"},
        {"user": "b" * 22},
    ],
)
def test_anything_else_than_id_and_hmac_is_refused(login: dict[str, object]) -> None:
    """SEC-TOKEN-10."""
    with pytest.raises(LoginFailed, match="invalid credentials"):
        Door().logs_in(**login)  # type: ignore[arg-type]  # the test's own values


def test_tokens_do_not_log_in_where_they_are_switched_off() -> None:
    """SEC-TOKEN-01."""
    with pytest.raises(LoginFailed, match="invalid credentials"):
        Door(secret=None).logs_in()


def test_another_key_makes_other_passwords() -> None:
    """SEC-TOKEN-02: nodes with different keys do not know each other's tokens."""
    with pytest.raises(LoginFailed, match="invalid credentials"):
        Door(secret="another").logs_in()


def test_removed_token_does_not_log_in_again() -> None:
    """SEC-TOKEN-08: a derived credential is no second source."""
    door = Door()
    door.logs_in()
    door.image = MetadataImage()
    door.connects()
    with pytest.raises(LoginFailed, match="invalid credentials"):
        door.logs_in()


def test_session_ends_with_its_token() -> None:
    """SEC-TOKEN-11."""
    door = Door()
    door.logs_in()
    metadata = MetadataRequest(topics=[])
    door.now_ms = LIFE_MS
    assert door.sends(metadata, 9) is None
    door.now_ms = LIFE_MS + 1
    closed = door.sends(metadata, 9)
    assert closed is not None
    assert isinstance(closed[0], Close)


@pytest.mark.parametrize(("session_ms", "expected"), [(1_000, 1_000), (60_000, LIFE_MS)])
def test_session_is_the_shorter_of_setting_and_token(session_ms: int, expected: int) -> None:
    """SEC-TOKEN-11."""
    assert Door(session_ms=session_ms).logs_in() == expected


def test_renewed_token_renews_the_session_when_the_client_logs_in_again() -> None:
    """SEC-TOKEN-11: the renewal alone does not."""
    door = Door()
    door.logs_in()
    renewed = replace(TOKEN, expiration_timestamp=TOKEN.max_timestamp)
    door.image = replace(door.image, delegation_tokens={ID: renewed})
    door.now_ms = LIFE_MS - 1
    assert door.logs_in() == LIFE_MS + 1
    assert door.peer.principal.token_authenticated


def test_expired_token_logs_in_and_serves_no_request() -> None:
    """SEC-TOKEN-11: as in 4.3.1, until it is removed."""
    door = Door()
    door.now_ms = LIFE_MS + 5
    assert door.logs_in() == 0
    closed = door.sends(MetadataRequest(topics=[]), 9)
    assert closed is not None
    assert isinstance(closed[0], Close)


def test_unknown_token_is_refused_at_the_first_message() -> None:
    """SEC-TOKEN-10: as by 4.3.1, also where tokens are off."""
    for door, user in ((Door(), "unknown"), (Door(secret=None), ID)):
        with pytest.raises(LoginFailed, match="invalid credentials"):
            door.logs_in(user)
        assert door.heard == []


def test_tokens_log_in_after_very_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is derived from a token is kept, the oldest is forgotten first, and derived again."""
    monkeypatch.setattr(logins, "_KEPT_MAX", 2)
    door = Door()
    names = [ID, "second", "third", ID]
    door.image = replace(door.image, delegation_tokens=dict.fromkeys(names, TOKEN))
    for name in names:
        door.connects()
        password = b64encode(token_hmac(SECRET, name)).decode()
        assert door.logs_in(name, password) == LIFE_MS
        assert door.peer.principal.name == "bob"
    assert list(door._logins._token_credentials) == [
        (MECHANISMS[0], name) for name in ("third", ID)
    ]
