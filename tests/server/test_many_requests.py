"""A client that sends many requests at once yields to others, and to its own unread answers."""

from __future__ import annotations

import pytest

from tests.server.memory_transports import Loop, PlainWire

PAUSE_BYTES = 1 << 20
SLICE_MS = 5
FRAME = b"\0\0\0\x09onetwoend"


class Turns(Loop):
    """A host that counts how often a connection yields; time passes with each answer."""

    def __init__(self, answer_bytes: int, answer_ms: int = 0) -> None:
        self.wire_in_memory = PlainWire()
        super().__init__(self.wire_in_memory, lambda frame: [bytes(answer_bytes)])
        self.time_ms = 0
        self.answer_ms = answer_ms
        self.now_ms = lambda: self.time_ms

    def deliver(self, connection: object, frame: bytearray) -> None:
        self.time_ms += self.answer_ms
        super().deliver(self.connection, frame)

    def receive(self, data: bytes) -> tuple[int, bool]:
        """Receive once; return how many frames were delivered, and whether the rest waits."""
        self.wire_in_memory.received += data
        before = len(self.frames)
        self.connection.on_readable(self.time_ms)
        return len(self.frames) - before, self.connection.is_deferred


@pytest.mark.parametrize(
    ("answer_bytes", "frames", "expected"),
    [
        (PAUSE_BYTES, 1, (1, False)),
        (PAUSE_BYTES, 2, (1, True)),
        (PAUSE_BYTES - 1, 2, (2, False)),
        (PAUSE_BYTES - 1, 3, (2, True)),
        (PAUSE_BYTES // 2, 2, (2, False)),
        (PAUSE_BYTES // 2, 3, (2, True)),
    ],
)
def test_next_request_waits_while_a_mebibyte_of_answers_is_unsent(
    answer_bytes: int, frames: int, expected: tuple[int, bool]
) -> None:
    host = Turns(answer_bytes)
    assert host.receive(frames * FRAME) == expected
    assert host.connection.waiting().frame_began_ms == -1
    host.connection.is_dirty = True
    host.run()
    host._settle()
    host.run()
    assert (len(host.frames), host.connection.unsent_bytes) == (frames, 0)
    assert not host.connection.is_deferred


@pytest.mark.parametrize(
    ("answer_ms", "frames", "expected"),
    [
        (SLICE_MS, 2, (2, False)),
        (SLICE_MS, 3, (2, True)),
        (SLICE_MS + 1, 1, (1, False)),
        (SLICE_MS + 1, 2, (1, True)),
        (1, 6, (6, False)),
        (1, 7, (6, True)),
    ],
)
def test_connection_yields_when_its_requests_take_longer_than_its_slice(
    answer_ms: int, frames: int, expected: tuple[int, bool]
) -> None:
    host = Turns(1, answer_ms)
    assert host.receive(frames * FRAME) == expected


def test_whole_requests_that_wait_stop_the_reading_and_a_part_of_one_does_not() -> None:
    host = Turns(PAUSE_BYTES)
    assert host.receive(2 * FRAME) == (1, True)
    assert not host.watches_reads
    host = Turns(1)
    assert host.receive(FRAME + FRAME[:6]) == (1, False)
    assert host.watches_reads
    assert host.connection.waiting().frame_began_ms == 0
    assert host.connection.waiting().held_bytes > 0


def test_request_that_awaits_its_answer_keeps_the_next_one_back() -> None:
    host = Turns(1)
    host.answers_at_once = False
    assert host.receive(2 * FRAME) == (1, False)
    assert (host.watches_reads, host.connection.waiting().frame_began_ms) == (False, -1)
    host.connection.resume()
    assert len(host.frames) == 1
    host.answer_all()
    assert (len(host.frames), host.watches_reads) == (2, True)
