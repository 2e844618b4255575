"""The fields of responses whose change makes a case fail.

A case that lost one of its checks still passes every correct broker, so its checks are judged by
wrong responses: the case runs once against a broker while its frames are recorded, and then against
the recorded frames, each time with one field of one response changed. `noticed.json` lists the
fields whose change each case reports; `python -m tests.conformance.noticing` writes the list anew.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

from kraft_wire.conformance.case import all_cases
from kraft_wire.conformance.connection import CLIENT_ID, Connection
from kraft_wire.conformance.profile import read_profile
from kraft_wire.conformance.run import Row, rows_of
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.target import Target
from kraft_wire.conformance.verdict import Mismatch, NotSupported
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import RequestHeader, encode_response_header, parse_response_header
from kraft_wire.wire.message import Struct, UnencodableMessage
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from tests.conformance.judged_nodes import our_node

__all__ = ["NOTICED", "noticed_by_cases"]

NOTICED = Path(__file__).parent / "noticed.json"
FRAMES_MAX = 3
"""Of each case, its last responses to the API that it judges."""

_OBJECTIONS = (
    *(Mismatch, NotSupported, CorruptRecordBatch),
    *(LookupError, ValueError, TypeError, AttributeError),
)

Recording = list[tuple[int, int, bytes | None] | bool]
"""Received on one connection: API key, version and frame, or the result of `is_silent`."""


class _Keeping(Connection):
    """A connection to a broker that records the frames it receives."""

    def __init__(self, target: Target, kept: Recording) -> None:
        super().__init__(target.address, target.timeout_s, lambda _: None)
        self._kept = kept
        self._asked: dict[int, tuple[int, int]] = {}

    def header(
        self, api_key: int, version: int, client_id: str | None = CLIENT_ID
    ) -> RequestHeader:
        found = super().header(api_key, version, client_id)
        self._asked[found.correlation_id] = api_key, version
        return found

    def next_frame(self) -> bytes | None:
        frame = super().next_frame()
        number = int.from_bytes((frame or b"")[:4])
        self._kept.append((*self._asked.get(number, (-1, -1)), frame))
        return frame

    def is_silent(self, seconds: float) -> bool:
        found = super().is_silent(seconds)
        self._kept.append(found)
        return found


class _Playing(Connection):
    """A connection without a broker that returns recorded frames."""

    def __init__(self, kept: Recording) -> None:
        self._left = list(kept)
        self._correlation_id = 0
        self._keep = lambda _: None

    def send(self, data: bytes) -> None:
        """Send nothing."""

    def next_frame(self) -> bytes | None:
        found = self._left.pop(0) if self._left else True
        if isinstance(found, bool):
            raise Mismatch("a recorded frame", "none")
        return found[2]

    def is_silent(self, seconds: float) -> bool:
        return self._left.pop(0) is True if self._left else True

    def close(self) -> None:
        """Close nothing."""


@dataclass
class Story:
    """One run of a case against a broker."""

    row: Row
    target: Target
    connections: list[Recording] = field(default_factory=list)

    def record(self) -> None:
        """Run the case against the broker; raises Mismatch."""
        story = self

        class Recorded(Subject):
            def connect(self) -> Connection:
                kept: Recording = []
                story.connections.append(kept)
                connection = _Keeping(self.target, kept)
                self._connections.append(connection)
                return connection

        self._run(Recorded)

    def is_noticed(self, connections: list[Recording]) -> bool:
        """Run the case against recorded frames; return whether it fails."""
        left = list(connections)

        class Played(Subject):
            def connect(self) -> Connection:
                return _Playing(left.pop(0) if left else [])

            def attempts(self, what: str, seconds: float = 0.0) -> Iterator[None]:  # type: ignore[override]  # without its type's pauses
                """Pause never: recorded frames come at once, and run out."""
                return repeat(None)

        try:
            self._run(Played)
        except _OBJECTIONS:
            return True
        return False

    def _run(self, kind: type[Subject]) -> None:
        subject = kind(self.target, self.row.name)
        try:
            self.row.case.judge(subject, self.row.version)
        finally:
            subject.close()

    def noticed(self) -> list[str] | None:
        """Return the fields whose change is noticed; None where the case needs real time."""
        if self.is_noticed(self.connections):
            return None
        found = []
        places = [
            (number, at)
            for number, kept in enumerate(self.connections)
            for at, each in enumerate(kept)
            if not isinstance(each, bool) and each[0] == self.row.case.api_key and each[2]
        ]
        for back, (number, at) in enumerate(reversed(places[-FRAMES_MAX:]), 1):
            api_key, version, heard = self.connections[number][at]  # type: ignore[misc]  # no silence
            for path, frame in changed_frames((api_key, version, heard)):
                connections = [list(kept) for kept in self.connections]
                connections[number][at] = (api_key, version, frame)
                if self.is_noticed(connections):
                    found.append(f"-{back} {path}")
        for number, kept in enumerate(self.connections):
            for at, each in enumerate(kept):
                if each is True:
                    connections = [list(one) for one in self.connections]
                    connections[number][at] = False
                    found += [f"{number} silence"] * self.is_noticed(connections)
        return sorted(found)


def changed_frames(heard: tuple[int, int, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield a response frame again and again, each time with another field changed everywhere."""
    api_key, version, frame = heard
    kind = response_class(api_key)
    correlation_id, at = parse_response_header(frame, api_key, version)
    if version < kind.MIN_VERSION:
        return  # a refusal of a version that has no class
    message, end = kind.decode(frame, version, at)
    assert end == len(frame), kind
    head = encode_response_header(api_key, version, correlation_id)
    for names in _paths([message]):
        changed, _ = kind.decode(frame, version, at)
        _change([changed], names)
        try:
            body = changed.encode(version)
        except UnencodableMessage:  # the version has no such field
            continue
        if head + body != frame:
            yield ".".join(names), head + body


def _paths(alike: Sequence[Struct]) -> Iterator[tuple[str, ...]]:
    """Yield the names that lead to each field of some structs of one kind."""
    for name in alike[0].__slots__ if alike else ():
        if not name.startswith("_") and name != "throttle_time_ms":
            yield (name,)
            for rest in _paths(_below(alike, name)):
                yield (name, *rest)


def _below(alike: Sequence[Struct], name: str) -> list[Struct]:
    values = [getattr(each, name) for each in alike]
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return [one for one in flat if isinstance(one, Struct)]


def _change(alike: Sequence[Struct], names: tuple[str, ...]) -> None:
    name, *rest = names
    if rest:
        _change(_below(alike, name), tuple(rest))
    else:
        for each in alike:
            setattr(each, name, _other(getattr(each, name)))


def _other(now: object) -> object:
    match now:
        case bool():
            return not now
        case int():
            return now + 1
        case str():
            return f"{now}x"
        case bytes() | memoryview() if now:
            return bytes(now)[:-1] + bytes([now[-1] ^ 1])
        case list():
            return []
    return now


def noticed_by_cases(directory: Path) -> dict[str, list[str] | None]:
    """Return the fields that each case notices, in its newest version against our broker."""
    stories = []
    with our_node(directory) as targets:
        newest = {row.case.name: row for row in rows_of(all_cases(), read_profile("apache-4.3"))}
        for row in newest.values():
            target = targets[row.case.listener]
            if row.case.api_key in target.versions:
                story = Story(row, target)
                story.record()
                stories.append(story)
    return {story.row.case.name: story.noticed() for story in stories}


def main() -> None:
    """Write the list."""
    with TemporaryDirectory() as directory:
        found = noticed_by_cases(Path(directory))
    NOTICED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
