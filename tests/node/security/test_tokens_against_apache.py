"""Our verdicts on first messages and tokens are those of Apache's own classes, 4.3.1.

One message after the other goes to `OAuthBearerSaslServer` with Kafka's handler for signed or for
unsecured tokens, and to our state machine with the same settings. The tokens are joserfc's. Where
both differ on purpose, the case says so.
"""

import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from joserfc import jwk

from kraft_wire.node.config.token_settings import SignedTokenSettings, UnsecuredTokenSettings
from kraft_wire.node.security.mechanisms import LoginRefused
from kraft_wire.node.security.oauth.key_set import KeySet
from kraft_wire.node.security.oauth.server import OAuthBearerServer, TokenCheck
from kraft_wire.node.security.oauth.signatures import read_key_set
from kraft_wire.node.security.oauth.signed import SignedTokens
from kraft_wire.node.security.oauth.unsecured import UnsecuredTokens
from tests.apache.source_judge import answers_of
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

pytestmark = [pytest.mark.java, pytest.mark.filterwarnings("ignore:Key size")]
HERE = Path(__file__).parent
MUTATIONS = 3_000
SKEW_SECONDS = 1_200
"""Longer than the tests take, on any machine."""
SECOND = RSA.generate_key(2048, {"kid": "second"})
ALIEN = RSA.generate_key(2048, {"kid": "alien"})
WEAK = weak_key()
SECRET = jwk.OctKey.generate_key(256, {"kid": "secret"})
KOBLITZ = EC.generate_key("secp256k1", {"kid": "koblitz"})
FOR_ENCRYPTION = RSA.generate_key(2048, {"kid": "enc"})
FOR_WRAPPING = RSA.generate_key(2048, {"kid": "wrap"})
KEYS = key_set(
    *(public(each) for each in (RSA, EC, ED, SECOND, WEAK, KOBLITZ)),
    public(FOR_ENCRYPTION, use="enc"),
    public(FOR_WRAPPING, key_ops=["wrapKey"]),
    public(SECRET),
    {"kty": "RSA", "kid": "no numbers"},
    {"kty": "other", "kid": "other"},
)


MORE_THAN_APACHE = ("no key id, second key",)
"""Without a key id 4.3.1 tries only the first key (DEVIATIONS.md)."""


def judged(lines: list[str]) -> list[str]:
    """Return what Apache's classes answer."""
    return answers_of(HERE / "TokenJudge.java", lines).splitlines()


def ours(tokens: TokenCheck, shown: bytes) -> str:
    """Return our answer in the judge's words."""
    server = OAuthBearerServer(tokens)
    try:
        challenge = server.step(shown, round(time.time() * 1000))
    except LoginRefused as refusal:
        return f"refused\t{(refusal.message or '').encode().hex()}"
    if server.user is None:
        return f"challenge\t{challenge.hex()}"
    return f"ok\t{server.user.encode().hex()}\t{server.expires_ms}"


def compared(
    settings: str, tokens: TokenCheck, cases: dict[str, bytes]
) -> Iterator[tuple[str, str, str]]:
    """Yield each case with their answer and ours."""
    lines = [settings, *(f"ask\t{shown.hex()}" for shown in cases.values())]
    answers = judged(lines)
    assert len(answers) == len(cases)
    for (name, shown), answer in zip(cases.items(), answers, strict=True):
        yield name, answer, ours(tokens, shown)


def signed(directory: Path, **changed: Any) -> tuple[str, SignedTokens]:
    """Return the judge's line and our check for the same settings."""
    file = directory / "keys.json"
    file.write_bytes(KEYS)
    settings = SignedTokenSettings(file.as_uri(), skew_seconds=SKEW_SECONDS, **changed)
    keys = KeySet(settings, "L")
    keys.arrived(read_key_set(KEYS), 0)
    given = {
        "jwks.endpoint.url": f"file:{file}",
        "clock.skew.seconds": str(SKEW_SECONDS),
        "expected.audience": ",".join(settings.audiences),
        "sub.claim.name": settings.subject_claim,
        "scope.claim.name": settings.scope_claim,
        **({} if settings.issuer is None else {"expected.issuer": settings.issuer}),
    }
    line = "\t".join(["signed", *(f"sasl.oauthbearer.{key}={given[key]}" for key in given)])
    return line, SignedTokens(settings, keys)


