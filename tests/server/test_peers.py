"""The host's side of links, over real sockets of 127.0.0.1 and both event loops."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from select import select
from typing import Any, cast

import pytest

from kraft_wire.login.link import LOGIN_CORRELATION_ID
from kraft_wire.node.config.security import LinkSecurity
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Connect, Disconnect, SendBytes
from kraft_wire.server.peers import Links
from kraft_wire.testing.seeded_random import SeededRandom
from kraft_wire.wire.generated.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kraft_wire.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kraft_wire.wire.message import Message
from tests.waiting import HANG_S

SECURED = "SECURED"


class Listening:
    """A node that only notes what it hears, its links, and a socket to connect to."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: ServerLimits) -> None:
        self.loop = loop
        self.heard: list[tuple[object, ...]] = []
        self.lines: list[str] = []
        self.settled = 0
        self.random_source = SeededRandom(1)
        self.links = Links(
            self,
            limits,
            self._settle,
            lambda name, **_: self.lines.append(name),
            {SECURED: LinkSecurity("SASL_PLAINTEXT", None, "PLAIN", "ann", "secret")},
        )
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(HANG_S)
        self.port: int = self.listener.getsockname()[1]

    def _settle(self) -> None:
        self.settled += 1

    def link_up(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        self.heard.append(("up", link_id))

    def link_frame(self, link_id: int, frame: bytes, now_ms: int, wall_ms: int) -> None:
        self.heard.append(("frame", link_id, frame))

    def link_down(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        self.heard.append(("down", link_id))

    def order(self, output: Connect | SendBytes | Disconnect) -> None:
        self.links.carry_out(output, self.loop)

    def until(self, is_done: Callable[[], bool]) -> None:
        """Run the loop until something has happened."""

        async def wait() -> None:
            while not is_done():
                await asyncio.sleep(0.001)

        self.loop.run_until_complete(asyncio.wait_for(wait(), HANG_S))

    def connected(self, link_id: int = 1) -> socket.socket:
        """Open a link; return the far end."""
        self.order(Connect(link_id, "127.0.0.1", self.port))
        self.until(lambda: ("up", link_id) in self.heard)
        far, _ = self.listener.accept()
        far.settimeout(HANG_S)
        return far

    def logged_in(self, lifetime_ms: int) -> socket.socket:
        """Open a link that logs in, and forward the clock to the end of its session."""
        self.order(Connect(1, "127.0.0.1", self.port, SECURED))
        self.until(lambda: select([self.listener], [], [], 0)[0] != [])
        far, _ = self.listener.accept()
        self.takes(far, SaslHandshakeRequest)
        far.sendall(login_answer(SaslHandshakeResponse(mechanisms=["PLAIN"])))
        token = self.takes(far, SaslAuthenticateRequest)
        assert token.endswith(b"\0ann\0secret")
        assert self.heard == []
        far.sendall(login_answer(SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms)))
        self.until(lambda: self.heard == [("up", 1)])
        later_ms = self.links.now_ms() + lifetime_ms
        self.links.now_ms = lambda: later_ms
        return far

    def takes(self, far: socket.socket, request: type[Message]) -> bytes:
        """Run the loop until the far end has a frame, which must be of this request."""
        far.setblocking(False)
        received = bytearray()

        def is_whole() -> bool:
            with suppress(BlockingIOError):
                received.extend(far.recv(4_096))
            return len(received) > 4 and len(received) == 4 + int.from_bytes(received[:4], "big")

        self.until(is_whole)
        assert int.from_bytes(received[4:6], "big") == request.API_KEY, received
        return bytes(received)

    def until_closed(self, far: socket.socket) -> None:
        """Run the loop until the far end sees the link's end."""
        far.setblocking(False)

        def is_closed() -> bool:
            try:
                return far.recv(1) == b""
            except BlockingIOError:
                return False
            except ConnectionError:
                return True

        self.until(is_closed)

    def send(self, data: bytes, link_id: int = 1) -> None:
        self.order(SendBytes(link_id, [data], len(data)))


def login_answer(response: Message) -> bytes:
    """Return an answer of a login in version 1, with its length."""
    frame = LOGIN_CORRELATION_ID.to_bytes(4, "big") + response.encode(1)
    return len(frame).to_bytes(4, "big") + frame


def loops() -> list[Callable[[], asyncio.AbstractEventLoop]]:
    try:
        import uvloop
    except ImportError:
        return [asyncio.new_event_loop]
    return [
        asyncio.new_event_loop,
        cast(Callable[[], asyncio.AbstractEventLoop], uvloop.new_event_loop),
    ]


@pytest.fixture(params=loops(), ids=lambda each: each.__module__.partition(".")[0])
def node(request: pytest.FixtureRequest) -> Iterator[Listening]:
    loop = request.param()
    listening = Listening(loop, ServerLimits(frame_bytes_max=4_096, unsent_bytes_max=1_000_000))
    yield listening
    listening.listener.close()
    listening.links.close_all()
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_frames_cross_both_ways_in_any_pieces(node: Listening) -> None:
    with node.connected() as far:
        node.send(b"\0\0\0\3abc")
        node.send(b"\0\0\0\1d")
        node.until(lambda: True)
        assert far.recv(12, socket.MSG_WAITALL) == b"\0\0\0\3abc\0\0\0\1d"
        for piece in (b"\0\0", b"\0\2x", b"y\0\0\0\0\0", b"\0\0\1z"):
            far.sendall(piece)
            node.until(lambda: True)
        node.until(lambda: len(node.heard) == 4)
    frames = [(1, b"xy"), (1, b""), (1, b"z")]
    assert node.heard == [("up", 1), *[("frame", *each) for each in frames]]
    assert node.settled == 4


def test_a_refused_connection_is_reported_down(node: Listening) -> None:
    node.listener.close()
    node.order(Connect(1, "127.0.0.1", node.port))
    node.until(lambda: node.heard == [("down", 1)])


@pytest.mark.parametrize(
    ("host", "port"),
    [("no-such-host.invalid", 1), ("127.0.0.1", 70_000), ("x" * 300, 1), ("a..b", 1)],
)
def test_an_address_that_is_none_is_reported_down(node: Listening, host: str, port: int) -> None:
    node.order(Connect(1, host, port))
    assert node.heard == []
    node.until(lambda: node.heard == [("down", 1)])


def test_a_name_is_resolved_beside_the_loop(node: Listening) -> None:
    node.order(Connect(1, "localhost", node.port))
    node.until(lambda: node.heard == [("up", 1)])


def test_names_without_an_answer_hold_up_neither_other_links_nor_the_end(
    node: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More names than a loop's pool has threads, each asked for again before its answer."""
    answers = threading.Event()
    resolve = socket.getaddrinfo

    def slow(host: str, port: int, **options: Any) -> Any:
        if host.startswith("silent") and not options["flags"]:
            assert answers.wait(HANG_S)
            host = "127.0.0.1"
        return resolve(host, port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    for link_id in range(2, 102):
        node.order(Connect(link_id, f"silent-{link_id % 50}", node.port))
    node.order(Connect(1, "localhost", node.port))
    node.until(lambda: node.heard == [("up", 1)])
    waiting = [each for each in threading.enumerate() if "_resolve" in each.name]
    assert len(waiting) == 50
    assert all(each.daemon for each in waiting), "the process would wait for them"
    for link_id in range(2, 52):
        node.order(Disconnect(link_id))
    answers.set()
    node.until(lambda: len(node.heard) == 51)
    assert sorted(node.heard) == [("up", 1), *(("up", link_id) for link_id in range(52, 102))]


def test_a_link_that_the_peer_closes_is_reported_down_once(node: Listening) -> None:
    node.connected().close()
    node.until(lambda: ("down", 1) in node.heard)
    node.order(Disconnect(1))
    node.send(b"late")
    node.until(lambda: True)
    assert node.heard == [("up", 1), ("down", 1)]


def test_a_length_above_the_limit_ends_the_link_before_memory_is_taken(node: Listening) -> None:
    with node.connected() as far:
        far.sendall(b"\0\0\0\1a\x7f\xff\xff\xff")
        node.until(lambda: ("down", 1) in node.heard)
        node.until_closed(far)
    assert node.heard == [("up", 1), ("frame", 1, b"a"), ("down", 1)]
    assert node.lines == ["peer_frame_refused"]


def test_nothing_is_reported_of_a_link_that_the_node_disconnects(node: Listening) -> None:
    with node.connected() as far:
        far.sendall(b"\0\0\0\1a")
        node.order(Disconnect(1))
        node.until_closed(far)
    node.order(Connect(2, "127.0.0.1", node.port))
    node.order(Disconnect(2))
    for _ in range(5):
        node.until(lambda: True)
    assert node.heard == [("up", 1)]


def test_a_peer_that_takes_nothing_is_given_up(node: Listening) -> None:
    with node.connected():
        for _ in range(100):
            node.send(bytes(1_000_000))
        node.until(lambda: ("down", 1) in node.heard)


def test_a_request_at_the_end_of_a_session_waits_for_a_login(node: Listening) -> None:
    """SEC-ENV-03: an answer in flight reaches the node meanwhile, and the link stays."""
    with node.logged_in(10_000) as far:
        node.send(b"\0\0\0\3abc")
        node.takes(far, SaslHandshakeRequest)
        node.send(b"\0\0\0\1d")
        far.sendall(b"\0\0\0\5\0\0\0\7z" + login_answer(SaslHandshakeResponse()))
        node.takes(far, SaslAuthenticateRequest)
        node.until(lambda: ("frame", 1, b"\0\0\0\7z") in node.heard)
        far.sendall(login_answer(SaslAuthenticateResponse(session_lifetime_ms=10_000)))
        node.until(
            lambda: bool(select([far], [], [], 0)[0]) and len(far.recv(99, socket.MSG_PEEK)) == 12
        )
        assert far.recv(99) == b"\0\0\0\3abc\0\0\0\1d"
    assert node.heard == [("up", 1), ("frame", 1, b"\0\0\0\7z")]
    assert node.lines == []


def test_a_refused_second_login_closes_the_link_with_a_line(node: Listening) -> None:
    """SEC-ENV-03: the request that waited is never sent."""
    with node.logged_in(10_000) as far:
        node.send(b"\0\0\0\3abc")
        node.takes(far, SaslHandshakeRequest)
        far.sendall(login_answer(SaslHandshakeResponse()))
        node.takes(far, SaslAuthenticateRequest)
        refusal = SaslAuthenticateResponse(error_code=58, error_message="Authentication failed")
        far.sendall(login_answer(refusal))
        node.until_closed(far)
    assert node.heard == [("up", 1), ("down", 1)]
    assert node.lines == ["peer_login_failed"]


def test_requests_that_wait_for_a_silent_login_are_bounded(node: Listening) -> None:
    """SEC-ENV-03: they count as unsent bytes."""
    with node.logged_in(10_000) as far:
        node.send(bytes(600_000))
        node.takes(far, SaslHandshakeRequest)
        node.send(bytes(600_000))
        node.until(lambda: ("down", 1) in node.heard)
        node.until_closed(far)


def test_what_fails_in_the_node_is_not_reported_as_a_refused_login(
    node: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(98, "Address already in use")

    with node.connected() as far:
        monkeypatch.setattr(node, "link_frame", fails)
        far.sendall(b"\0\0\0\1a")
        node.until_closed(far)
    node.until(lambda: ("down", 1) in node.heard)
    assert node.lines == []
