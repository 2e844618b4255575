"""A connection over transports that stop anywhere: short writes, no bytes yet, ended streams."""

import socket
from pathlib import Path
from struct import pack

import pytest

from kraft_wire.model import FileSlice
from kraft_wire.node.limits import RequestMemory, ServerLimits
from kraft_wire.node.outputs import Buffers
from kraft_wire.server.transport import PlainTransport
from tests.server.memory_transports import (
    Answer,
    Client,
    Loop,
    PlainClient,
    PlainWire,
    TlsClient,
    TlsWire,
)

REQUESTS = [b"%8d" % number + bytes(number * 7) for number in range(4)]
STREAM = b"".join(pack(">i", len(each)) + each for each in REQUESTS)
KINDS = {"plain": (PlainWire, PlainClient), "tls": (TlsWire, TlsClient)}

both = pytest.mark.parametrize("kind", KINDS)


class LogFile:
    """A log file of which each byte differs from its neighbours."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        return bytes(at % 251 for at in range(position, position + size_bytes))

    def fileno(self) -> int:
        return 7


def echo(frame: bytes) -> Buffers:
    return [b"<", frame, b">"]


def echoed(frames: list[bytes]) -> bytes:
    return b"".join(b"<" + each + b">" for each in frames)


def connected(kind: str, answer: Answer = echo) -> tuple[Loop, Client]:
    make_wire, make_client = KINDS[kind]
    wire = make_wire()
    return Loop(wire, answer), make_client(wire)


def talk(loop: Loop, client: Client) -> bytes:
    """Let both sides go on until neither has more to say; return what the client has seen."""
    before = None
    while before != (before := (loop.wire.sent[:], client.sees(), len(loop.wire.received))):
        loop.run()
    return client.sees()


def trickle(loop: Loop, client: Client, bytes_max: int) -> None:
    """Let the client's bytes arrive one by one, up to a number of them."""
    arriving = b""
    while bytes_max and (arriving or loop.wire.received):
        arriving += bytes(loop.wire.received)
        loop.wire.received[:] = arriving[:1]
        arriving = arriving[1:]
        bytes_max -= 1
        loop.run()
        loop.connection.on_readable(0)  # woken for nothing: the wire has no byte
        client.sees()
    loop.wire.received.clear()


@both
def test_requests_that_arrive_byte_by_byte_are_answered_in_order(kind: str) -> None:
    loop, client = connected(kind)
    client.sends(STREAM)
    trickle(loop, client, 1_000_000)
    assert loop.frames == REQUESTS
    assert client.sees() == echoed(REQUESTS)
    assert not loop.drops


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_stream_that_ends_anywhere_ends_the_connection_once(cut: int) -> None:
    loop, client = connected("plain")
    client.sends(STREAM[:cut])
    loop.wire.is_ended = True
    loop.run()
    whole = [each for at, each in enumerate(REQUESTS) if _end_of(at) <= cut]
    assert loop.frames == whole
    assert loop.drops == [None]
    assert loop.wire.is_closed


def _end_of(request: int) -> int:
    return sum(4 + len(each) for each in REQUESTS[: request + 1])


def test_encrypted_stream_that_ends_anywhere_ends_the_connection_once() -> None:
    """In the middle of the handshake, of a record, and behind one."""
    delivered = set()
    for cut in range(0, 1_000, 13):
        loop, client = connected("tls")
        client.sends(STREAM)
        trickle(loop, client, cut)
        loop.wire.is_ended = True
        loop.run()
        assert loop.frames == REQUESTS[: len(loop.frames)]
        assert loop.drops == [None], cut
        delivered.add(len(loop.frames))
    assert {0, len(REQUESTS)} <= delivered, "cuts in the handshake and behind everything"


@both
@pytest.mark.parametrize("bytes_per_send", [1, 2, 7, 1_000, 70_000])
def test_answers_survive_sockets_that_take_little_and_then_nothing(
    kind: str, bytes_per_send: int
) -> None:
    """Each send takes a few bytes; the socket is full after each third of them."""
    records = FileSlice(LogFile(), 5, 66_000)
    loop, client = connected(kind, lambda frame: [b"<", records, frame, b">"])
    client.sends(STREAM)
    loop.wire.bytes_per_send = bytes_per_send
    loop.wire.room_bytes = 0
    before = -1
    while before != len(loop.wire.sent) or loop.wire.received:
        before = len(loop.wire.sent)
        loop.run()
        loop.wire.room_bytes = 3 * bytes_per_send if bytes_per_send > 10 else 5_000
        loop.run()
        loop.wire.room_bytes = 0
        client.sees()
    assert client.sees() == b"".join(b"<" + records.read() + each + b">" for each in REQUESTS)
    assert not loop.drops


@pytest.mark.parametrize("answers_at_once", [True, False])
def test_bytes_that_are_decrypted_already_are_read_without_the_socket(
    answers_at_once: bool,
) -> None:
    """The loop wakes a connection for bytes of its socket; a transport may hold all of them."""
    loop, client = connected("tls")
    loop.answers_at_once = answers_at_once
    talk(loop, client)
    requests = [*REQUESTS, *(b"%8d" % number + bytes(50_000) for number in range(4)), *REQUESTS]
    for each in requests:
        client.sends(pack(">i", len(each)) + each)  # each begins a record
    for _ in requests:
        talk(loop, client)
        loop.answer_all()
    assert loop.frames == requests
    assert client.sees() == echoed(requests)