@cache
def now() -> int:
    """Return the time of the first test, in seconds: Apache's classes have the machine's clock."""
    return round(time.time())


def good() -> dict[str, Any]:
    """Return claims that both accept for an hour."""
    return {"sub": "ann", "iat": now(), "exp": now() + 3600}


def changes() -> dict[str, dict[str, Any]]:
    """Return changes of good claims, by name."""
    return {
        "nothing more": {},
        "audience": {"aud": "x"},
        "audiences": {"aud": ["x", "y"]},
        "no audience in a list": {"aud": []},
        "audience 5": {"aud": 5},
        "audiences 5": {"aud": [5]},
        "issuer": {"iss": "i"},
        "issuer 5": {"iss": 5},
        "id 5": {"jti": 5},
        "fraction of a second": {"exp": now() + 3600.7},
        "long ago": {"iat": 1, "exp": 2},
        "negative end": {"exp": -5},
        "far end": {"exp": 10**15},
        "farther end": {"exp": 10**30},
        "end as text": {"exp": str(now() + 3600)},
        "no end": {"exp": None},
        "end true": {"exp": True},
        "no issue": {"iat": None},
        "issued ahead": {"iat": now() + 1800},
        "issued after its end": {"iat": now() + 7200},
        "issued at 0": {"iat": 0},
        "issued before 0": {"iat": -1},
        "issued as text": {"iat": "x"},
        "begins after its end": {"nbf": now() + 7200},
        "begins ahead": {"nbf": now() + 1800},
        "begins within the skew": {"nbf": now() + 5},
        "begins as text": {"nbf": "x"},
        "ended within the skew": {"iat": now() - 3000, "exp": now() - 1},
        "ended": {"iat": now() - 3000, "exp": now() - SKEW_SECONDS - 1},
        "empty scope": {"scope": ""},
        "blank scope": {"scope": " "},
        "scope with a blank": {"scope": "a b"},
        "scopes": {"scope": ["a", "b"]},
        "no scopes": {"scope": []},
        "a scope twice": {"scope": ["a", "a"]},
        "a scope twice, trimmed": {"scope": ["a", " a"]},
        "an empty scope among others": {"scope": ["a", ""]},
        "scope 5": {"scope": 5},
        "scope null": {"scope": None},
        "scope null among others": {"scope": [None]},
        "scope object": {"scope": {"a": 1}},
        "empty user": {"sub": ""},
        "blank user": {"sub": " \t"},
        "user with blanks": {"sub": " a b "},
        "user with controls": {"sub": "\x00a\n\x1f"},
        "user with other blanks": {"sub": "\u00a0a\u2003"},
        "user 5": {"sub": 5},
        "user null": {"sub": None},
        "user list": {"sub": ["ann"]},
        "user of letters": {"sub": "żółć 😀"},
    }


def forms() -> dict[str, str]:
    """Return tokens of other forms, all with good claims."""
    head, body, signature = token(good()).split(".")
    return {
        "no key id": token(good(), kid=None),
        "no key id, second key": token(good(), SECOND, kid=None),
        "another key's id": token(good(), kid="second"),
        "unknown key id": token(good(), kid="zz"),
        "empty key id": token(good(), kid=""),
        "long key id": token(good(), kid="k" * 2000),
        "PS384": token(good(), alg="PS384"),
        "RS512": token(good(), alg="RS512"),
        "ES256": token(good(), EC, "ES256", "ec"),
        "ES256 of an RSA key": token(good(), EC, "ES256", "rsa"),
        "EdDSA": token(good(), ED, "EdDSA", "ed"),
        "ES256K": token(good(), KOBLITZ, "ES256K", "koblitz"),
        "weak": token(good(), WEAK, kid="weak"),
        "for encryption": token(good(), FOR_ENCRYPTION, kid="enc"),
        "for wrapping": token(good(), FOR_WRAPPING, kid="wrap"),
        "HS256 with the public key": hmac_token(good(), RSA.as_pem(private=False), "rsa"),
        "its own key": token(good(), ALIEN, kid="zz", jwk=public(ALIEN)),
        "its own key's address": token(good(), ALIEN, kid=None, jku="http://127.0.0.1:1/"),
        "a field of its own": token(good(), x="y"),
        "a type": token(good(), typ="at+jwt"),
        "nested": token(good(), cty="JWT"),
        "a claim twice": token(f'{{"sub":"a","sub":"b","iat":{now()},"exp":{now() + 3600}}}'),
        "claims that are a list": token("[1]"),
        "claims that are no JSON": token("{"),
        "four parts": f"{head}.{body}.{signature}.x",
        "two parts": f"{head}.{body}",
        "no signature": f"{head}.{body}.",
        "padded": f"{head}.{body}.{signature}==",
        "short signature": f"{head}.{body}.AAAA",
        "other claims": f"{head}.{plain_token({**good(), 'sub': 'bob'}).split('.')[1]}.{signature}",
        "none": plain_token(good()),
        "none and a signature": plain_token(good(), signature=signature),
        "NONE": plain_token(good(), {"alg": "NONE"}),
        "alg twice": ".".join(
            [plain_token(0, b'{"alg":"none","alg":"RS256","kid":"rsa"}').split(".")[0], body]
        )
        + f".{signature}",
        "no alg": plain_token(good(), {"kid": "rsa"}, signature),
        "alg 5": plain_token(good(), {"alg": 5, "kid": "rsa"}, signature),
    }


