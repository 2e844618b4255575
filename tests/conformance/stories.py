"""Runs of cases against Apache Kafka 4.3.1, kept whole, so that a case runs again without a broker.

A case sends, receives, waits for silence and reads clocks. A story has all of it in its order, for
each connection. A case that runs against its story must send the same bytes again. Each case has a
story of its first and of its last version, and some sequences of drawn requests have one;
`make record-apache` renews them.
"""

from __future__ import annotations

import gzip
import importlib
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kraft_wire.conformance.case import all_cases
from kraft_wire.conformance.connection import CLIENT_ID, Connection
from kraft_wire.conformance.drawn.sequence import drawn_cases
from kraft_wire.conformance.profile import read_profile
from kraft_wire.conformance.run import Row, rows_of
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.target import Target
from kraft_wire.conformance.verdict import Mismatch, NothingYet
from kraft_wire.wire.header import RequestHeader
from tests.conformance.judged_nodes import PROFILE, Targets, is_guarded

__all__ = [
    "DRAWN",
    "STORIES",
    "Deviation",
    "Received",
    "Recording",
    "Silence",
    "Story",
    "case_modules",
    "kept_rows",
    "kept_stories",
    "record_stories",
]

STORIES = Path(__file__).with_name("stories.jsonl.gz")
DRAWN = "drawn"
"""Stands for a module: of the drawn requests."""
DRAWN_SEEDS = range(8)
DRAWN_REQUESTS = 150
LATE_MAX = 5
"""Times that a broker may be late with what a case expects."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Bytes that the case wrote."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Received:
    """A frame, None at the end of the connection; with API and version of its request, or -1."""

    api_key: int
    version: int
    frame: bytes | None


@dataclass(frozen=True, slots=True)
class Silence:
    """Whether nothing came while the case waited."""

    is_silent: bool


Recording = list[Sent | Received | Silence]
"""What happened on one connection."""


class Deviation(AssertionError):
    """The case does something else than in its story."""


class _Keeping(Connection):
    """A connection to a broker that records what happens."""

    def __init__(self, subject: Subject, kept: Recording) -> None:
        target = subject.target
        super().__init__(target.address, target.timeout_s, subject._keep)
        self._kept = kept
        self._asked: dict[int, tuple[int, int]] = {}

    def header(
        self, api_key: int, version: int, client_id: str | None = CLIENT_ID
    ) -> RequestHeader:
        found = super().header(api_key, version, client_id)
        self._asked[found.correlation_id] = api_key, version
        return found

    def send(self, data: bytes) -> None:
        super().send(data)
        self._kept.append(Sent(data))

    def next_frame(self) -> bytes | None:
        frame = super().next_frame()
        number = int.from_bytes((frame or b"")[:4])
        self._kept.append(Received(*self._asked.get(number, (-1, -1)), frame))
        return frame

    def is_silent(self, seconds: float) -> bool:
        found = super().is_silent(seconds)
        self._kept.append(Silence(found))
        return found


class _Playing(Connection):
    """A connection without a broker that plays a recording.

    `is_strict`: what is sent must be as recorded; else it does not matter.
    """

    def __init__(self, subject: Subject, kept: Recording, is_strict: bool) -> None:
        self.left = [each for each in kept if is_strict or not isinstance(each, Sent)]
        self._is_strict = is_strict
        self._correlation_id = 0
        self._keep = subject._keep

    def send(self, data: bytes) -> None:
        if not self._is_strict:
            return
        now = self.left.pop(0) if self.left else None
        if now != Sent(data):
            raise Deviation(f"sends {data.hex(' ')}\nin its story {now}")

    def next_frame(self) -> bytes | None:
        now = self.left.pop(0) if self.left else None
        if isinstance(now, Received):
            return now.frame
        if self._is_strict:
            raise Deviation(f"waits for a frame; in its story {now}")
        raise Mismatch("a recorded frame", "none")

    def is_silent(self, seconds: float) -> bool:
        now = self.left.pop(0) if self.left else None
        if self._is_strict and not isinstance(now, Silence):
            raise Deviation(f"waits for silence; in its story {now}")
        return now == Silence(is_silent=True) or now is None

    def close(self) -> None:
        """Close nothing."""


class _Clocks:
    """Stands for the module `time` in a case: clocks that record, or that show what they showed."""

    def __init__(self, shown: list[float], *, is_recorded: bool) -> None:
        self._shown = shown
        self._left = list(shown) if is_recorded else None

    def time(self) -> float:
        return self._read(time.time)

    def monotonic(self) -> float:
        return self._read(time.monotonic)

    def sleep(self, seconds: float) -> None:
        if self._left is None:
            time.sleep(seconds)

    def _read(self, clock: Callable[[], float]) -> float:
        if self._left is None:
            self._shown.append(clock())
            return self._shown[-1]
        if not self._left:
            raise Mismatch("a recorded time", "none")
        return self._left.pop(0)


@dataclass(slots=True)
class Story:
    """One run of a case in one version."""

    row: Row
    target: Target
    connections: list[Recording]
    times: list[float]
    """What its clocks showed."""

    @classmethod
    def told(cls, row: Row, target: Target) -> Story:
        """Run the case against a broker; raises Mismatch."""
        story = cls(row, target, [], [])

        class Recorded(Subject):
            def connect(self) -> Connection:
                kept: Recording = []
                story.connections.append(kept)
                connection = _Keeping(self, kept)
                self._connections.append(connection)
                return connection

        story._run(Recorded, _Clocks(story.times, is_recorded=False))
        return story

    def play(self) -> None:
        """Run the case again, which must do the same.

        Raises:
            Deviation: it does something else.
            Mismatch: it does not accept the recorded responses.
        """
        opened = self._play(self.connections, is_strict=True)
        rest = [each.left for each in opened if each.left]
        if rest or len(opened) < len(self.connections):
            raise Deviation(f"leaves out the end of its story: {rest}")

    def play_with(self, connections: list[Recording]) -> None:
        """Run the case against other responses, whatever it sends; raises what the case raises."""
        self._play(connections, is_strict=False)

    def _play(self, connections: list[Recording], is_strict: bool) -> list[_Playing]:
        left, opened = list(connections), []

        class Played(Subject):
            def connect(self) -> Connection:
                if is_strict and not left:
                    raise Deviation("opens more connections than in its story")
                opened.append(_Playing(self, left.pop(0) if left else [], is_strict))
                return opened[-1]

            def attempts(self, what: str, seconds: float = 0.0) -> Iterator[None]:  # type: ignore[override]  # without its type's pauses
                """Pause never: recorded frames come at once, and run out."""
                return repeat(None)

        self._run(Played, _Clocks(self.times, is_recorded=True))
        return opened

    def _run(self, kind: type[Subject], clocks: _Clocks) -> None:
        subject = kind(self.target, self.row.name)
        try:
            with _clocks_of(self.row, clocks):
                self.row.case.judge(subject, self.row.version)
        finally:
            subject.close()


@contextmanager
def _clocks_of(row: Row, clocks: _Clocks) -> Iterator[None]:
    module = importlib.import_module(row.case.judge.__module__)
    if not hasattr(module, "time"):
        yield
        return
    with patch.object(module, "time", clocks):
        yield


# -- the file --------------------------------------------------------------------------------------


def kept_rows(only: Sequence[str] = ()) -> list[Row]:
    """Return each case in its first and in its last version, as far as a pattern chooses them."""
    profile = read_profile(PROFILE)
    drawn = drawn_cases(DRAWN_SEEDS, DRAWN_REQUESTS, profile)
    by_case: dict[str, list[Row]] = {}
    for row in rows_of([*all_cases(), *drawn], profile, only):
        by_case.setdefault(row.case.name, []).append(row)
    ends = [[rows[0], rows[-1]] if len(rows) > 1 else rows for rows in by_case.values()]
    return [row for rows in ends for row in rows]


def record_stories(open_node: Targets, guarded: Targets, only: Sequence[str]) -> None:
    """Record stories, all or some, and write the file; the others stay as they were.

    `guarded` is a node with an authorizer.
    """
    kept = {each.row.name: each for each in kept_stories()} if only else {}
    for row in kept_rows(only):
        kept[row.name] = told_in_time(row, guarded if is_guarded(row.name) else open_node)
    order = [each.name for each in kept_rows()]
    lines = [json.dumps(_to_json(kept[name])) for name in order if name in kept]
    STORIES.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    kept_stories.cache_clear()
    print(f"{STORIES}: {len(lines)} stories, {STORIES.stat().st_size:,} bytes")


def told_in_time(row: Row, node: Targets) -> Story:
    """Run a case, and again if the broker is late; raises Mismatch."""
    for _ in range(LATE_MAX):
        try:
            return Story.told(row, node[row.case.listener])
        except NothingYet:
            time.sleep(1)
    return Story.told(row, node[row.case.listener])


def case_modules() -> list[str]:
    """Return the names of the files of cases."""
    return sorted({each.name.partition(".")[0] for each in all_cases()})


@cache
def kept_stories() -> tuple[Story, ...]:
    """Read the file."""
    rows = {each.name: each for each in kept_rows()}
    lines = map(json.loads, gzip.decompress(STORIES.read_bytes()).splitlines())
    return tuple(_from_json(rows[each["row"]], each) for each in lines if each["row"] in rows)


def _to_json(story: Story) -> Mapping[str, object]:
    target = {**asdict(story.target), "versions": sorted(story.target.versions.items())}
    del target["security"]
    connections = [list(map(_event_to_json, kept)) for kept in story.connections]
    return {
        "row": story.row.name,
        "target": target,
        "times": story.times,
        "connections": connections,
    }


def _event_to_json(event: Sent | Received | Silence) -> object:
    match event:
        case Sent(data):
            return _text(data)
        case Received(api_key, version, frame):
            return [api_key, version, _text(frame)]
        case Silence(is_silent):
            return is_silent


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _from_json(row: Row, data: Mapping[str, Any]) -> Story:
    target = dict(data["target"])
    versions = {key: (first, last) for key, (first, last) in target.pop("versions")}
    address, advertised = tuple(target.pop("address")), target.pop("advertised")
    place = None if advertised is None else tuple(advertised)
    found = Target(address=address, advertised=place, versions=versions, **target)
    connections = [[_event_from_json(each) for each in kept] for kept in data["connections"]]
    return Story(row, found, connections, data["times"])


def _event_from_json(event: Any) -> Sent | Received | Silence:
    if isinstance(event, bool):
        return Silence(event)
    if isinstance(event, str):
        return Sent(b64decode(event))
    api_key, version, frame = event
    return Received(api_key, version, None if frame is None else b64decode(frame))
