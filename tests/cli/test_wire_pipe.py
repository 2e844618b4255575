"""When `wire --pipe` reads and writes, and where a line is too long: played descriptors."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kraft_wire.cli.wire import pipe
from kraft_wire.cli.wire.pipe import LineBuffer, pipe_lines

SOURCE, TARGET = 3, 4


class Descriptors:
    """A source of chunks, of which some are there at once, and a target of a limited size."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *chunks: bytes, ready: int) -> None:
        self.chunks = list(chunks)
        self.ready_count = ready
        """How many chunks are there before the source pauses."""
        self.events: list[str] = []
        self.written = b""
        self.bytes_at_once = 1 << 30
        played = SimpleNamespace(read=self._read, write=self._write)
        monkeypatch.setattr(pipe, "os", played)
        monkeypatch.setattr(pipe, "select", SimpleNamespace(select=self._select))

    def answer(self, line: bytes) -> bytes:
        """Answer with the line in brackets."""
        self.events.append("answer")
        return b"<" + line + b">"

    def _read(self, source: int, size: int) -> bytes:
        assert (source, size) == (SOURCE, 1 << 20)
        self.events.append("read")
        self.ready_count -= 1
        return self.chunks.pop(0) if self.chunks else b""

    def _write(self, target: int, data: bytes) -> int:
        assert target == TARGET
        self.events.append("write")
        taken = bytes(data)[: self.bytes_at_once]
        self.written += taken
        return len(taken)

    def _select(self, sources: list[int], *rest: object) -> tuple[list[int], list[int], list[int]]:
        assert (sources, rest) == ([SOURCE], ([], [], 0))
        return (sources if self.ready_count > 0 else [], [], [])


def test_answers_are_written_together_when_the_source_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = Descriptors(monkeypatch, b"a\nb", b"c\n", b"d\ne", ready=2)
    pipe_lines(SOURCE, TARGET, played.answer)
    assert played.written == b"<a>\n<bc>\n<d>\n<e>\n"
    assert played.events == [
        *("read", "answer", "read", "answer", "write"),
        *("read", "answer", "write", "read", "answer", "write"),
    ]


@pytest.mark.parametrize(("missing", "writes"), [(0, 1), (1, 0)])
def test_many_answers_are_written_before_the_source_pauses(
    monkeypatch: pytest.MonkeyPatch, missing: int, writes: int
) -> None:
    monkeypatch.setattr(pipe, "_WRITE_BYTES", 10)
    line = b"x" * (10 - len("<>\n") - missing)
    played = Descriptors(monkeypatch, line + b"\ny\n", ready=9)
    played.bytes_at_once = 4
    pipe_lines(SOURCE, TARGET, played.answer)
    assert played.written == b"<" + line + b">\n<y>\n"
    first, second = (at for at, event in enumerate(played.events) if event == "answer")
    assert (second - first > 1) == bool(writes), played.events


def test_line_of_the_limit_is_taken_and_a_longer_one_is_none() -> None:
    for cut in range(7):
        lines = LineBuffer(5)
        text = b"12345\n123456\n\n123456"
        found = [*lines.feed(text[:cut]), *lines.feed(text[cut:]), *lines.finish()]
        assert found == [b"12345", None, b"", None]
    assert list(LineBuffer(5).finish()) == []