def test_signed_tokens_have_apaches_verdict(tmp_path: Path) -> None:
    """SEC-OAUTH-02, SEC-OAUTH-09, SEC-OAUTH-11, SEC-OAUTH-12, SEC-OAUTH-13, SEC-OAUTH-14."""
    cases = {name: message(token({**good(), **more})) for name, more in changes().items()}
    cases |= {name: message(shown) for name, shown in forms().items()}
    line, tokens = signed(tmp_path)
    seen = {"ok": 0, "challenge": 0}
    for name, theirs, our in compared(line, tokens, cases):
        if name in MORE_THAN_APACHE:
            assert (theirs[:9], our[:2]) == ("challenge", "ok"), name
        else:
            assert our == theirs, name
        seen[our.split("\t")[0]] += 1
    assert min(seen.values()) > 20, seen


def test_a_shared_secret_in_the_key_set_is_refused_where_apache_takes_it(tmp_path: Path) -> None:
    """SEC-OAUTH-09: HMAC is not among our algorithms, whatever a key set has (DEVIATIONS.md)."""
    line, tokens = signed(tmp_path)
    shown = message(token(good(), SECRET, "HS256", "secret"))
    [(_, theirs, our)] = compared(line, tokens, {"secret": shown})
    assert theirs.startswith("ok")
    assert our.startswith("challenge")


@pytest.mark.parametrize("subject", ["sub", "client"])
def test_expected_audience_and_issuer_are_checked_as_by_apache(
    tmp_path: Path, subject: str
) -> None:
    """SEC-OAUTH-12, SEC-OAUTH-13: also with other names of claims."""
    line, tokens = signed(
        tmp_path, audiences=("x", "z"), issuer="i", subject_claim=subject, scope_claim="roles"
    )
    audiences: list[Any] = [None, "x", "y", "", ["x"], ["y", "z"], [], 5, [None], {"x": 1}]
    cases = {}
    for issuer in (None, "i", "j", "I", 5, ["i"]):
        for audience in audiences:
            claims = {**good(), "iss": issuer, "aud": audience, "client": "app", "scope": ""}
            kept = {name: value for name, value in claims.items() if value is not None}
            cases[f"{issuer} {audience}"] = message(token(kept))
    wrong = message(token({**good(), "iss": "i", "aud": "x", "client": 5, "roles": ""}))
    cases["another kind of claim"] = wrong
    accepted = 0
    for name, theirs, our in compared(line, tokens, cases):
        assert our == theirs, name
        accepted += our.startswith("ok")
    assert accepted == 3, "x, [x] and [y, z] of issuer i"


OPTIONS: list[tuple[dict[str, str], UnsecuredTokenSettings]] = [
    ({}, UnsecuredTokenSettings()),
    (
        {
            "unsecuredValidatorPrincipalClaimName": "client",
            "unsecuredValidatorScopeClaimName": "roles",
            "unsecuredValidatorRequiredScope": "a b",
            "unsecuredValidatorAllowableClockSkewMs": "5000000",
        },
        UnsecuredTokenSettings("client", "roles", ("a", "b"), 5_000_000),
    ),
]


