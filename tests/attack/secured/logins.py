"""Attacks on logins: PLAIN, SCRAM, tokens, and logins that are repeated."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from joserfc.jwk import RSAKey

from kraft_wire.login.client_config import Credentials
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.create_delegation_token import CreateDelegationTokenRequest
from kraft_wire.wire.generated.expire_delegation_token import ExpireDelegationTokenRequest
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.renew_delegation_token import RenewDelegationTokenRequest
from tests.apache.secured_node import ACCOUNTS
from tests.attack.secured.line import Line
from tests.attack.secured.target import SecuredTarget
from tests.node.security.tokens import RSA, hmac_token, message, plain_token, public, token

SCRAM = "SCRAM-SHA-256"
_ANN = ACCOUNTS["ann"]
_DELAY_S = 0.098
"""What each failed login costs its client at least: 100 ms of a clock that counts whole ones."""
_TRIES = 100


def _each(target: SecuredTarget, mechanism: str, attempts: list[bytes]) -> str:
    """Try each over a connection of its own, which is closed then; return all outcomes."""
    seen = set()
    for attempt in attempts:
        with target.line() as line:
            seen.add(line.refused(mechanism, attempt))
            if not line.is_closed():
                seen.add("open")
    return "+".join(sorted(seen))


# -- PLAIN -----------------------------------------------------------------------------------------


def plain_messages(target: SecuredTarget) -> str:
    """S15: another's authorization id, NULs, empty parts, a long password, no UTF-8."""
    secret = _ANN.encode()
    attempts = [
        b"broker\0ann\0" + secret,
        b"\0ann\0" + secret + b"\0",
        b"\0\0ann\0" + secret,
        b"\0\0",
        b"\0ann\0",
        b"",
        b"\0ann\0" + b"x" * 60_000,
        b"\0ann\xff\0" + secret,
    ]
    return _each(target, "PLAIN", attempts)


def long_password(target: SecuredTarget) -> str:
    """S15: a password of half a mebibyte."""
    with target.line() as line:
        return line.refused("PLAIN", b"\0ann\0" + b"x" * 500_000)


def names_alike(target: SecuredTarget) -> str:
    """S16: names that are equal but for case, blanks and forms of Unicode."""
    names = ["Ann", "ANN", "ann ", " ann", "\uff41\uff4e\uff4e", "ann\u200b", "a\u0301nn"]
    return _each(target, "PLAIN", [f"\0{name}\0{_ANN}".encode() for name in names])


def guesses(target: SecuredTarget) -> str:
    """S17: a hundred at a time; each waits for its refusal, unknown users as long as known ones."""

    def guess(number: int) -> tuple[str, float]:
        user = "ann" if number % 2 else f"absent-{number}"
        with target.line() as line:
            line.shake("PLAIN")
            begun = time.monotonic()
            answer = line.show(f"\0{user}\0guess-{number}".encode())
            return str(answer.error_code), time.monotonic() - begun

    with ThreadPoolExecutor(_TRIES) as pool:
        told = list(pool.map(guess, range(_TRIES)))
    if min(seconds for _, seconds in told) < _DELAY_S:
        return "too soon"
    return "+".join(sorted({outcome for outcome, _ in told}))


# -- SCRAM -----------------------------------------------------------------------------------------


class _Exchange:
    """A SCRAM exchange whose last message is the attacker's."""

    def __init__(self, line: Line, user: str = "ann", first: str = "", header: str = "n,,") -> None:
        self.line = line
        self.bare = first or f"n={user},r=attacker"
        line.shake(SCRAM)
        self.answer = line.show(f"{header}{self.bare}".encode())
        self.heard = bytes(self.answer.auth_bytes).decode()
        parts = dict(each.split("=", 1) for each in self.heard.split(",") if "=" in each)
        self.nonce, self.salt = parts.get("r", ""), b64decode(parts.get("s", ""))
        self.iterations = int(parts.get("i", "1"))

    def proof(self, final: str, password: str = _ANN) -> bytes:
        """Return the proof of the right password for a last message."""
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), self.salt, self.iterations)
        key = hmac.digest(salted, b"Client Key", "sha256")
        signed = f"{self.bare},{self.heard},{final}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        return bytes(one ^ other for one, other in zip(key, signature, strict=True))

    def ends(self, final: str, proof: bytes | str | None = None) -> str:
        """Send a last message; return the outcome."""
        shown = self.proof(final) if proof is None else proof
        text = shown if isinstance(shown, str) else b64encode(shown).decode()
        answer = self.line.show(f"{final},p={text}".encode())
        return "close" if answer is None else str(answer.error_code)


