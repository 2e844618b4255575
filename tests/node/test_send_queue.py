"""Whatever a socket takes at a time, the bytes go out once and in order."""

import random

import pytest

from kraft_wire.model import FileSlice
from kraft_wire.server.send_queue import SendQueue


class MemoryFile:
    """A file in memory, with or without a descriptor for sendfile."""

    def __init__(self, content: bytes, descriptor: int) -> None:
        self.content = content
        self.descriptor = descriptor

    def pread(self, size_bytes: int, position: int) -> bytes:
        return self.content[position : position + size_bytes]

    def fileno(self) -> int:
        return self.descriptor


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_written_once_and_in_order(seed: int) -> None:
    random_source = random.Random(seed)
    queue, expected, written = SendQueue(), b"", b""
    for _ in range(random_source.randrange(1, 80)):
        content = random_source.randbytes(random_source.choice([1, 10, 500, 70_000, 200_000]))
        expected += content
        kind = random_source.randrange(4)
        if kind == 0:
            queue.add([content], len(content))
        elif kind == 1:
            half = len(content) // 2
            queue.add([content[:half], memoryview(content)[half:]], len(content))
        else:
            file = MemoryFile(b"before" + content, descriptor=-1 if kind == 2 else 5)
            queue.add([FileSlice(file, 6, len(content))], len(content))
    while queue.size_bytes:
        part = queue.next_part()
        data = part.read() if isinstance(part, FileSlice) else b"".join(part)
        taken = random_source.randrange(1, len(data) + 1)
        written += data[:taken]
        queue.wrote(taken)
    assert written == expected


def test_a_lone_answer_is_handed_out_as_it_is() -> None:
    queue, answer = SendQueue(), b"x" * 100
    queue.add([answer], 100)
    (part,) = queue.next_part()
    assert part is answer


def test_small_neighbours_are_joined_and_large_slices_left_to_sendfile() -> None:
    queue = SendQueue()
    large = FileSlice(MemoryFile(bytes(100_000), 5), 0, 100_000)
    queue.add([b"head", b"er"], 6)
    queue.add([large], 100_000)
    head = queue.next_part()
    assert head == [b"header"]
    assert not queue.ends_with(head)
    queue.wrote(6)
    assert queue.next_part() is large
    queue.wrote(99_999)
    tail = queue.next_part()
    assert tail == [b"\0"]
    assert queue.ends_with(tail)
    queue.clear()
    assert queue.size_bytes == 0


@pytest.mark.parametrize(("size_bytes", "parts"), [(65_535, 1), (65_536, 1), (65_537, 2)])
def test_up_to_64_kib_are_joined(size_bytes: int, parts: int) -> None:
    """Copies of more cost as much as another system call."""
    queue = SendQueue()
    queue.add([bytes(10), bytes(size_bytes - 10)], size_bytes)
    assert len(queue.next_part()) == parts