@pytest.mark.parametrize(("options", "settings"), OPTIONS)
def test_unsecured_tokens_have_apaches_verdict(
    options: dict[str, str], settings: UnsecuredTokenSettings
) -> None:
    """SEC-OAUTH-06: alg none, exp needed, the user a text; a scope that lacks is told."""
    claims: list[dict[str, Any]] = [*changes().values(), {"client": "app"}]
    claims += [
        {"client": "app", "roles": each} for each in (["a", "b"], ["b"], "a b", "a", [" a", "b "])
    ]
    claims += [{"client": "app", "exp": now() + more} for more in (-4000, -6000)]
    claims += [{"client": "app", "iat": now() + more} for more in (4000, 6000)]
    cases = {
        f"{number} {more}": message(
            plain_token(
                {name: value for name, value in {**good(), **more}.items() if value is not None}
            )
        )
        for number, more in enumerate(claims)
        if more.get("exp") not in (True, 10**30)
    }
    cases |= {name: message(shown) for name, shown in forms().items() if name != "alg twice"}
    line = "\t".join(["unsecured", *(f"{name}={text}" for name, text in options.items())])
    seen = set()
    for name, theirs, our in compared(line, UnsecuredTokens(settings), cases):
        if theirs.startswith("failed"):  # it closes the connection without an answer
            assert our.startswith(("refused", "challenge")), name
        else:
            assert our == theirs, name
        seen.add(our.split("\t")[0])
    assert seen == {"ok", "challenge"}


def messages(random: Random) -> Iterator[bytes]:
    """Yield first messages of every kind."""
    shown = plain_token(good())
    for more in (
        "",
        "a=b\x01",
        "a=b\x01c=d e\t\r\n\x01",
        "a=b=c\x01",
        "a=\x01",
        "=b\x01",
        "a1=b\x01",
        "é=b\x01",
        "a=é\x01",
        f"auth=Bearer {shown}\x01",
        "auth=x\x01",
        "Auth=x\x01",
    ):
        yield message(shown, more=more)
    for authzid in ("ann", "bob", "a=2Cb", "=2C", "=3D", "=", "a,b", "é", "\x01", "ann ", "\x7f"):
        yield message(shown, authzid)
    right = message(shown)
    for scheme in (b"bearer", b"BEARER", b"Basic", b"Bearer ", b"Bearer\t", b"", b"Bear er"):
        yield right.replace(b"Bearer", scheme)
    for header in (b"y,,", b"p=x,,", b"n,", b"n", b"n,,,", b"N,,", b"n,a=,", b"\xff,,", b""):
        yield header + right[3:]
    yield from (
        b"",
        b"\x01",
        b"\x01\x01",
        right[:-1],
        right + b"\x01",
        b"\x00" + right,
        b"n,,\x01\x01",
    )
    for text in (
        b"",
        b"=",
        b"a=b",
        b"a==",
        b"~",
        b"+/",
        b"a b",
        b"a\x00",
        b"\xc3\xa9",
        b"a\n",
        b".",
    ):
        yield right.replace(shown.encode(), text)
    changes: list[Callable[[bytearray, int], object]] = [
        lambda data, at: data.pop(at),
        lambda data, at: data.insert(at, random.randrange(256)),
        lambda data, at: data.insert(at, random.choice(b"\x01,=. \tna")),
        lambda data, at: data.__setitem__(at, random.randrange(256)),
    ]
    for _ in range(MUTATIONS):
        changed = bytearray(message("x.y.", random.choice(("", "ann")), "k=v\x01"))
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            random.choice(changes)(changed, random.randrange(len(changed)))
        yield bytes(changed)


def test_first_messages_are_read_as_by_apache() -> None:
    """SEC-OAUTH-01, SEC-OAUTH-04, SEC-OAUTH-05: the grammar, and mutations of good messages."""
    cases = {repr(each): each for each in messages(Random(7))}
    seen = {"ok": 0, "challenge": 0, "refused": 0}
    for name, theirs, our in compared(
        "unsecured", UnsecuredTokens(UnsecuredTokenSettings()), cases
    ):
        kind = our.split("\t")[0]
        if theirs.startswith("failed"):  # another scheme, an unknown header: closed unanswered
            assert kind in ("refused", "challenge"), name
        else:
            assert our == theirs, name
        seen[kind] += 1
    assert min(seen.values()) > 5, seen
    assert seen["challenge"] > 100, "many mutations stay messages"