def unknown_users(target: SecuredTarget) -> str:
    """S18: a user that does not exist gets a salt, the same each time, and fails at the end."""
    salts, seen = set(), set()
    for _ in range(2):
        with target.line() as line:
            exchange = _Exchange(line, "absent")
            salts.add(exchange.salt)
            seen.add(exchange.ends(f"c=biws,r={exchange.nonce}"))
    return "+".join(sorted(seen)) if len(salts) == 1 else "salts differ"


def replay(target: SecuredTarget) -> str:
    """S19: the messages of a login that was heard."""
    with target.line() as line:
        heard = _Exchange(line)
        final = f"c=biws,r={heard.nonce}"
        proof = heard.proof(final)
        if heard.ends(final, proof) != "0":
            return "the right login fails"
    with target.line() as line:
        return _Exchange(line).ends(final, proof)


def nonces(target: SecuredTarget) -> str:
    """S20: CVE-2024-56128: the own part, the node's part, none, more than the whole."""
    changes: list[Callable[[str], str]] = [
        lambda _: "attacker",
        lambda nonce: nonce.removeprefix("attacker"),
        lambda nonce: nonce + "x",
        lambda nonce: "attacker" + nonce,
    ]
    return _finals(target, [lambda n, c=change: f"c=biws,r={c(n)}" for change in changes])


def headers(target: SecuredTarget) -> str:
    """S21: the header of another first message, and of a channel that is bound."""
    others = ["eSws", "bixhPWJyb2tlciw=", "cD10bHMtdW5pcXVlLCw=", "biw="]
    return _finals(target, [lambda n, h=header: f"c={h},r={n}" for header in others])


def _finals(target: SecuredTarget, makers: list[Callable[[str], str]]) -> str:
    seen = set()
    for make in makers:
        with target.line() as line:
            exchange = _Exchange(line)
            seen.add(exchange.ends(make(exchange.nonce)))
    return "+".join(sorted(seen))


def proofs(target: SecuredTarget) -> str:
    """S22: of other lengths and of no base64; and a salt that the client chooses."""
    seen = set()
    for proof in (b"", b"\0" * 31, b"\0" * 33, b"\0" * 32, "!!!!", "AAA", "A" * 60_000):
        with target.line() as line:
            exchange = _Exchange(line)
            seen.add(exchange.ends(f"c=biws,r={exchange.nonce}", proof))
    with target.line() as line:
        line.shake(SCRAM)
        answer = line.show(b"n,,n=ann,r=attacker,i=1,s=AAAA")
        heard = bytes(answer.auth_bytes).decode() if answer is not None else ""
        if "i=1," in heard or heard.endswith("i=1"):
            return "the client chooses"
    return "+".join(sorted(seen))


def credentials(target: SecuredTarget) -> str:
    """S23: iterations that are too few or too many, and a key that is too short."""
    seen = set()
    for iterations, salted in ((1, 32), ((1 << 31) - 1, 32), (4_095, 32), (8_192, 0)):
        made = ScramCredentialUpsertion(
            name="ann",
            mechanism=1,
            iterations=iterations,
            salt=b"salt" if salted else b"",
            salted_password=b"x" * salted,
        )
        request = AlterUserScramCredentialsRequest(upsertions=[made])
        answer = target.as_super_user(request, 0)
        seen.add(str(answer.results[0].error_code))
    return "+".join(sorted(seen))


# -- tokens ----------------------------------------------------------------------------------------


def token_for_password(target: SecuredTarget) -> str:
    """S24: a password shown as a token, a token shown as a password."""
    with target.logged_in() as line:
        made = line.ask(CreateDelegationTokenRequest(max_lifetime_ms=60_000), 3)
    seen = set()
    secret = b64encode(bytes(made.hmac)).decode()
    for user, password, is_token in (("ann", _ANN, True), (made.token_id, secret, False)):
        with target.line() as line:
            login = Credentials(SCRAM, user, password, by_delegation_token=is_token)
            seen.add(line.logs_in(login))
    with target.line() as line:
        login = Credentials(SCRAM, made.token_id, secret, by_delegation_token=True)
        if line.logs_in(login) != "0":
            return "the right token fails"
    return "+".join(sorted(seen))


