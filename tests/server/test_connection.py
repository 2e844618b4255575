"""A connection over a socket in memory: what a peer that takes no answers may make us hold."""

import os
import socket
from collections.abc import Sequence
from typing import cast

import pytest

from kraft_wire.model import FileSlice
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Buffers, Peer, Rejection
from kraft_wire.server.connection import Connection

ALLOWED_BYTES = 1_000


class StuckSocket:
    """Takes `room_bytes`, then nothing more."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self.taken = b""
        self.is_closed = False

    def send(self, data: bytes, flags: int = 0) -> int:
        taken = bytes(data)[: self.room_bytes]
        if not taken:
            raise BlockingIOError
        self.room_bytes -= len(taken)
        self.taken += taken
        return len(taken)

    def sendmsg(
        self, buffers: Sequence[bytes], ancillary: Sequence[bytes] = (), flags: int = 0
    ) -> int:
        return self.send(b"".join(buffers), flags)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self.is_closed = True


class RecordingHost:
    """Remembers what its connection asked for."""

    def __init__(self) -> None:
        self.receive_view = memoryview(bytearray(16))
        self.limits = ServerLimits(unsent_bytes_max=ALLOWED_BYTES)
        self.rejections: list[Rejection] = []
        self.watches_writes = False
        self.lost_count = 0

    def watch_reads(self, connection: Connection, wanted: bool) -> None: ...

    def watch_writes(self, connection: Connection, wanted: bool) -> None:
        self.watches_writes = wanted

    def deliver(self, connection: Connection, frame: bytearray) -> None:
        raise AssertionError("nothing is received here")

    def defer(self, connection: Connection) -> None:
        raise AssertionError("nothing is received here")

    def reserve(self, connection: Connection, size_bytes: int) -> bool:
        raise AssertionError("nothing is received here")

    def reject(self, connection: Connection, rejection: Rejection) -> None:
        self.rejections.append(rejection)
        connection.close()

    def lost(self, connection: Connection) -> None:
        self.lost_count += 1
        connection.close()


class LogFile:
    """A log file whose slices lie on the disk, not in memory."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        return bytes(size_bytes)

    def fileno(self) -> int:
        return 7


def connected(room_bytes: int) -> tuple[Connection, RecordingHost, StuckSocket]:
    host, sock = RecordingHost(), StuckSocket(room_bytes)
    peer = Peer(1, "127.0.0.1", 50_000, "PLAINTEXT")
    return Connection(host, cast(socket.socket, sock), peer, 0), host, sock


def answer(connection: Connection, buffers: Buffers, size_bytes: int) -> None:
    """Answer a request, and end the wake-up as the host does."""
    connection.answered(buffers, size_bytes)
    connection.settle()


@pytest.mark.parametrize(("answer_bytes", "is_closed"), [(1_000, False), (1_001, True)])
def test_answers_beyond_connection_write_buffer_max_bytes_close_the_connection(
    answer_bytes: int, is_closed: bool
) -> None:
    connection, host, sock = connected(room_bytes=0)
    answer(connection, [bytes(answer_bytes)], answer_bytes)
    assert sock.is_closed == connection.is_closed == is_closed
    if is_closed:
        (rejection,) = host.rejections
        assert rejection.reason == "write_buffer_full"
        assert dict(rejection.details) == {"unsent": 1_001, "allowed": 1_000}
        assert connection.unsent_bytes == 0, "the memory is given back"
    else:
        assert host.watches_writes


def test_answers_add_up_until_they_are_too_much() -> None:
    connection, host, _ = connected(room_bytes=0)
    for _ in range(4):
        answer(connection, [bytes(250)], 250)
    assert not host.rejections
    answer(connection, [b"x"], 1)
    assert [each.reason for each in host.rejections] == ["write_buffer_full"]


def test_bytes_that_the_peer_took_do_not_count() -> None:
    connection, host, sock = connected(room_bytes=600)
    answer(connection, [b"a" * 800], 800)
    answer(connection, [b"b" * 800], 800)
    assert not host.rejections
    assert connection.unsent_bytes == 1_000
    sock.room_bytes = 10_000
    connection.settle()
    assert connection.unsent_bytes == 0
    assert sock.taken == b"a" * 800 + b"b" * 800
    assert not host.watches_writes


def test_slices_of_files_take_no_memory_and_do_not_count() -> None:
    connection, host, _ = connected(room_bytes=0)
    records = FileSlice(LogFile(), 0, 1_000_000)
    answer(connection, [b"head", records], 1_000_004)
    assert not host.rejections
    assert connection.unsent_bytes == 1_000_004
    assert host.watches_writes


def test_an_answer_whose_segment_was_cut_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its length has been sent: with fewer bytes the client would wait for the rest for ever."""
    connection, host, sock = connected(room_bytes=100)
    monkeypatch.setattr(os, "sendfile", lambda *_: 0)  # what a file gives behind its end
    answer(connection, [b"head", FileSlice(LogFile(), 0, 1_000_000)], 1_000_004)
    assert sock.taken == b"head"
    assert host.lost_count == 1


def test_what_a_closed_connection_had_received_is_not_delivered() -> None:
    """Its turn comes after others were served, and one of them may have closed it meanwhile."""
    connection, _, _ = connected(room_bytes=0)
    connection.framing.feed(b"\0\0\0\4abcd")
    assert connection.framing.has_begun
    connection.close()
    connection.resume()
    assert not connection.awaits_answer
