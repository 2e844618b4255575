"""Parts of answers in the order of their writing: joined, sliced, cut where a peer took less."""

from __future__ import annotations

import pytest

from kraft_wire.model import FileSlice
from kraft_wire.server.send_queue import SendQueue
from kraft_wire.wire.structs import Buffer

SENDFILE_FROM = 65_536
JOINED_TO = 65_536
PARTS_MAX = 64


class LogFile:
    """A file whose bytes are their positions modulo 251; without a descriptor if it is -1."""

    def __init__(self, descriptor: int = 7) -> None:
        self.descriptor = descriptor

    def pread(self, size_bytes: int, position: int) -> bytes:
        return bytes((position + at) % 251 for at in range(size_bytes))

    def fileno(self) -> int:
        return self.descriptor


def queue_of(*parts: Buffer | FileSlice) -> SendQueue:
    queue = SendQueue()
    for part in parts:
        queue.add([part], part.size_bytes if isinstance(part, FileSlice) else len(part))
    return queue


def part_bytes(queue: SendQueue) -> list[bytes] | FileSlice:
    part = queue.next_part()
    return part if isinstance(part, FileSlice) else [bytes(each) for each in part]


def test_single_bytes_are_the_next_part_as_they_are() -> None:
    data = b"answer"
    queue = queue_of(data)
    (part,) = queue.next_part()  # type: ignore[misc]  # buffers
    assert part is data
    assert queue.ends_with([part])


@pytest.mark.parametrize(("more", "is_joined"), [(0, True), (1, False)])
def test_small_buffers_are_joined_and_large_ones_are_not(more: int, is_joined: bool) -> None:
    first, second = b"a" * (JOINED_TO - 10), memoryview(b"b" * (10 + more))
    queue = queue_of(first, second)
    expected = [first + bytes(second)] if is_joined else [first, bytes(second)]
    for _ in range(2):
        assert part_bytes(queue) == expected, "nothing was written: the next part is the same"
    assert (queue.size_bytes, queue.held_bytes()) == (JOINED_TO + more, JOINED_TO + more)


@pytest.mark.parametrize("count", [PARTS_MAX, PARTS_MAX + 1])
def test_a_part_has_64_buffers_at_most(count: int) -> None:
    queue = queue_of(*[bytes([number]) for number in range(count)])
    part = queue.next_part()
    assert isinstance(part, list)
    assert part == [bytes(range(PARTS_MAX))]
    assert queue.ends_with(part) is (count == PARTS_MAX)


@pytest.mark.parametrize(
    ("size_bytes", "descriptor", "is_slice"),
    [
        (SENDFILE_FROM, 0, True),
        (SENDFILE_FROM, -1, False),
        (SENDFILE_FROM - 1, 0, False),
    ],
)
def test_large_slice_of_a_file_is_sent_by_the_system(
    size_bytes: int, descriptor: int, is_slice: bool
) -> None:
    file = LogFile(descriptor)
    records = FileSlice(file, 5, size_bytes)
    queue = queue_of(b"head", records, b"tail")
    if not is_slice:
        read = file.pread(size_bytes, 5)
        assert part_bytes(queue) == [b"head", read, b"tail"]
        assert queue.held_bytes() == size_bytes + 8, "what was read is kept"
        return
    assert part_bytes(queue) == [b"head"]
    assert not queue.ends_with([b"head"])
    assert (queue.size_bytes, queue.held_bytes()) == (size_bytes + 8, 8)
    queue.wrote(4)
    assert part_bytes(queue) is records
    queue.wrote(size_bytes)
    assert part_bytes(queue) == [b"tail"]
    assert queue.size_bytes == 4


def test_what_was_written_is_cut_off_wherever_it_ends() -> None:
    file = LogFile()
    parts = [b"abc", FileSlice(file, 10, 2 * SENDFILE_FROM), memoryview(b"xyz")]
    whole = b"abc" + file.pread(2 * SENDFILE_FROM, 10) + b"xyz"
    size = len(whole)
    for count in (0, 1, 2, 3, 4, SENDFILE_FROM, size - 4, size - 3, size - 2, size - 1, size):
        queue = queue_of(*parts)
        queue.wrote(count)
        assert queue.size_bytes == size - count
        written = bytearray(whole[:count])
        while queue.size_bytes:
            part = queue.next_part()
            data = part.read() if isinstance(part, FileSlice) else b"".join(part)
            written += data
            queue.wrote(len(data))
        assert bytes(written) == whole
        assert queue.held_bytes() == 0


def test_cleared_queue_holds_nothing() -> None:
    queue = queue_of(b"abc", b"def")
    queue.wrote(1)
    queue.clear()
    assert (queue.size_bytes, queue.held_bytes(), queue.next_part()) == (0, 0, [])
