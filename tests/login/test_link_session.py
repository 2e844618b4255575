"""Logins of a link at a clock of the test's: when the next one is due, and what waits for it.

The peer is the login of a node's listener, which `tests/apache/test_sasl_on_the_wire.py` compares
with Apache's.
"""

from collections.abc import Sequence

import pytest

from kraft_wire.apis.api import ListenerType
from kraft_wire.apis.registry import served
from kraft_wire.login.client_config import Credentials
from kraft_wire.login.link import LinkLogin
from kraft_wire.login.sasl import LoginFailed, dialogue
from kraft_wire.login.session import LinkSession, until_renewal_ms
from kraft_wire.node.outputs import Close, Peer, RefuseLogin, Reply
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.node.security.login import Login, LoginRules
from kraft_wire.node.security.mechanisms import Mechanism
from kraft_wire.node.security.plain import PlainServer
from kraft_wire.node.security.scram import ScramServer
from kraft_wire.testing.seeded_random import SeededRandom
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeResponse
from kraft_wire.wire.header import RequestHeader, encode_request_header
from kraft_wire.wire.message import Buffer, DecodeLimits
from tests.node.security.test_login import credential

USER, PASSWORD = "a,b=c", "open sesame"
HANDSHAKE, METADATA = 17, 3


def request(number: int) -> bytes:
    """Return a request with its length in front."""
    message = MetadataRequest(topics=[])
    frame = encode_request_header(RequestHeader(METADATA, 9, number, None)) + message.encode(9)
    return len(frame).to_bytes(4, "big") + frame


def key_of(frame: bytes) -> int:
    return int.from_bytes(frame[4:6], "big")


class Wire:
    """A link and its peer, whose sessions last for `session_ms`; bytes take no time."""

    def __init__(self, session_ms: int, mechanism: str = "PLAIN", seed: int = 1) -> None:
        self.session = LinkSession(Credentials(mechanism, USER, PASSWORD), SeededRandom(seed))
        self.accounts = {USER: PASSWORD}
        self.peer = Peer(1, "h", 2, "L")
        decoder = RequestDecoder(served(ListenerType.BROKER), DecodeLimits())
        rules = LoginRules((mechanism,), self._made, decoder, lambda _: session_ms, 100)
        self.peer.login = Login(rules, self.peer)
        self.served: list[bytes] = []
        """Requests that reached the peer and were served."""
        self.logins = 0

    def _made(self, name: str) -> Mechanism:
        if name == "PLAIN":
            return PlainServer(self.accounts)
        return ScramServer(name, {USER: credential(name)}.get, SeededRandom(2), b"secret")

    def opens(self, now_ms: int) -> None:
        self.carries([self.session.begin()], now_ms)
        assert self.session.is_open

    def sends(self, number: int, now_ms: int) -> None:
        """Send a request, and carry all that follows both ways."""
        frame = request(number)
        self.carries(self.session.send([frame], len(frame), now_ms), now_ms)

    def carries(self, buffers: Sequence[Buffer], now_ms: int) -> None:
        """Give the peer these bytes, and the link its answers."""
        waiting = [bytes(each) for each in buffers]
        while waiting:
            for answer in self.takes(waiting.pop(0), now_ms):
                assert self.session.owns(answer)
                waiting += [bytes(each) for each in self.session.take(answer, now_ms)]

    def takes(self, frame: bytes, now_ms: int) -> list[bytes]:
        """Return the peer's answers of a login to a frame."""
        gate = self.peer.login
        outputs = None if gate is None else gate.take(bytearray(frame[4:]), now_ms, now_ms)
        if outputs is None:
            self.served.append(frame)
            return []
        assert not any(isinstance(each, Close) for each in outputs), outputs
        self.logins += key_of(frame) == HANDSHAKE
        replies = [each.reply if isinstance(each, RefuseLogin) else each for each in outputs]
        return [b"".join(each.buffers)[4:] for each in replies if isinstance(each, Reply)]


@pytest.mark.parametrize("seed", range(40))
def test_a_login_is_due_after_85_to_95_percent_of_the_lifetime(seed: int) -> None:
    """SEC-ENV-03: counted from the last token, before which no session can begin."""
    wire = Wire(10_000, seed=seed)
    wire.opens(50)
    wire.sends(1, 50 + 8_499)
    assert wire.logins == 1
    wire.sends(2, 50 + 9_500)
    assert wire.logins == 2
    assert wire.served == [request(1), request(2)]


def test_a_session_counts_from_the_token_and_not_from_its_answer() -> None:
    """SEC-ENV-03: a peer may take long to answer, and its session began before it did."""
    wire = Wire(10_000)
    (handshake,) = wire.takes(wire.session.begin(), 50)
    (token,) = wire.session.take(handshake, 50)
    (answer,) = wire.takes(bytes(token), 2_000)
    assert list(wire.session.take(answer, 4_000)) == []
    wire.sends(1, 50 + 9_500)
    assert wire.logins == 2


def test_the_time_of_a_login_is_drawn_from_the_whole_window() -> None:
    """SEC-ENV-03: nodes that started together do not log in together."""
    drawn = {until_renewal_ms(2_000, SeededRandom(seed).below) for seed in range(2_000)}
    assert drawn == set(range(1_700, 1_901))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("session_ms", [1_200, 2_000, 60_000])
