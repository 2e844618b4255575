"""Logins at a clock of the test's: sessions that end, re-authentication, and what SCRAM refuses.

What a connection is answered is compared with Apache's in `tests/apache/test_sasl_on_the_wire.py`;
here are the rules that depend on time, or in which we differ from Apache on purpose.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac, sha256
from hmac import compare_digest, digest
from typing import TypeVar

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import served
from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import LoginFailed, log_in
from kraft_wire.metadata.image import ScramImage
from kraft_wire.node.outputs import Close, LoggedIn, Output, Peer, RefuseLogin, Reply
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.node.security import plain
from kraft_wire.node.security.login import Login, LoginRules
from kraft_wire.node.security.mechanisms import LoginRefused, Mechanism
from kraft_wire.node.security.plain import PlainServer
from kraft_wire.node.security.scram import ScramServer
from kraft_wire.testing.seeded_random import SeededRandom
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import DecodeLimits, Message

Response = TypeVar("Response", bound=Message)
SALT = b"some salt"
PASSWORD = "open sesame"
WALL_MS = 1_700_000_000_000
HASH = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def credential(mechanism: str, iterations: int = 4096) -> ScramImage:
    """Return the keys of the password, by RFC 5802."""
    name = HASH[mechanism]
    salted = pbkdf2_hmac(name, PASSWORD.encode(), SALT, iterations)
    client_key = digest(salted, b"Client Key", name)
    stored = new_hash(name, client_key).digest()
    return ScramImage(SALT, stored, digest(salted, b"Server Key", name), iterations)


def scram(
    iterations: int = 4096, mechanism: str = "SCRAM-SHA-256", user: str = "a,b=c"
) -> ScramServer:
    """Return a login of which there is one user only."""
    known = {user: credential(mechanism, iterations)}
    return ScramServer(mechanism, known.get, SeededRandom(1), b"secret")


class Session:
    """One connection to a listener whose sessions last 10 s."""

    def __init__(self, session_ms: int = 10_000) -> None:
        self.peer = Peer(1, "h", 2, "L")
        accounts = {"ann": "a", "bob": "b"}

        def made(name: str) -> Mechanism:
            return PlainServer(accounts) if name == "PLAIN" else scram(mechanism=name)

        decoder = RequestDecoder(served(ListenerType.BROKER), DecodeLimits())
        mechanisms = ("PLAIN", "SCRAM-SHA-256")
        self.outcomes: list[str] = []
        note = self.outcomes.append
        rules = LoginRules(mechanisms, made, decoder, lambda _: session_ms, 100, note)
        self.peer.login = self.login = Login(rules, self.peer)

    def sends(self, request: Message, version: int, now_ms: int) -> list[Output] | None:
        header = RequestHeader(request.API_KEY, version, 1, None)
        frame = bytearray(encode_request_header(header) + request.encode(version))
        return self.login.take(frame, now_ms, WALL_MS + now_ms)

    def chooses(self, now_ms: int, mechanism: str = "PLAIN") -> list[Output] | None:
        return self.sends(SaslHandshakeRequest(mechanism=mechanism), 1, now_ms)

    def shows_bare(self, token: bytes) -> list[Output] | None:
        return self.login.take(bytearray(token), 1, WALL_MS)

    def shows(self, token: bytes, now_ms: int) -> list[Output] | None:
        return self.sends(SaslAuthenticateRequest(auth_bytes=token), 1, now_ms)

    def logs_in(self, now_ms: int) -> SaslAuthenticateResponse:
        self.chooses(now_ms)
        outputs = self.shows(b"\0ann\0a", now_ms)
        assert outputs is not None
        assert outputs[1:] == [LoggedIn(1)]
        return answer(outputs, SaslAuthenticateResponse)


def answer(outputs: list[Output] | None, response: type[Response]) -> Response:
    """Return the response among the outputs."""
    assert outputs is not None
    first = outputs[0]
    reply = first.reply if isinstance(first, RefuseLogin) else first
    assert isinstance(reply, Reply), outputs
    frame = b"".join(reply.buffers)[4:]
    _, at = parse_response_header(frame, response.API_KEY, 1)
    return response.decode(frame, 1, at)[0]


METADATA = MetadataRequest(topics=[])


def test_without_a_limit_the_machine_goes_away() -> None:
    """SEC-SASL-22: a lifetime of 0 means as long as the connection."""
    session = Session(0)
    assert session.logs_in(0).session_lifetime_ms == 0
    assert session.peer.login is None
    assert session.peer.principal.name == "ann"


def test_a_session_ends_at_its_time_and_silence_does_not_end_it() -> None:
    """SEC-SASL-22, SEC-SASL-25: told in SaslAuthenticate, then judged by the next request."""
    session = Session()
    assert session.logs_in(50).session_lifetime_ms == 10_000
    assert session.sends(METADATA, 9, 10_050) is None
    closed = session.sends(METADATA, 9, 10_051)
    assert closed is not None
    assert isinstance(closed[0], Close)


def test_a_new_handshake_renews_a_session_even_after_its_end() -> None:
    """SEC-SASL-23: the handshake is looked at before the time."""
    session = Session()
    session.logs_in(0)
    shaken = answer(session.chooses(20_000), SaslHandshakeResponse)
    assert shaken.error_code == 0
    session.shows(b"\0ann\0a", 20_001)
    assert session.sends(METADATA, 9, 30_001) is None
    assert session.sends(METADATA, 9, 30_002) is not None


def test_renewals_are_a_second_apart() -> None:
    """SEC-SASL-24: sooner, the handler answers ILLEGAL_SASL_STATE and the connection stays."""
    session = Session()
    session.logs_in(0)
    assert session.chooses(10) is not None, "the first one has no start before it"
    session.shows(b"\0ann\0a", 11)
    assert session.chooses(1_009) is None
    assert session.chooses(1_010) is not None
    session.shows(b"\0ann\0a", 1_011)
    assert session.chooses(2_009) is None
    assert session.chooses(2_010) is not None


def test_outcomes_are_counted_apart_for_logins_and_renewals() -> None:
    """KIP-368: "failed-reauthentication-total", and connections killed at the session's end."""
    stranger, renewed, refused = Session(), Session(), Session()
    stranger.chooses(0)
    stranger.shows(b"\0ann\0wrong", 1)
    assert stranger.outcomes == ["failed_authentication"]
    refused.logs_in(0)
    refused.chooses(2_000)
    refused.shows(b"\0ann\0wrong", 2_001)
    assert refused.outcomes == ["successful_authentication", "failed_reauthentication"]
    renewed.logs_in(0)
    renewed.chooses(2_000)
    renewed.shows(b"\0ann\0a", 2_001)
    renewed.sends(METADATA, 9, 12_002)
    assert renewed.outcomes[1:] == [
        "successful_reauthentication",
        "expired_connections_killed_count",
    ]


