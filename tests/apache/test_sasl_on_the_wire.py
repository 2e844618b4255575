"""The login, frame by frame: what Apache Kafka answers and when it closes, and what we do.

Every conversation is held with both nodes. Lists whose order is arbitrary are sorted, drawn nonces
and what depends on them replaced; everything else has to be the same bytes.
"""

import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import log_in
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.create_topics import CreateTopicsRequest
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import Message
from tests.apache.secured_node import ACCOUNTS, SecuredApache, SecuredNode, sasl_settings
from tests.waiting import HANG_S

pytestmark = [pytest.mark.java, pytest.mark.slow]
GOOD = b"\0ann\0" + ACCOUNTS["ann"].encode()
QUIET_S = 1.0
"""Apache closes 300 ms after a failure; who is open after this stays open."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SecuredApache, SecuredNode]]:
    directory = tmp_path_factory.mktemp("sasl")
    settings = {**sasl_settings("SECURE"), "sasl.server.max.receive.size": "65536"}
    ours = SecuredNode(directory / "ours", "SASL_PLAINTEXT", settings)
    ours.format()
    with SecuredApache(directory / "apache", "SASL_PLAINTEXT", settings) as apache, ours:
        yield apache, ours


class Conversation:
    """One connection, and everything that came back on it."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._sock = socket.create_connection((host, int(port)), timeout=HANG_S)
        self.heard: list[object] = []
        self._correlation_id = 0

    def asks(self, request: Message, version: int) -> None:
        """Send a request and note its answer."""
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, "c")
        known = min(version, request.MAX_VERSION)
        self.says(encode_request_header(header) + request.encode(known))
        frame = self.next_frame()
        if frame is not None:
            self.heard.append(_shown(frame, request.API_KEY, known))

    def says(self, payload: bytes) -> None:
        """Send bytes behind their length."""
        self.sends(struct.pack(">i", len(payload)) + payload)

    def sends(self, data: bytes) -> None:
        with suppress(ConnectionError):
            self._sock.sendall(data)

    def hears(self) -> None:
        """Note the next frame as it is."""
        frame = self.next_frame()
        if frame is not None:
            self.heard.append(frame)

    def next_frame(self) -> bytes | None:
        """Return the next frame; without one, note that the connection ended."""
        size = self._exactly(4)
        data = None if size is None else self._exactly(int.from_bytes(size, "big"))
        if data is None:
            self.heard.append("closed")
        return data

    def ends(self) -> list[object]:
        """Note whether the connection stays open, and return everything."""
        if self.heard[-1:] != ["closed"]:
            self._sock.settimeout(QUIET_S)
            try:
                self.heard.append("more" if self._sock.recv(1) else "closed")
            except TimeoutError:
                self.heard.append("open")
            except ConnectionError:
                self.heard.append("closed")
        self._sock.close()
        return self.heard

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                more = self._sock.recv(size - len(data))
            except ConnectionError:
                return None
            if not more:
                return None
            data += more
        return data


def _shown(frame: bytes, api_key: int, version: int) -> object:
    _, at = parse_response_header(frame, api_key, version)
    if api_key == 17:
        answer, _ = SaslHandshakeResponse.decode(frame, version, at)
        return answer.error_code, sorted(answer.mechanisms)
    if api_key == 36:
        answer, _ = SaslAuthenticateResponse.decode(frame, version, at)
        return answer.error_code, answer.error_message, answer.session_lifetime_ms
    if api_key == 18:
        return frame[at : at + 2]
    if api_key == 3:
        return len(frame)  # the ports differ
    return frame


def _versions(software: str = "x") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=software, client_software_version="1")


def _chosen(name: str = "PLAIN", version: int = 1) -> Callable[[Conversation], None]:
    return lambda talk: talk.asks(SaslHandshakeRequest(mechanism=name), version)


def _token(token: bytes, version: int = 2) -> Callable[[Conversation], None]:
    return lambda talk: talk.asks(SaslAuthenticateRequest(auth_bytes=token), version)


def _ask(request: Message, version: int) -> Callable[[Conversation], None]:
    return lambda talk: talk.asks(request, version)


def _raw(payload: bytes) -> Callable[[Conversation], None]:
    def say(talk: Conversation) -> None:
        talk.says(payload)
        talk.hears()

    return say


