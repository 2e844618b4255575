"""A connection over a socket in memory: what a peer that takes no answers may make us hold."""

from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.model import FileSlice
from kraft_wire.node.limits import ServerLimits, overdue
from kraft_wire.node.outputs import Buffers
from kraft_wire.server.connection import Connection
from tests.server.memory_transports import Loop, PlainWire

ALLOWED_BYTES = 1_000


class LogFile:
    """A log file whose slices lie on the disk, not in memory."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        return bytes(size_bytes)

    def fileno(self) -> int:
        return 7


class CutFile(LogFile):
    """A log file that ends before the slice."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        return b""


def connected(room_bytes: int) -> tuple[Connection, Loop, PlainWire]:
    wire = PlainWire()
    wire.room_bytes = room_bytes
    host = Loop(wire, lambda frame: [frame])
    host.limits = ServerLimits(unsent_bytes_max=ALLOWED_BYTES)
    return host.connection, host, wire


def answer(connection: Connection, buffers: Buffers, size_bytes: int) -> None:
    """Answer a request, and end the wake-up as the host does."""
    connection.answered(buffers, size_bytes)
    connection.settle()


@pytest.mark.parametrize(("answer_bytes", "is_closed"), [(1_000, False), (1_001, True)])
def test_answers_beyond_connection_write_buffer_max_bytes_close_the_connection(
    answer_bytes: int, is_closed: bool
) -> None:
    connection, host, wire = connected(room_bytes=0)
    answer(connection, [bytes(answer_bytes)], answer_bytes)
    assert wire.is_closed == connection.is_closed == is_closed
    if is_closed:
        (rejection,) = host.drops
        assert rejection is not None
        assert rejection.reason == "write_buffer_full"
        assert dict(rejection.details) == {"unsent": 1_001, "allowed": 1_000}
        assert connection.unsent_bytes == 0, "the memory is given back"
    else:
        assert host.watches_writes


def test_answers_add_up_until_they_are_too_much() -> None:
    connection, host, _ = connected(room_bytes=0)
    for _ in range(4):
        answer(connection, [bytes(250)], 250)
    assert not host.drops
    answer(connection, [b"x"], 1)
    assert [each.reason for each in host.drops if each] == ["write_buffer_full"]


def test_bytes_that_the_peer_took_do_not_count() -> None:
    connection, host, wire = connected(room_bytes=600)
    answer(connection, [b"a" * 800], 800)
    answer(connection, [b"b" * 800], 800)
    assert not host.drops
    assert connection.unsent_bytes == 1_000
    wire.room_bytes = 10_000
    connection.settle()
    assert connection.unsent_bytes == 0
    assert wire.sent == b"a" * 800 + b"b" * 800
    assert not host.watches_writes


def test_a_last_answer_that_is_still_awaited_is_sent_before_the_end() -> None:
    """A node that stops has a request in hand, and the client is slow to take an earlier answer."""
    connection, host, wire = connected(room_bytes=0)
    answer(connection, [b"first"], 5)
    connection.awaits_answer = connection.is_last_answer = True
    wire.room_bytes = 1_000
    connection.settle()
    assert (wire.sent, host.drops) == (b"first", [])
    answer(connection, [b"second"], 6)
    assert (wire.sent, host.drops) == (b"firstsecond", [None])


def test_slices_of_files_take_no_memory_and_do_not_count() -> None:
    connection, host, _ = connected(room_bytes=0)
    records = FileSlice(LogFile(), 0, 1_000_000)
    answer(connection, [b"head", records], 1_000_004)
    assert not host.drops
    assert connection.unsent_bytes == 1_000_004
    assert host.watches_writes


def test_an_answer_whose_segment_was_cut_ends_its_connection() -> None:
    """Its length has been sent: with fewer bytes the client would wait for the rest for ever."""
    connection, host, wire = connected(room_bytes=100)
    answer(connection, [b"head", FileSlice(CutFile(), 0, 1_000_000)], 1_000_004)
    assert wire.sent == b"head"
    assert host.drops == [None]


def test_what_a_closed_connection_had_received_is_not_delivered() -> None:
    """Its turn comes after others were served, and one of them may have closed it meanwhile."""
    connection, _, _ = connected(room_bytes=0)
    connection.framing.feed(b"\0\0\0\4abcd")
    assert connection.framing.has_begun
    connection.close()
    connection.resume()
    assert not connection.awaits_answer


def test_time_of_a_frame_begins_with_its_first_byte_and_ends_with_its_last() -> None:
    """The time limit of a request counts from there, and never while it is answered."""
    connection, host, wire = connected(room_bytes=1_000)
    for began_ms in (100, 900):
        wire.received += b"\0\0\0\x09one"
        connection.on_readable(began_ms)
        wire.received += b"two"
        connection.on_readable(began_ms + 50)
        waiting = connection.waiting()
        assert (waiting.frame_began_ms, waiting.last_active_ms) == (began_ms, began_ms + 50)
        assert waiting.held_bytes > 0
        wire.received += b"end"
        connection.on_readable(began_ms + 70)
        assert connection.waiting().frame_began_ms == -1
        assert connection.waiting().held_bytes == 0
        host.run()


def test_a_throttled_connection_is_idle_from_the_end_of_its_throttle_time_on() -> None:
    """SEC-QUOTA-21: what the broker does not read is not the client's silence."""
    connection, host, _ = connected(room_bytes=0)
    connection.mute(True, 300)
    assert (connection.waiting().last_active_ms, host.watches_reads) == (300, False)
    connection.mute(False, 9_000)
    connection.settle()
    assert (connection.waiting().last_active_ms, host.watches_reads) == (9_000, True)


@pytest.mark.parametrize(
    ("login", "reason"),
    [
        (None, None),
        (SimpleNamespace(is_over=True), None),
        (SimpleNamespace(is_over=False), "handshake_timeout"),
    ],
)
def test_requests_of_a_login_do_not_end_the_time_that_a_new_connection_has(
    login: Any, reason: str | None
) -> None:
    """Else a client could hold a connection without ever logging in."""
    connection, _, _ = connected(0)
    connection.peer.login, connection.peer.requests_count = login, 5
    limits = ServerLimits()
    now_ms = connection.opened_ms + limits.handshake_ms + 1
    assert now_ms < limits.idle_ms
    assert overdue(connection.waiting(), limits, now_ms) == reason