def test_a_renewal_changes_neither_user_nor_mechanism() -> None:
    """SEC-SASL-26: 58 with both names, or a close without an answer."""
    session = Session()
    session.logs_in(0)
    session.chooses(2_000)
    refused = answer(session.shows(b"\0bob\0b", 2_001), SaslAuthenticateResponse)
    text = "Cannot change principals during re-authentication from User.ann: User.bob"
    assert (refused.error_code, refused.error_message) == (58, text)
    assert session.peer.principal.name == "ann"
    session = Session()
    session.logs_in(0)
    shaken = answer(session.chooses(2_000, "SCRAM-SHA-256"), SaslHandshakeResponse)
    assert shaken.error_code == 0
    closed = session.shows(b"n,,n=ann,r=x", 2_001)
    assert closed is not None
    assert isinstance(closed[0], RefuseLogin)
    assert closed[0].reply is None


def test_another_request_within_a_renewal_is_refused() -> None:
    """SEC-SASL-26: never a moment with mixed identity."""
    session = Session()
    session.logs_in(0)
    session.chooses(2_000)
    refused = session.sends(METADATA, 9, 2_001)
    assert refused is not None
    assert isinstance(refused[0], RefuseLogin)


def test_a_failure_waits_for_the_delay_of_its_listener() -> None:
    """SEC-SASL-14: the order to the host has the answer and the delay."""
    session = Session()
    session.chooses(0)
    refused = session.shows(b"\0ann\0wrong", 0)
    assert refused is not None
    assert isinstance(refused[0], RefuseLogin)
    assert refused[0].delay_ms == 100
    said = answer(refused, SaslAuthenticateResponse).error_message
    assert said == "Authentication failed: Invalid username or password"