def delegation_tokens(target: SecuredTarget) -> str:
    """S42: asked for over plain text, and by a login by token; a stranger's; one bit off; late."""
    create = CreateDelegationTokenRequest(max_lifetime_ms=86_400_000)
    seen = [str(target.as_super_user(create, 3).error_code)]
    with target.logged_in() as line:
        made = line.ask(create, 3)
    secret = bytes(made.hmac)
    with target.line() as line:
        shown = b64encode(secret).decode()
        line.logs_in(Credentials(SCRAM, made.token_id, shown, by_delegation_token=True))
        seen.append(str(line.ask(create, 3).error_code))
    with target.logged_in("bob") as line:
        renewed = line.ask(RenewDelegationTokenRequest(hmac=secret, renew_period_ms=1), 2)
        seen.append(str(renewed.error_code))
    with target.logged_in() as line:
        changed = bytes([secret[0] ^ 1]) + secret[1:]
        renewed = line.ask(RenewDelegationTokenRequest(hmac=changed, renew_period_ms=1), 2)
        seen.append(str(renewed.error_code))
        line.ask(ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=1), 2)
        time.sleep(0.1)
        late = line.ask(RenewDelegationTokenRequest(hmac=secret, renew_period_ms=1), 2)
        seen.append(str(late.error_code))
    return " ".join(seen)


def web_tokens(target: SecuredTarget) -> str:
    """S25: unsigned, signed by the public key, with keys and addresses of their own, and so on."""
    now = round(time.time())
    claims = {"sub": "broker", "iat": now, "exp": now + 600}
    own = RSAKey.generate_key(2048, {"kid": "rsa"})
    modulus = json.dumps(public(RSA)).encode()
    double = json.dumps({"alg": "RS256", "kid": "rsa"})[:-1] + ', "alg": "none"}'
    attempts = [
        plain_token(claims),
        hmac_token(claims, modulus, "rsa"),
        token(claims, own, jwk=own.as_dict(private=False)),
        token(claims, own, kid=None, jku="http://127.0.0.1:1/keys"),
        token(claims, own, kid="../../etc/passwd"),
        token(claims, own, kid="x" * 10_000),
        plain_token(claims, double.encode(), "AAAA"),
        token({**claims, "exp": str(now + 600)}),
        token({**claims, "aud": ["kafka", 7]}),
        token({**claims, "nbf": now + 6_000}),
        token({**claims, "exp": now - 60}),
    ]
    seen = set()
    for attempt in attempts:
        with target.line() as line:
            line.shake("OAUTHBEARER")
            first = line.show(message(attempt))
            if first is None or first.error_code or b"invalid_token" not in bytes(first.auth_bytes):
                return "close" if first is None else f"answer {first.error_code}"
            second = line.show(b"\x01")
            seen.add("close" if second is None else str(second.error_code))
    return "+".join(sorted(seen))


def long_token(target: SecuredTarget) -> str:
    """S25: a right token of a mebibyte."""
    now = round(time.time())
    shown = token({"sub": "ann", "iat": now, "exp": now + 600, "filler": "x" * (1 << 20)})
    with target.line() as line:
        return line.refused("OAUTHBEARER", message(shown))


# -- logins that are repeated ----------------------------------------------------------------------


def another_user(target: SecuredTarget) -> str:
    """S27: a second login as another user, and what is sent behind it."""
    with target.logged_in("ann", "NARROW") as line:
        line.shake("PLAIN")
        answer = line.show(f"\0bob\0{ACCOUNTS['bob']}".encode())
        line.says(line.frame(MetadataRequest(topics=[]), 12))
        return str(answer.error_code) if line.hears() is None else "served"


def another_mechanism(target: SecuredTarget) -> str:
    """S27: a second login by another mechanism."""
    with target.logged_in("ann", "NARROW") as line:
        line.shake("SCRAM-SHA-256")
        return "close" if line.is_closed() else "open"


def after_the_end(target: SecuredTarget) -> str:
    """S27: a request behind the end of the session."""
    with target.logged_in("ann", "NARROW") as line:
        time.sleep(3.2)
        return "close" if line.ask(MetadataRequest(topics=[]), 12) is None else "served"


def renewals(target: SecuredTarget) -> str:
    """S27: a hundred logins in a row over one connection: all but the first few are refused."""
    done = 0
    with target.logged_in("ann", "NARROW") as line, suppress(AttributeError):
        for _ in range(_TRIES):
            line.shake("PLAIN")
            done += line.show(f"\0ann\0{_ANN}".encode()).error_code == 0
    return "held" if done <= 2 else f"{done} logins"