def _bytes(data: bytes) -> Callable[[Conversation], None]:
    def send(talk: Conversation) -> None:
        talk.sends(data)
        talk.hears()

    return send


_METADATA = _ask(MetadataRequest(topics=[]), 9)
_CLUSTER = _ask(DescribeClusterRequest(), 0)
TALKS: dict[str, Sequence[Callable[[Conversation], None]]] = {
    "versions, then PLAIN": [_ask(_versions(), 3), _chosen(), _token(GOOD), _METADATA],
    "PLAIN at once, v0 of the token": [_chosen(), _token(GOOD, 0), _METADATA],
    "v1 of the token": [_chosen(), _token(GOOD, 1)],
    "versions twice": [_ask(_versions(), 3), _ask(_versions(), 3)],
    "versions after the login": [_chosen(), _token(GOOD), _ask(_versions(), 3)],
    "unknown versions": [_ask(_versions(), 9), _ask(_versions(), 9), _ask(_versions(), 4)],
    "bad software": [_ask(_versions("-x"), 3), _ask(_versions("-x"), 3), _chosen()],
    "unknown mechanism": [_chosen("OTHER")],
    "lower case": [_chosen("plain")],
    "GSSAPI": [_chosen("GSSAPI")],
    "handshake twice": [_chosen(), _chosen()],
    "handshake after the login": [_chosen(), _token(GOOD), _chosen(), _METADATA],
    "token after the login": [_chosen(), _token(GOOD), _token(GOOD), _METADATA],
    "token before the handshake": [_token(GOOD)],
    "metadata first": [_METADATA],
    "metadata in the middle": [_chosen(), _METADATA],
    "another request in the middle": [_chosen(), _CLUSTER],
    "versions in the middle": [_chosen(), _ask(_versions(), 0)],
    "unknown version of the token": [_chosen(), _token(GOOD, 9)],
    "wrong password": [_chosen(), _token(b"\0ann\0wrong")],
    "unknown user": [_chosen(), _token(b"\0nobody\0wrong")],
    "two parts": [_chosen(), _token(b"ann\0wrong")],
    "many parts": [_chosen(), _token(b"a\0b\0c\0d\0e\0f")],
    "empty token": [_chosen(), _token(b"")],
    "no user": [_chosen(), _token(b"\0\0pw")],
    "no password": [_chosen(), _token(b"\0ann\0")],
    "own authzid": [_chosen(), _token(b"ann" + GOOD)],
    "other authzid": [_chosen(), _token(b"admin" + GOOD)],
    "other authzid and password": [_chosen(), _token(b"admin\0ann\0wrong")],
    "other case of the user": [_chosen(), _token(GOOD.replace(b"ann\0", b"ANN\0"))],
    "no UTF-8": [_chosen(), _token(b"\0\xff\xfe\0pw")],
    "bare token": [_chosen(version=0), _raw(GOOD), _METADATA],
    "bare wrong token": [_chosen(version=0), _raw(b"\0ann\0wrong")],
    "bare empty token": [_chosen(version=0), _raw(b"")],
    "empty frame": [_raw(b"")],
    "two bytes": [_raw(b"\0\x12")],
    "rubbish": [_raw(b"rubbish of no use")],
    "HTTP": [_bytes(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")],
    "negative length": [_bytes(b"\xff\xff\xff\xff")],
    "length above the limit": [_bytes(struct.pack(">i", 65_537))],
    "largest length": [_bytes(b"\x7f\xff\xff\xff")],
    "a handshake of TLS": [_bytes(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03")],
    "GSSAPI token": [_raw(b"\x60\x82\x02\x00\x06\x09\x2a\x86\x48")],
    "SCRAM: wrong form": [_chosen("SCRAM-SHA-256"), _token(b"hello")],
    "SCRAM: channel binding": [_chosen("SCRAM-SHA-256"), _token(b"p=x,,n=ann,r=abc")],
    "SCRAM: y": [_chosen("SCRAM-SHA-256"), _token(b"y,,n=ann,r=abc")],
    "SCRAM: other authzid": [_chosen("SCRAM-SHA-256"), _token(b"n,a=bob,n=ann,r=abc")],
    "SCRAM: name with =": [_chosen("SCRAM-SHA-256"), _token(b"n,,n=a=b,r=abc")],
    "SCRAM: no ASCII": [_chosen("SCRAM-SHA-256"), _token("n,,n=änn,r=abc".encode())],
    "SCRAM: token of an unknown user": [
        _chosen("SCRAM-SHA-256"),
        _token(b"n,,n=ann,r=abc,tokenauth=true"),
    ],
    "SCRAM: last message first": [
        _chosen("SCRAM-SHA-512"),
        _token(b"c=biws,r=abc,p=" + b"A" * 86 + b"=="),
    ],
    "SCRAM: first message twice": [
        _chosen("SCRAM-SHA-512"),
        _token(b"n,,n=ann,r=abc"),
        _token(b"n,,n=ann,r=abc"),
    ],
    "SCRAM: other nonce": [
        _chosen("SCRAM-SHA-256"),
        _token(b"n,,n=ann,r=abc"),
        _token(b"c=biws,r=abc,p=" + b"A" * 43 + b"="),
    ],
}


@pytest.mark.parametrize("name", TALKS)
def test_a_conversation_is_as_apaches(nodes: tuple[SecuredApache, SecuredNode], name: str) -> None:
    """SEC-SASL-01, SEC-SASL-02, SEC-SASL-03, SEC-SASL-04, SEC-SASL-06, SEC-SASL-07, SEC-SASL-08,
    SEC-SASL-09, SEC-SASL-10, SEC-SASL-11, SEC-SASL-12, SEC-SASL-13, SEC-SASL-16, SEC-SASL-18,
    SEC-PLAIN-01, SEC-PLAIN-03, SEC-SCRAM-04, SEC-SCRAM-05, SEC-SCRAM-13: the same answers and ends.
    """
    seen = []
    for node in nodes:
        talk = Conversation(node.secure)
        for step in TALKS[name]:
            step(talk)
        seen.append(talk.ends())
    theirs, ours = seen
    assert ours == theirs


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_ends_with_the_servers_signature(
    nodes: tuple[SecuredApache, SecuredNode], mechanism: str
) -> None:
    """SEC-SCRAM-01, SEC-SCRAM-02, SEC-SCRAM-07, SEC-SCRAM-11: the client checks both sides."""
    for node in nodes:
        talk = Conversation(node.secure)
        talk.asks(SaslHandshakeRequest(mechanism=mechanism), 1)
        log_in(
            Credentials(mechanism, "ann", ACCOUNTS["ann"]), lambda token, t=talk: _sent(t, token)
        )
        talk.asks(MetadataRequest(topics=[]), 9)
        assert talk.ends()[-1] == "open"


def _sent(talk: Conversation, token: bytes) -> bytes:
    request = SaslAuthenticateRequest(auth_bytes=token)
    talk.says(encode_request_header(RequestHeader(36, 1, 7, "c")) + request.encode(1))
    frame = talk.next_frame()
    assert frame is not None, "closed"
    _, at = parse_response_header(frame, 36, 1)
    answer, _ = SaslAuthenticateResponse.decode(frame, 1, at)
    assert not answer.error_code, answer
    return bytes(answer.auth_bytes)


@pytest.mark.parametrize("is_good", [True, False])
def test_what_is_pipelined_behind_a_login_is_served_in_order_or_never(
    nodes: tuple[SecuredApache, SecuredNode], is_good: bool
) -> None:
    """SEC-SASL-19: behind a failed login nothing is done."""
    token = GOOD if is_good else b"\0ann\0wrong"
    requests: list[tuple[Message, int]] = [
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=token), 2),
        (MetadataRequest(topics=[]), 9),
        (CreateTopicsRequest(topics=[]), 7),
    ]
    frames = b""
    for number, (request, version) in enumerate(requests):
        header = RequestHeader(request.API_KEY, version, number, "c")
        payload = encode_request_header(header) + request.encode(version)
        frames += struct.pack(">i", len(payload)) + payload
    for node in nodes:
        talk = Conversation(node.secure)
        talk.sends(frames)
        answers: list[Any] = [talk.next_frame() for _ in range(4 if is_good else 3)]
        numbers = [int.from_bytes(each[:4], "big") for each in answers if each is not None]
        assert numbers == ([0, 1, 2, 3] if is_good else [0, 1])
        assert talk.ends()[-1] == ("open" if is_good else "closed")