def test_after_a_handshake_of_version_0_tokens_have_no_headers() -> None:
    """SEC-SASL-08, SEC-SASL-09: the answer is the size and the bytes; a failure has none."""
    session, stranger, scrambled = Session(0), Session(), Session()
    for each in (session, stranger):
        each.sends(SaslHandshakeRequest(mechanism="PLAIN"), 0, 0)
    accepted = session.shows_bare(b"\0ann\0a")
    assert accepted == [Reply(1, [b"\0\0\0\0"], 4), LoggedIn(1)]
    assert session.peer.principal.name == "ann"
    refused = stranger.shows_bare(b"\0ann\0wrong")
    assert refused is not None
    assert isinstance(refused[0], RefuseLogin)
    assert (refused[0].reply, refused[0].delay_ms) == (None, 100)
    scrambled.sends(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0, 0)
    challenged = scrambled.shows_bare(b"n,,n=a=2Cb=3Dc,r=abc")
    assert challenged is not None
    (reply,) = challenged
    assert isinstance(reply, Reply)
    frame = b"".join(reply.buffers)
    assert frame[:4] == (len(frame) - 4).to_bytes(4, "big")
    assert frame[4:].startswith(b"r=abc")


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are() -> None:
    """SEC-SASL-07: UNSUPPORTED_SASL_MECHANISM, then the end after the delay."""
    session = Session()
    refused = session.chooses(0, "GSSAPI")
    assert refused is not None
    assert isinstance(refused[0], RefuseLogin)
    assert refused[0].delay_ms == 100
    shaken = answer(refused, SaslHandshakeResponse)
    assert (shaken.error_code, shaken.mechanisms) == (33, ["PLAIN", "SCRAM-SHA-256"])
    assert session.outcomes == ["failed_authentication"]


def reason_of_close(outputs: list[Output] | None) -> str:
    """Return why a connection is closed without an answer."""
    assert outputs is not None
    (closed,) = outputs
    assert isinstance(closed, Close)
    assert closed.rejection is not None
    return closed.rejection.reason


@pytest.mark.parametrize(("version", "name"), [(0, "-"), (3, "a"), (3, "-"), (99, "-")])
def test_apis_are_asked_for_once_before_the_handshake(version: int, name: str) -> None:
    """SEC-SASL-04: any second request ends the login, also one that would get an error."""
    session = Session()
    first = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert session.sends(first, 3, 0) is None, "served as any other request"
    second = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    header = encode_request_header(RequestHeader(18, min(version, 4), 1, None))
    frame = bytearray(header + second.encode(min(version, 4)))
    frame[2:4] = version.to_bytes(2, "big")
    assert reason_of_close(session.login.take(frame, 1, WALL_MS)) == "not_logged_in"


@pytest.mark.parametrize("version", [0, 2])
def test_apis_may_be_asked_for_again_after_an_error(version: int) -> None:
    """SEC-SASL-03: only a request without an error leads to the next step."""
    session = Session()
    assert session.sends(ApiVersionsRequest(client_software_name="-"), 3, 0) is None
    assert session.sends(ApiVersionsRequest(), version, 1) is None
    assert reason_of_close(session.sends(ApiVersionsRequest(), version, 2)) == "not_logged_in"


def test_frames_that_cannot_be_read_end_a_login() -> None:
    """SEC-SASL-01: what cannot be parsed is closed without an answer, at each step."""
    handshake, token = (17).to_bytes(2, "big"), (36).to_bytes(2, "big")
    cut_off = b"\0\1" + bytes(4) + b"\xff\xff"
    session = Session()
    assert reason_of_close(session.shows_bare(handshake + cut_off)) == "truncated"
    assert reason_of_close(session.shows_bare(b"\0\x11")) == "not_logged_in"
    session.chooses(0)
    assert reason_of_close(session.shows_bare(token + cut_off)) == "truncated"
    assert reason_of_close(session.shows_bare(b"\0\x12\0\x63" + bytes(20))) == "not_logged_in"
    assert session.peer.principal.name == "ANONYMOUS"


def test_a_renewal_is_not_one_of_bare_tokens() -> None:
    """On purpose unlike 4.3.1: clients of version 0 cannot renew a session."""
    session = Session()
    session.logs_in(0)
    closed = session.sends(SaslHandshakeRequest(mechanism="PLAIN"), 0, 2_000)
    assert reason_of_close(closed) == "version_not_served"


def exchange(server: ScramServer, change: Callable[[bytes], bytes] = bytes) -> None:
    """Log in by the client of the conformance suite; `change` alters its last message."""

    def send(token: bytes) -> bytes:
        return server.step(change(token) if token.startswith(b"c=") else token, 0)

    log_in(Credentials("SCRAM-SHA-256", "a,b=c", PASSWORD), send)


def test_a_name_with_commas_logs_in_by_scram() -> None:
    """SEC-SCRAM-05: `=2C` and `=3D` are read back."""
    server = scram()
    exchange(server)
    assert server.user == "a,b=c"


