"""OAUTHBEARER at a clock of the test's: the exchange, tokens and their time, sessions, key sets.

Verdicts on tokens are compared with Apache's in `test_tokens_against_apache.py`; here are the cases
that need no judge, and those in which we differ from Apache on purpose.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest
from joserfc import jwk
from joserfc.jws import JWSRegistry

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import served
from kraft_wire.keystores.key_sets import UnusableKeySet
from kraft_wire.node.config.token_settings import SignedTokenSettings, UnsecuredTokenSettings
from kraft_wire.node.event_log import Line
from kraft_wire.node.outputs import Close, Output, Peer, RefuseLogin
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.node.security.login import Login, LoginRules
from kraft_wire.node.security.mechanisms import LoginRefused
from kraft_wire.node.security.oauth.initial_response import parse_initial_response
from kraft_wire.node.security.oauth.key_set import KeySet
from kraft_wire.node.security.oauth.server import OAuthBearerServer, TokenCheck, TokenRefused
from kraft_wire.node.security.oauth.signatures import read_key_set
from kraft_wire.node.security.oauth.signed import SignedTokens
from kraft_wire.node.security.oauth.unsecured import UnsecuredTokens
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest
from kraft_wire.wire.header import RequestHeader, encode_request_header
from kraft_wire.wire.message import DecodeLimits, Message
from tests.node.security.test_login import answer
from tests.node.security.tokens import (
    EC,
    ED,
    RSA,
    hmac_token,
    key_set,
    message,
    plain_token,
    public,
    token,
    weak_key,
)

NOW = 1_700_000_000
GOOD: dict[str, Any] = {"sub": "ann", "iat": NOW, "exp": NOW + 60}
INVALID = b'{"status":"invalid_token"}'
RFC_7628 = (
    b"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01"
    b"auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01"
)
"""The example of RFC 7628, section 4.1."""


def unsecured(**changed: Any) -> OAuthBearerServer:
    return OAuthBearerServer(UnsecuredTokens(UnsecuredTokenSettings(**changed)))


def keys_of(data: bytes = key_set(), **changed: Any) -> KeySet:
    keys = KeySet(SignedTokenSettings("https://h/keys", **changed), "L")
    keys.arrived(read_key_set(data), 0)
    return keys


def signed(keys: KeySet | None = None, **changed: Any) -> OAuthBearerServer:
    keys = keys_of(**changed) if keys is None else keys
    return OAuthBearerServer(SignedTokens(keys.settings, keys))


def shows(server: OAuthBearerServer, shown: str, now: float = NOW) -> bytes:
    return server.step(message(shown), round(now * 1000))


def signed_as_it_is(header: dict[str, Any]) -> str:
    """Return a token with a header that joserfc would not write."""
    signed_part = plain_token(GOOD, header)[:-1]
    signature = JWSRegistry.algorithms["RS256"].sign(signed_part.encode(), RSA)
    return f"{signed_part}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def is_accepted(server: OAuthBearerServer, shown: str, now: float = NOW) -> bool:
    challenge = shows(server, shown, now)
    assert (challenge == b"") == (server.user is not None)
    return challenge == b""


def test_the_example_of_the_rfc_is_read() -> None:
    """SEC-OAUTH-01: RFC 7628, section 4.1."""
    found = parse_initial_response(RFC_7628)
    assert found.authzid == "user@example.com"
    assert found.token == "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
    assert found.token not in repr(found)


@pytest.mark.parametrize("scheme", ["Basic", "Bear", "Bearerr", ""])
def test_another_scheme_is_refused(scheme: str) -> None:
    """SEC-OAUTH-05: 58, where 4.3.1 closes without an answer."""
    with pytest.raises(LoginRefused) as refused:
        unsecured().step(RFC_7628.replace(b"Bearer", scheme.encode()), 0)
    assert refused.value.message is None


def test_a_refused_token_is_told_twice() -> None:
    """SEC-OAUTH-03: as a challenge, then as the text of the failure."""
    server = signed()
    assert shows(server, "a.b.c") == INVALID
    with pytest.raises(LoginRefused) as refused:
        server.step(b"\x01", NOW * 1000)
    assert refused.value.message == INVALID.decode()
    assert server.user is None


def test_a_good_token_after_a_refused_one_is_refused() -> None:
    """SEC-OAUTH-03: only %x01 may follow; 4.3.1 would accept it."""
    server = unsecured()
    assert shows(server, "a.b.c") == INVALID
    with pytest.raises(LoginRefused):
        shows(server, plain_token(GOOD))
    assert server.user is None


def test_a_missing_scope_is_named() -> None:
    """SEC-OAUTH-06: insufficient_scope, with what the listener requires."""
    server = unsecured(required_scope=("a", "b"))
    challenge = shows(server, plain_token({**GOOD, "scope": ["a"]}))
    assert challenge == b'{"status":"insufficient_scope", "scope":"[a, b]"}'
    assert is_accepted(
        unsecured(required_scope=("a", "b")), plain_token({**GOOD, "scope": ["b", "a", "c"]})
    )


def test_an_authorization_id_is_nobody_else() -> None:
    """SEC-OAUTH-04: the text names both; the log does not repeat what the client sent."""
    server = unsecured()
    with pytest.raises(LoginRefused, match=r"id \(bob\) .* principal name \(ann\)") as refused:
        server.step(message(plain_token(GOOD), "bob"), NOW * 1000)
    assert server.user is None
    assert "bob" not in str(refused.value.reason)
    server = unsecured()
    assert server.step(message(plain_token(GOOD), "ann"), NOW * 1000) == b""


def test_a_second_message_after_the_login_is_refused() -> None:
    """SEC-OAUTH-02: the exchange is over."""
    server = unsecured()
    assert is_accepted(server, plain_token(GOOD))
    assert (server.user, server.expires_ms) == ("ann", (NOW + 60) * 1000)
    with pytest.raises(LoginRefused):
        shows(server, plain_token(GOOD))


@pytest.mark.parametrize(
    ("now", "accepted"),
    [(NOW - 1, False), (NOW, True), (NOW + 59.999, True), (NOW + 60, False)],
)
def test_an_unsecured_token_has_its_time(now: float, accepted: bool) -> None:
    """SEC-OAUTH-06: from iat until exp, to the millisecond, without a skew."""
    assert is_accepted(unsecured(), plain_token(GOOD), now) == accepted
    assert is_accepted(unsecured(skew_ms=1000), plain_token(GOOD), now)
    for outside in (NOW - 1.001, NOW + 61):
        assert not is_accepted(unsecured(skew_ms=1000), plain_token(GOOD), outside)


@pytest.mark.parametrize(
    ("claims", "now", "accepted"),
    [
        (GOOD, NOW + 89, True),
        (GOOD, NOW + 89.999, True),
        (GOOD, NOW + 90, False),
        ({**GOOD, "exp": NOW + 60.9}, NOW + 90, False),
        ({**GOOD, "nbf": NOW + 30}, NOW, True),
        ({**GOOD, "nbf": NOW + 31}, NOW, False),
        ({**GOOD, "iat": NOW + 60}, NOW, True),
        ({**GOOD, "iat": NOW + 61}, NOW, False),
    ],
)
def test_a_signed_token_has_its_time(claims: dict[str, Any], now: float, accepted: bool) -> None:
    """SEC-OAUTH-11: whole seconds, with a skew of 30 s; a future iat alone does not matter."""
    assert is_accepted(signed(), token(claims), now) == accepted


@pytest.mark.parametrize(
    "claims",
    [
        {"iat": NOW + 5, "exp": NOW + 5},
        {"exp": ((1 << 63) // 1000) + 1},
        {"exp": True},
        {"more": float("nan")},
        {"more": float("inf")},
    ],
)
def test_an_unsecured_token_with_claims_of_no_meaning_is_refused(claims: dict[str, Any]) -> None:
    """The times as validateTimeConsistency of 4.3.1 has them, numbers as JSON has them."""
    assert is_accepted(unsecured(skew_ms=60_000), plain_token({**GOOD, "more": 1}))
    assert not is_accepted(unsecured(skew_ms=60_000), plain_token({**GOOD, **claims}))


def test_an_unsecured_token_has_no_signature() -> None:
    """KIP-255: with one it claims more than is checked."""
    assert not is_accepted(unsecured(), plain_token(GOOD) + "c2lnbmVk")


def test_without_its_times_a_signed_token_is_refused() -> None:
    """SEC-OAUTH-11: exp and iat are needed, and are numbers."""
    for name in ("exp", "iat"):
        rest = {key: value for key, value in GOOD.items() if key != name}
        assert not is_accepted(signed(), token(rest))
        assert not is_accepted(signed(), token({**GOOD, name: "1700000030"}))


@pytest.mark.parametrize(
    ("key", "alg"), [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256"), (ED, "EdDSA")]
)
def test_each_kind_of_key_signs(key: Any, alg: str) -> None:
    """SEC-OAUTH-07: keys of a key set, by their ids."""
    assert is_accepted(signed(), token(GOOD, key, alg, key.kid))
    head, body, signature = token(GOOD, key, alg, key.kid).split(".")
    forged = plain_token({**GOOD, "sub": "admin"}).split(".")[1]
    assert not is_accepted(signed(), f"{head}.{forged}.{signature}")
    assert not is_accepted(signed(), f"{head}.{body}.{'A' * len(signature)}")


def test_a_header_does_not_choose_its_own_key() -> None:
    """SEC-OAUTH-09: none, HMAC with what everybody knows, keys in the header."""
    own = RSA.generate_key(2048, {"kid": "own"})
    attempts = {
        "none": plain_token(GOOD),
        "None": plain_token(GOOD, {"alg": "None", "kid": "rsa"}, "AAAA"),
        "hmac": hmac_token(GOOD, RSA.as_pem(private=False), "rsa"),
        "hmac of the numbers": hmac_token(GOOD, key_set(), "rsa"),
        "jwk": token(GOOD, own, kid=None, jwk=public(own)),
        "jwk and a known id": token(GOOD, own, kid="rsa", jwk=public(own)),
        "crit": signed_as_it_is({"alg": "RS256", "kid": "rsa", "crit": ["x"], "x": 1}),
    }
    for name, shown in attempts.items():
        assert not is_accepted(signed(), shown), name
    secret = jwk.OctKey.import_key({"kty": "oct", "k": "A" * 43, "kid": "secret"})
    known = keys_of(key_set(public(secret), public(RSA)))
    assert not is_accepted(signed(known), hmac_token(GOOD, b"\0" * 32, "secret"))


def test_audience_and_issuer_are_checked() -> None:
    """SEC-OAUTH-12: also that a token for an audience is refused where none is expected."""
    expecting: dict[str, Any] = {"audiences": ("kafka",), "issuer": "idp"}
    for claims, accepted in (
        ({"aud": "kafka", "iss": "idp"}, True),
        ({"aud": ["web", "kafka"], "iss": "idp"}, True),
        ({"aud": "web", "iss": "idp"}, False),
        ({"aud": "kafka", "iss": "other"}, False),
        ({"aud": "kafka"}, False),
        ({"iss": "idp"}, False),
    ):
        assert is_accepted(signed(**expecting), token({**GOOD, **claims})) == accepted, claims
    assert not is_accepted(signed(), token({**GOOD, "aud": "kafka"}))


def test_the_user_is_trimmed_and_never_empty() -> None:
    """SEC-OAUTH-13: as Java trims."""
    server = signed()
    assert is_accepted(server, token({**GOOD, "sub": " \tann\n"}))
    assert server.user == "ann"
    for user in ("", "  ", None, 5, ["ann"]):
        assert not is_accepted(signed(), token({**GOOD, "sub": user})), user
    server = signed(subject_claim="client")
    assert is_accepted(server, token({**GOOD, "client": "app"}))
    assert server.user == "app"


@pytest.mark.parametrize(
    ("scope", "accepted"),
    [
        ("a b", True),
        (["a", "b"], True),
        ([], True),
        ({"a": 1}, True),
        (5, True),
        ("", False),
        (" ", False),
        ([5], False),
        ([None], False),
        (["a", ""], False),
        (["a", " a"], False),
    ],
)
def test_the_scopes_of_a_signed_token_are_texts_and_apart(scope: object, accepted: bool) -> None:
    """validateScopes of 4.3.1: trimmed, none is empty, none is there twice."""
    assert is_accepted(signed(), token({**GOOD, "scope": scope})) == accepted


def test_a_header_or_an_audience_of_another_form_is_refused() -> None:
    """JwtConsumer of jose4j: a key id is a text, an audience is a text or a list of texts."""
    for key_id in (5, ["rsa"], True):
        assert not is_accepted(signed(), signed_as_it_is({"alg": "RS256", "kid": key_id})), key_id
    for audience in (5, {"kafka": 1}, ["kafka", 5], [None]):
        shown = token({**GOOD, "aud": audience})
        assert not is_accepted(signed(audiences=("kafka",)), shown), audience
    head, claims, signature = token(GOOD).split(".")
    for damaged in (f"{head}+.{claims}.{signature}", f"{head}.{claims}+.{signature}"):
        assert not is_accepted(signed(), damaged)
    assert is_accepted(signed(), f"{head}.{claims}.{signature}")


@pytest.mark.parametrize(
    ("claims", "accepted"),
    [
        ({}, True),
        ({"exp": None}, False),
        ({"sub": ""}, False),
        ({"sub": " \t"}, False),
        ({"sub": None}, False),
        ({"sub": 5}, False),
        ({"iat": None}, True),
        ({"scope": 5}, False),
        ({"scope": 5.5}, False),
        ({"scope": None}, True),
        ({"scope": []}, True),
    ],
)
def test_the_claims_of_an_unsecured_token_have_their_types(
    claims: dict[str, Any], accepted: bool
) -> None:
    """OAuthBearerUnsecuredJws of 4.3.1: exp is needed, the user is a text, a scope no number."""
    server = unsecured()
    assert is_accepted(server, plain_token({**GOOD, **claims})) == accepted
    assert server.user == ("ann" if accepted else None)


def test_reasons_have_nothing_of_a_token() -> None:
    """SEC-OAUTH-15: every text that reaches the log is one of ours."""
    secret = "secret-claim"
    shown = [
        token({**GOOD, "sub": "", "x": secret}),
        token({**GOOD, "exp": secret}),
        token({**GOOD, "aud": secret}),
        token({**GOOD, "iss": 5, "aud": None}),
        token(GOOD, kid=secret),
        token(GOOD, alg="RS512", kid=None, x=secret)[:-4] + "AAAA",
        token('{"secret-claim":'),
        plain_token(GOOD, {"alg": secret}),
        f"{secret}.{secret}.{secret}",
        secret,
    ]
    tokens: TokenCheck = SignedTokens(SignedTokenSettings("https://h/"), keys_of())
    for each in shown:
        with pytest.raises(TokenRefused) as refused:
            tokens.check(each, NOW * 1000)
        texts = f"{refused.value} {refused.value.reason} {refused.value.missing_scope}"
        assert secret not in texts
        assert not any(len(part) > 8 and part in texts for part in each.split("."))


@pytest.mark.parametrize(
    "part",
    [
        b"[" * 100_000,
        b'{"alg":' * 50_000,
        b"{}",
        b"5",
        b"null",
        b'{"alg":"RS256","kid":NaN}',
        b"\xff",
    ],
)
def test_headers_of_every_form_are_refused(part: bytes) -> None:
    """SEC-OAUTH-09: deep, foreign, not UTF-8."""
    head = plain_token(0, part).split(".")[0]
    _, body, signature = token(GOOD).split(".")
    assert not is_accepted(signed(), f"{head}.{body}.{signature}")


def test_a_name_that_stands_twice_is_refused() -> None:
    """SEC-OAUTH-09: two readers could choose differently."""
    twice = f'{{"sub":"a","sub":"b","iat":{NOW},"exp":{NOW + 60}}}'
    assert not is_accepted(signed(), token(twice))
    assert is_accepted(signed(), token(twice.replace('"sub":"a",', "")))
    head = plain_token(GOOD, b'{"alg":"none","alg":"none"}')
    assert not is_accepted(unsecured(), head)


# -- key sets --------------------------------------------------------------------------------------


def test_only_public_keys_for_signatures_are_taken() -> None:
    """SEC-OAUTH-07: entries of no use are left out; a key set of nothing else is refused."""
    useless = [
        public(weak_key()),
        {**public(RSA), "use": "enc"},
        {**public(RSA), "key_ops": ["sign"]},
        {**public(RSA), "key_ops": 5},
        {**public(RSA), "n": 5},
        {**public(RSA), "n": "é"},
        {"kty": "RSA"},
        {**public(EC), "crv": "P-000"},
        {**public(EC), "x": "AAAA"},
        {"kty": ["RSA"]},
        {"kty": "oct", "k": "A" * 43},
    ]
    found = read_key_set(key_set(*useless, {**public(RSA), "kid": 5}, public(EC)))
    assert [(each.key_id, each.kind) for each in found] == [(None, "RSA"), ("ec", "EC")]
    for data in (
        key_set(*useless),
        b"",
        b"[]",
        b"5",
        b'{"keys":5}',
        b'{"keys":[5]}',
        b"[" * 100_000,
        key_set(*[public(EC)] * 101),
    ):
        with pytest.raises(UnusableKeySet):
            read_key_set(data)


def test_private_keys_of_a_key_set_are_not_kept() -> None:
    """SEC-OAUTH-07: only the public numbers are read."""
    [found] = read_key_set(key_set(RSA.as_dict(private=True)))
    assert "d" not in found.key.as_dict()
    assert found.key.private_key is None


def test_an_unknown_key_asks_for_a_fetch_once_a_minute() -> None:
    """SEC-OAUTH-10: whatever ids clients send; a new key works once it has arrived."""
    keys = keys_of(key_set(public(EC)))
    assert not keys.is_due(1)
    assert not is_accepted(signed(keys), token(GOOD))
    assert keys.is_due(2)
    for number in range(1000):
        assert not is_accepted(
            signed(keys), plain_token(GOOD, {"alg": "RS256", "kid": f"{number}"}, "A")
        )
    assert not keys.is_due(3)
    assert not is_accepted(signed(keys), token(GOOD))
    assert not keys.is_due(60_001)
    assert not is_accepted(signed(keys), token(GOOD))
    assert keys.is_due(60_002)
    keys.arrived(read_key_set(key_set()), 60_003)
    assert is_accepted(signed(keys), token(GOOD))


def test_long_key_ids_ask_for_nothing() -> None:
    """SEC-OAUTH-10: at most 1,000 characters."""
    keys = keys_of()
    assert not is_accepted(
        signed(keys), plain_token(GOOD, {"alg": "RS256", "kid": "k" * 1001}, "A")
    )
    assert not keys.is_due(1)
    assert not is_accepted(
        signed(keys), plain_token(GOOD, {"alg": "RS256", "kid": "k" * 1000}, "A")
    )
    assert keys.is_due(1)


def test_a_key_set_is_fetched_again_by_its_settings() -> None:
    """SEC-OAUTH-07: after refresh.ms, and after failures with doubled pauses."""
    keys = keys_of(refresh_ms=1000, retry_ms=100, retry_max_ms=250)
    assert not keys.is_due(999)
    assert keys.is_due(1000)
    now, pauses = 1000, []
    for _ in range(4):
        keys.failed(now)
        due = next(later for later in range(now, now + 1000) if keys.is_due(later))
        pauses.append(due - now)
        now = due
    assert pauses == [100, 200, 250, 250]
    assert is_accepted(signed(keys), token(GOOD)), "the present keys stay"
    keys.unchanged(now)
    assert not keys.is_due(now + 999)
    keys.failed(now)
    assert keys.is_due(now + 100), "a success ends the longer pauses"


# -- sessions --------------------------------------------------------------------------------------


class Session:
    """One connection to a listener with signed tokens."""

    def __init__(self, session_ms: int = 0) -> None:
        self.peer = Peer(1, "h", 2, "L")
        decoder = RequestDecoder(served(ListenerType.BROKER), DecodeLimits())
        rules = LoginRules(("OAUTHBEARER",), lambda _: signed(), decoder, lambda _: session_ms, 100)
        self.login = Login(rules, self.peer)
        self.peer.login = self.login

    def sends(self, request: Message, now_ms: int) -> list[Output] | None:
        header = RequestHeader(request.API_KEY, 1, 1, None)
        frame = bytearray(encode_request_header(header) + request.encode(1))
        return self.login.take(frame, now_ms, NOW * 1000 + now_ms)

    def shows(self, shown: bytes, now_ms: int) -> SaslAuthenticateResponse:
        return answer(
            self.sends(SaslAuthenticateRequest(auth_bytes=shown), now_ms), SaslAuthenticateResponse
        )

    def logs_in(self, claims: dict[str, Any], now_ms: int = 0) -> SaslAuthenticateResponse:
        self.sends(SaslHandshakeRequest(mechanism="OAUTHBEARER"), now_ms)
        return self.shows(message(token(claims)), now_ms)

    def is_served(self, now_ms: int) -> bool:
        outputs = self.sends(MetadataRequest(topics=[]), now_ms)
        if outputs is None:
            return True
        assert isinstance(outputs[0], Close)
        return False


def test_a_session_ends_with_its_token() -> None:
    """SEC-OAUTH-02: 0, no bytes, and the time until exp."""
    session = Session()
    done = session.logs_in(GOOD, 1500)
    assert (done.error_code, done.auth_bytes, done.session_lifetime_ms) == (0, b"", 58_500)
    assert session.peer.principal.name == "ann"
    assert session.is_served(60_000)
    assert not session.is_served(60_001)


def test_the_shorter_of_token_and_setting_counts() -> None:
    """SEC-OAUTH-02: connections.max.reauth.ms (KIP-368)."""
    assert Session(10_000).logs_in(GOOD).session_lifetime_ms == 10_000
    assert Session(100_000).logs_in(GOOD).session_lifetime_ms == 60_000


def test_a_token_that_has_ended_within_the_skew_serves_nothing() -> None:
    """SEC-OAUTH-14: accepted with a lifetime of 0; the first request closes."""
    session = Session()
    done = session.logs_in({**GOOD, "iat": NOW - 60, "exp": NOW - 1})
    assert (done.error_code, done.session_lifetime_ms) == (0, 0)
    assert not session.is_served(0)


def test_a_new_token_renews_a_session_for_the_same_user_only() -> None:
    """SEC-OAUTH-02: with the lifetime of the new token (KIP-368)."""
    session = Session()
    session.logs_in(GOOD)
    assert session.logs_in({**GOOD, "exp": NOW + 600}, 50_000).session_lifetime_ms == 550_000
    assert session.is_served(600_000)
    other = session.logs_in({**GOOD, "exp": NOW + 600, "sub": "bob"}, 60_000)
    assert other.error_code == 58
    assert "Cannot change principals during re-authentication" in str(other.error_message)
    assert session.peer.principal.name == "ann"


def test_a_refused_login_ends_with_the_reason_in_the_log_only() -> None:
    """SEC-OAUTH-03, SEC-OAUTH-15: the client learns the JSON, the operator the cause."""
    session = Session()
    first = session.logs_in({**GOOD, "exp": NOW - 100, "iat": NOW - 200})
    assert (first.error_code, bytes(first.auth_bytes)) == (0, INVALID)
    outputs = session.sends(SaslAuthenticateRequest(auth_bytes=b"\x01"), 0)
    assert outputs is not None
    assert isinstance(outputs[0], RefuseLogin)
    last = answer(outputs, SaslAuthenticateResponse)
    assert (last.error_code, last.error_message) == (58, INVALID.decode())
    assert [each.text for _, each in outputs[0].rejection.details if isinstance(each, Line)] == [
        "the token has expired"
    ]