def test_a_link_that_is_used_or_idle_never_meets_the_end_of_a_session(
    mechanism: str, session_ms: int
) -> None:
    """SEC-ENV-03: `takes` fails if the peer closes; an idle link logs in before its request."""
    wire, chance, now_ms = Wire(session_ms, mechanism), SeededRandom(3), 0
    wire.opens(now_ms)
    for number in range(300):
        now_ms += chance.below(session_ms // 4 if number % 10 else session_ms * 3)
        wire.sends(number, now_ms)
    assert wire.served == [request(number) for number in range(300)]
    assert wire.logins > 20


def test_a_peer_without_a_lifetime_is_sent_one_login() -> None:
    """SEC-ENV-03: a lifetime of 0, as without connections.max.reauth.ms."""
    wire = Wire(0)
    wire.opens(0)
    wire.sends(1, 10**12)
    assert (wire.logins, wire.served) == (1, [request(1)])
    assert until_renewal_ms(-1, SeededRandom(1).below) is None


def test_answers_in_flight_are_not_of_the_login_and_requests_wait_behind_it() -> None:
    """SEC-ENV-03: nothing but the login is sent until it is complete, then all in order."""
    wire, now_ms = Wire(10_000), 9_600
    wire.opens(0)
    wire.sends(7, 10)  # its answer is late
    frames = [request(number) for number in (8, 9)]
    (handshake,) = wire.session.send([frames[0][:4], frames[0][4:]], len(frames[0]), now_ms)
    assert key_of(bytes(handshake)) == HANDSHAKE
    assert not wire.session.owns((7).to_bytes(4, "big") + b"late")
    assert wire.session.send([frames[1]], len(frames[1]), now_ms + 1) == []
    assert wire.session.held_bytes == len(frames[0]) + len(frames[1])
    (agreed,) = wire.takes(bytes(handshake), now_ms + 2)
    assert wire.session.owns(agreed)
    (token,) = wire.session.take(agreed, now_ms + 3)
    assert not wire.session.owns((7).to_bytes(4, "big") + b"late")
    (accepted,) = wire.takes(bytes(token), now_ms + 4)
    released = wire.session.take(accepted, now_ms + 5)
    assert b"".join(released) == b"".join(frames)
    assert wire.session.held_bytes == 0
    assert not wire.session.owns(accepted)
    assert wire.session.send([frames[0]], len(frames[0]), now_ms + 6) == [frames[0]]


def test_a_refused_second_login_fails_with_the_words_of_the_peer() -> None:
    """SEC-ENV-03: the request that waited is not sent."""
    wire = Wire(10_000)
    wire.opens(0)
    wire.accounts[USER] = "another"
    with pytest.raises(LoginFailed, match="Authentication failed: Invalid username or password"):
        wire.sends(1, 9_600)
    assert wire.served == []


@pytest.mark.parametrize(
    ("offered", "words"),
    [(["PLAIN", "X"], "mechanisms: PLAIN, X"), ([], "mechanisms: none")],
)
def test_a_peer_without_the_mechanism_names_those_that_it_has(
    offered: list[str], words: str
) -> None:
    """KIP-43: UNSUPPORTED_SASL_MECHANISM comes with the enabled mechanisms."""
    login = LinkLogin(Credentials("SCRAM-SHA-512", USER, PASSWORD))
    assert key_of(login.begin()) == HANDSHAKE
    answer = SaslHandshakeResponse(error_code=33, mechanisms=offered)
    with pytest.raises(LoginFailed, match=words):
        login.take(bytes(4) + answer.encode(1))


@pytest.mark.parametrize("answer", [b"", bytes(3), bytes(4), bytes(4) + b"\0\0\x7f\xff\xff\xff"])
def test_an_answer_of_another_form_fails_a_login(answer: bytes) -> None:
    """Bytes of a peer that is no broker end the login with its one error."""
    login = LinkLogin(Credentials("PLAIN", USER, PASSWORD))
    login.begin()
    with pytest.raises(LoginFailed, match="the peer's answer to a login is none"):
        login.take(answer)


def test_a_login_follows_another_one_after_a_second_at_the_soonest() -> None:
    """SEC-ENV-03, SEC-SASL-24: the peer would answer ILLEGAL_SASL_STATE, as Apache's does."""
    wire = Wire(1_000)
    wire.opens(0)
    wire.sends(1, 1_000)
    assert wire.logins == 1
    wire.sends(2, 1_001)
    assert wire.logins == 2
    assert wire.served == [request(1), request(2)]


@pytest.mark.parametrize("signature", ["v=\u00e9", "e=other-error", "", "v="])
def test_a_signature_of_another_form_fails_a_login(signature: str) -> None:
    tokens = dialogue(Credentials("SCRAM-SHA-256", USER, PASSWORD), "nonce")
    next(tokens)
    tokens.send(b"r=nonce-of-both,s=QQ==,i=4096")
    with pytest.raises(LoginFailed, match="its SCRAM signature is wrong"):
        tokens.send(signature.encode())