def test_a_name_that_looks_escaped_is_read_back_once() -> None:
    """RFC 5802: an equals sign in a name is sent as `=3D`, so "=2C" as `=3D2C`."""
    server = scram(user="=2C")
    log_in(Credentials("SCRAM-SHA-256", "=2C", PASSWORD), lambda token: server.step(token, 0))
    assert server.user == "=2C"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda m: m.replace(b"c=biws", b"c=eSws"), id="another header: y,,"),
        pytest.param(lambda m: m.replace(b",r=", b",r=x"), id="a longer nonce"),
        pytest.param(lambda m: m[: m.index(b",p=")] + b",p=", id="no proof"),
        pytest.param(lambda m: m[: m.index(b",p=") + 3] + b"AAAA", id="a short proof"),
        pytest.param(lambda m: m[: m.index(b",p=") + 3] + b"=A==", id="no base64"),
        pytest.param(
            lambda m: m[: m.index(b",p=") + 3] + b64encode(b64decode(m[-44:]) + b"x"),
            id="a long proof",
        ),
        pytest.param(lambda m: m.replace(b",p=", b",e=x,p="), id="not what was signed"),
    ],
)
def test_a_changed_last_message_is_refused(change: Callable[[bytes], bytes]) -> None:
    """SEC-SCRAM-08, SEC-SCRAM-09, SEC-SCRAM-10: all of it, and 58 for each."""
    server = scram()
    with pytest.raises(LoginRefused):
        exchange(server, change)
    assert server.user is None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,n=ann",
        b"p=x,,n=a,r=b",
        b"n,,n=a=2cb,r=b",
        "n,,n=\u00e9,r=b".encode(),
        b"n,,n=,r=b",
    ],
)
def test_a_first_message_of_another_form_is_refused(first: bytes) -> None:
    """SEC-SCRAM-04, SEC-SCRAM-05: by the patterns of RFC 5802; names are ASCII, as in 4.3.1."""
    server = scram()
    with pytest.raises(LoginRefused) as refused:
        server.step(first, 0)
    assert refused.value.message is None
    assert server.user is None


def test_an_authorization_id_is_nobody_else_in_scram() -> None:
    """SEC-SCRAM-04: the text of 4.3.1; one's own name is permitted."""
    with pytest.raises(LoginRefused) as refused:
        scram().step(b"n,a=admin,n=a=2Cb=3Dc,r=abc", 0)
    assert refused.value.message == (
        "Authentication failed: Client requested an authorization id that is different from "
        "username"
    )
    assert scram().step(b"n,a=a=2Cb=3Dc,n=a=2Cb=3Dc,r=abc", 0).startswith(b"r=abc")


def test_nothing_follows_a_login_by_scram() -> None:
    """IllegalSaslStateException of 4.3.1: the exchange is over."""
    server = scram()
    last: list[bytes] = []

    def kept(message: bytes) -> bytes:
        last.append(message)
        return message

    exchange(server, kept)
    for message in (b"n,,n=a=2Cb=3Dc,r=abc", *last):
        with pytest.raises(LoginRefused):
            server.step(message, 0)


@pytest.mark.parametrize("nonce", ["{ending}", "abc", "{nonce}x", "x{nonce}"])
def test_a_part_of_the_nonce_is_not_enough_though_the_proof_is_right(nonce: str) -> None:
    """SEC-SCRAM-08: CVE-2024-56128."""
    server = scram()
    with pytest.raises(LoginRefused):
        proven(server, "n=a=2Cb=3Dc,r=abc", f"c=biws,r={nonce}")
    assert server.user is None


def test_users_that_do_not_exist_are_told_nothing_until_the_end() -> None:
    """SEC-SCRAM-06: their challenge is always the same, and nobody's password fits."""
    seen = set()
    for _ in range(2):
        server = scram()
        challenge = server.step(b"n,,n=nobody,r=abc", 0)
        seen.add(challenge.partition(b",")[2])
        with pytest.raises(LoginRefused):
            server.step(challenge.split(b",")[0].replace(b"r=", b"c=biws,r=") + b",p=AAAA", 0)
    assert len(seen) == 1
    other = scram().step(b"n,,n=nobodyelse,r=abc", 0).partition(b",")[2]
    assert other not in seen


def test_a_stored_credential_of_too_few_iterations_does_not_log_in() -> None:
    """SEC-SCRAM-03: not even with the right password."""
    with pytest.raises(LoginRefused):
        exchange(scram(4095))
    exchange(scram(16_384))


