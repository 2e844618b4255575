"""Our fetch sessions and Apache's own, fed with the same fetches: every answer must be the same.

Session ids are random on both sides, so a fetch names a session by the order of its creation.
"""

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kraft_wire.broker.fetching.fetch_sessions import EVICTION_MS
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse
from tests.apache.java_process import java_command
from tests.broker.fetch_client import FakeBroker, Name, fetch_request, topic_id
from tests.waiting import HANG_S

NAMES: list[Name] = [(topic, index) for topic in "abcd" for index in range(3)]
SLOTS = 24
UNKNOWN_SESSION = 77
FETCHES = 1_500

Listed = list[tuple[str, list[tuple[int, int, int]]]]


class Apache:
    """The Java program, one line per fetch."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def fetch(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Put one question and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "Apache's side ended"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def apache() -> Iterator[Apache]:
    """Apache's sessions with as many slots as ours."""
    command = java_command("judge.FetchSessions", [str(SLOTS), str(EVICTION_MS)])
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield Apache(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(timeout=HANG_S)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


class Story:
    """A seeded run of fetches, and the world in which they happen."""

    def __init__(self, seed: int, version: int) -> None:
        self.random_source = random.Random(seed)
        self.version = version
        self.broker = FakeBroker(NAMES, slots=SLOTS, seed=seed)
        self.now_ms = 0
        self.sessions: list[tuple[int, int]] = []
        """Ids of each created session, ours and Apache's."""
        self.epochs: dict[int, int] = {}

    def change_the_world(self) -> None:
        """Let partitions grow, lose their beginning, fail, recover; let topics come and go."""
        for partition in self.broker.partitions.values():
            if self.random_source.random() < 0.15:
                partition.high_watermark += self.random_source.randrange(4)
            if self.random_source.random() < 0.03:
                partition.log_start_offset = self.random_source.randrange(
                    partition.high_watermark + 1
                )
            if self.random_source.random() < 0.04:
                failed = partition.error is ErrorCode.NONE
                partition.error = ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE
                partition.offline = failed
        if self.random_source.random() < 0.05:
            topic = self.random_source.choice("abcd")
            if self.broker.names.pop(topic_id(topic), None) is None:
                self.broker.names[topic_id(topic)] = topic
        self.now_ms += self.random_source.choice([0, 1, 50, 5_000, 60_000])

    def question(self) -> tuple[int, dict[str, Any]]:
        """Draw a fetch: the number of the session that it names, and everything else."""
        number = self.random_source.randrange(len(self.sessions)) if self.sessions else -1
        if self.random_source.random() < 0.5 and self.sessions:
            number = (
                len(self.sessions) - 1 - self.random_source.randrange(min(6, len(self.sessions)))
            )
        kind = self.random_source.random()
        epoch = self.epochs.get(number, 1)
        if kind < 0.15:
            number, epoch = -1, 0
        elif kind < 0.3:
            epoch = self.random_source.choice([0, 0, 0, -1, epoch + 1, max(1, epoch - 1), -7])
        count = self.random_source.choice([0, 0, 1, 2, 5, 12])
        wanted = self.random_source.sample([*NAMES, ("missing", 0)], count)
        wanted.sort(key=lambda name: name[0])  # a request lists its partitions topic by topic
        asked = {
            "now": self.now_ms,
            "epoch": epoch,
            "version": self.version if self.random_source.random() < 0.97 else 25 - self.version,
            "follower": self.random_source.random() < 0.2,
            "wanted": [
                [*name, self._offset(name), self.random_source.choice([0, 15, 1000])]
                for name in wanted
            ],
            "forget": self.random_source.sample(NAMES, self.random_source.choice([0, 0, 0, 1, 4])),
            "max_bytes": self.random_source.choice([1, 20, 60, 100_000]),
            "names": list(self.broker.names.values()),
            "states": {
                f"{topic}-{index}": [p.high_watermark, p.log_start_offset, p.error]
                for (topic, index), p in self.broker.partitions.items()
            },
        }
        return number, asked

    def _offset(self, name: Name) -> int:
        partition = self.broker.partitions.get(name)
        return (
            0 if partition is None else self.random_source.randrange(partition.high_watermark + 1)
        )

    def ours(self, session_id: int, asked: dict[str, Any]) -> FetchResponse:
        """Our answer to a question."""
        request = fetch_request(
            session_id,
            asked["epoch"],
            {(topic, index): offset for topic, index, offset, _ in asked["wanted"]},
            forget=[tuple(each) for each in asked["forget"]],
            by_id=asked["version"] >= 13,
            max_bytes=asked["max_bytes"],
        )
        limits = {(topic, index): limit for topic, index, _, limit in asked["wanted"]}
        for topic in request.topics:
            for each in topic.partitions:
                name = topic.topic or bytes(topic.topic_id).rstrip(b".").decode()
                each.partition_max_bytes = limits[name, each.partition]
        return self.broker.fetch(
            request, asked["version"], now_ms=asked["now"], follower=asked["follower"]
        )

    def note(self, number: int, asked: dict[str, Any], ours: FetchResponse, theirs: int) -> None:
        """Remember created sessions and the epochs that come next."""
        if ours.session_id and asked["epoch"] == 0:
            self.sessions.append((ours.session_id, theirs))
            self.epochs[len(self.sessions) - 1] = 1
        elif ours.error_code == ErrorCode.NONE and ours.session_id:
            self.epochs[number] = asked["epoch"] + 1


def shown(response: FetchResponse) -> Listed:
    """Topics with number, error and size of each partition, as Apache's side prints them."""
    return [
        (
            bytes(topic.topic_id).rstrip(b".").decode() if any(topic.topic_id) else topic.topic,
            [
                (each.partition_index, each.error_code, len(bytes(each.records or b"")))  # type: ignore[arg-type]  # bytes here
                for each in topic.partitions
            ],
        )
        for topic in response.responses
    ]


@pytest.mark.java
@pytest.mark.parametrize(("seed", "version"), [(1, 12), (2, 13), (3, 12), (4, 13)])
def test_answers_are_those_of_apache(seed: int, version: int) -> None:
    story = Story(seed, version)
    seen: dict[int, int] = {}
    with apache() as other:
        for step in range(FETCHES):
            story.change_the_world()
            number, asked = story.question()
            named = story.sessions[number] if number >= 0 else (0, 0)
            if number < 0 and asked["epoch"] > 0:
                named = (UNKNOWN_SESSION, UNKNOWN_SESSION)
            ours = story.ours(named[0], asked)
            theirs = other.fetch({**asked, "session": named[1]})
            context = f"step {step}: {asked}"
            assert ours.error_code == theirs["error"], context
            assert bool(ours.session_id) == bool(theirs["session"]), context
            listed = [(topic, [tuple(each) for each in rows]) for topic, rows in theirs["listed"]]
            assert shown(ours) == listed, context
            story.note(number, asked, ours, theirs["session"])
            seen[ours.error_code] = seen.get(ours.error_code, 0) + 1
    assert story.broker.sessions.evictions_count > 5
    assert {ErrorCode.NONE, ErrorCode.FETCH_SESSION_ID_NOT_FOUND} <= seen.keys()
    assert ErrorCode.INVALID_FETCH_SESSION_EPOCH in seen
    assert ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR in seen
    assert seen[ErrorCode.NONE] > FETCHES / 3