def test_connection_with_large_answers_and_decrypted_bytes_is_deferred_once() -> None:
    loop, client = connected("tls", lambda frame: [bytes(2_000_000)])
    talk(loop, client)
    client.sends(STREAM)
    client.sends(STREAM)
    talk(loop, client)
    assert loop.frames == REQUESTS * 2
    assert len(client.sees()) == 8 * 2_000_000


def test_ciphertext_that_the_peer_does_not_take_is_bounded() -> None:
    loop, client = connected("tls", lambda frame: [bytes(1_000)])
    talk(loop, client)
    loop.limits = ServerLimits(unsent_bytes_max=1_000)
    loop.wire.room_bytes = 0
    client.sends(STREAM[: _end_of(0)])
    loop.run()
    (rejection,) = loop.drops
    assert rejection is not None
    assert rejection.reason == "write_buffer_full"


def test_frame_that_waits_for_memory_goes_on_with_decrypted_bytes() -> None:
    loop, client = connected("tls")
    loop.memory.bytes_max = 1
    loop.memory.reserve(7, 1_000)
    frame = b"%8d" % 1 + bytes(50_000)
    talk(loop, client)
    client.sends(pack(">i", len(frame)) + frame)
    talk(loop, client)
    assert loop.frames == [], "another connection holds the memory"
    assert loop.memory.release(7) == [1]
    loop.connection.memory_is_free()
    talk(loop, client)
    assert loop.frames == [frame]


def test_ciphertext_that_waits_keeps_a_connection_open_and_counts() -> None:
    loop, client = connected("tls")
    client.sends(STREAM[: _end_of(0)])
    loop.wire.room_bytes = 1_000_000
    loop.answers_at_once = False
    talk(loop, client)
    loop.wire.room_bytes = 0
    loop.connection.is_last_answer = True
    loop.answer_all()
    assert loop.connection.unsent_bytes > len(echoed(REQUESTS[:1])), "TLS has taken all of it"
    loop.run()
    assert not loop.drops, "the answer is not sent"
    loop.wire.room_bytes = 1_000_000
    loop.run()
    assert client.sees() == echoed(REQUESTS[:1])
    assert loop.drops == [None]


def test_plain_transport_hands_everything_to_the_socket(tmp_path: Path) -> None:
    here, there = socket.socketpair()
    with here, there, (tmp_path / "log").open("w+b", buffering=0) as log:
        here.setblocking(False)
        log.write(b"0123456789")
        transport = PlainTransport(here)
        room = memoryview(bytearray(4))
        with pytest.raises(BlockingIOError):
            transport.recv_into(room)
        there.sendall(b"abc")
        assert (transport.recv_into(room), bytes(room[:3])) == (3, b"abc")
        assert transport.send([b"x"], True) == 1
        assert transport.send([b"yz", bytearray(b"!")], False) == 3
        part = FileSlice(log, 2, 5)  # type: ignore[arg-type]  # only its descriptor is asked for
        assert transport.sendfile(part) == 5
        assert there.recv(100) == b"xyz!23456"
        there.close()
        assert transport.recv_into(room) == 0
        assert transport.fileno() == here.fileno()
        assert (transport.has_pending, transport.unsent_bytes) == (False, 0)
        transport.close()
        assert here.fileno() == -1


class TalkativeWire(PlainWire):
    """Has a byte for its peer for each that it receives, as TLS has for a key update."""

    data = b""

    def recv_into(self, room: memoryview, /) -> int:
        self.unsent_bytes += len(self.recv(64 * 1024))
        if not self.data:
            raise BlockingIOError
        room[:1], self.data = self.data[:1], self.data[1:]
        return 1

    def flush(self) -> None:
        self.unsent_bytes -= min(self.unsent_bytes, self.room_bytes)
        if self.unsent_bytes:
            raise BlockingIOError


@pytest.mark.parametrize("data", [b"", pack(">i", 1000) + bytes(100)])
def test_peer_that_takes_nothing_is_not_received_from_beyond_a_limit(data: bytes) -> None:
    """Whatever TLS answers by itself: without a limit, each byte received is one byte held."""
    wire = TalkativeWire()
    wire.data = data
    loop = Loop(wire, echo)
    wire.room_bytes = 0
    wire.received += bytes(64 * 1024)
    loop.run()
    assert (loop.watches_reads, loop.watches_writes) == (True, True), "half of the limit"
    wire.received += bytes(1 << 20)
    loop.run()
    assert wire.unsent_bytes == 128 * 1024
    assert (loop.watches_reads, loop.watches_writes) == (False, True)
    wire.room_bytes = 1 << 40
    loop.run()
    assert not wire.received
    assert wire.unsent_bytes == 0
    assert (loop.watches_reads, loop.watches_writes) == (True, False)


def test_connection_that_waits_for_memory_is_not_received_from_behind_an_answer() -> None:
    loop, client = connected("plain")
    loop.memory = RequestMemory(1)
    loop.memory.reserve(2, 1)
    loop.answers_at_once = False
    client.sends(pack(">i", 8) + REQUESTS[0] + pack(">i", 1 << 20) + bytes(100))
    loop.run()
    loop.answer_all()
    assert client.sees() == echoed(REQUESTS[:1])
    assert loop.memory.is_starved(1)
    assert not loop.watches_reads
    assert loop.memory.release(2) == [1]
    loop.connection.memory_is_free()
    assert loop.watches_reads