def proven(server: ScramServer, bare: str, final: str) -> None:
    """Log in with messages of the test's own, and the right proof for them."""
    challenge = server.step(f"n,,{bare}".encode(), 0).decode()
    nonce = challenge.split(",")[0].removeprefix("r=")
    salted = pbkdf2_hmac("sha256", PASSWORD.encode(), SALT, 4096)
    client_key = digest(salted, b"Client Key", "sha256")
    final = final.format(nonce=nonce, ending=nonce.removeprefix("abc"))
    signed = f"{bare},{challenge},{final}".encode()
    signature = digest(sha256(client_key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server.step(f"{final},p={b64encode(proof).decode()}".encode(), 0)


def test_extensions_are_signed_as_they_came() -> None:
    """SEC-SCRAM-12: in any order and number."""
    server = scram()
    bare = "n=a=2Cb=3Dc,r=abc,zeta=1,alpha=2,zeta=3"
    proven(server, bare, "c=biws,r={nonce},x=1")
    assert server.user == "a,b=c"


def test_the_header_is_compared_though_the_proof_is_right() -> None:
    """SEC-SCRAM-09: `c=` is the base64 of another header, signed by who knows the password."""
    server = scram()
    with pytest.raises(LoginRefused):
        proven(server, "n=a=2Cb=3Dc,r=abc", "c=eSws,r={nonce}")
    assert server.user is None


def test_wrong_passwords_end_at_the_server() -> None:
    """SEC-SCRAM-10: a client with another password proves nothing."""
    server = scram()
    with pytest.raises(LoginRefused):
        log_in(Credentials("SCRAM-SHA-256", "a,b=c", "wrong"), lambda token: server.step(token, 0))
    with pytest.raises(LoginFailed):
        log_in(Credentials("SCRAM-SHA-256", "x", "y"), lambda _: b"r=other,s=AA==,i=4096")
    with pytest.raises(LoginFailed, match="not UTF-8"):
        log_in(Credentials("SCRAM-SHA-256", "x", "y"), lambda _: b"\xff")


def test_names_are_exact_in_plain() -> None:
    """SEC-PLAIN-02, SEC-PLAIN-05: no case folding, no normal forms, no trimming."""
    accounts = {"é": "x"}
    for other in ("e\u0301", "É", "é ", "nobody"):
        with pytest.raises(LoginRefused, match="Invalid username or password"):
            PlainServer(accounts).step(f"\0{other}\0x".encode(), 0)
    server = PlainServer(accounts)
    server.step("\0é\0x".encode(), 0)
    assert server.user == "é"


@pytest.mark.parametrize(
    ("user", "compared"),
    [("ann", [(b"secret", b"guess")]), ("nobody", [(b"", b"guess")])],
)
def test_passwords_are_compared_in_constant_time(
    user: str, compared: list[tuple[bytes, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-PLAIN-04: by the library's function for it, once, for users that do not exist too."""
    seen: list[tuple[bytes, bytes]] = []

    def comparing(one: bytes, other: bytes) -> bool:
        seen.append((one, other))
        return compare_digest(one, other)

    monkeypatch.setattr(plain, "compare_digest", comparing)
    with pytest.raises(LoginRefused, match="Invalid username or password"):
        PlainServer({"ann": "secret"}).step(f"\0{user}\0guess".encode(), 0)
    assert seen == compared


def test_an_authorization_id_is_nobody_else_in_plain() -> None:
    """SEC-PLAIN-03: with the right password of another user."""
    server = PlainServer({"ann": "a", "admin": "b"})
    with pytest.raises(LoginRefused, match="different from username"):
        server.step(b"admin\0ann\0a", 0)
    assert server.user is None


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"ann\0a", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0ann\0a\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0ann\0a\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0a", "Authentication failed: username not specified"),
        (b"ann\0\0", "Authentication failed: username not specified"),
        (b"\0ann\0", "Authentication failed: password not specified"),
    ],
)
def test_a_token_of_another_form_is_refused_in_the_words_of_apache(
    token: bytes, words: str
) -> None:
    """SEC-PLAIN-01: an empty password is none, also of a user who has that."""
    server = PlainServer({"ann": "", "": "a"})
    with pytest.raises(LoginRefused) as refused:
        server.step(token, 0)
    assert refused.value.message == words
    assert server.user is None


def test_nothing_follows_a_login_by_plain() -> None:
    """RFC 4616: the client's one message is the whole exchange."""
    server = PlainServer({"ann": "a", "bob": "b"})
    server.step(b"\0ann\0a", 0)
    with pytest.raises(LoginRefused):
        server.step(b"\0bob\0b", 0)
    assert server.user == "ann"
