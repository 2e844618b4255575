"""Our share sessions and Apache's own, fed with the same requests: every answer is the same."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kraft_wire.broker.share_fetch.session import SessionPartition, ShareFetchContext, rotated
from kraft_wire.broker.share_fetch.sessions import ShareSessions
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
)
from tests.apache.java_process import java_command
from tests.broker.fetch_client import topic_id
from tests.waiting import HANG_S

pytestmark = pytest.mark.java

LIMIT = 5
STEPS = 3_000
TOPICS = ("a", "b", "?gone")


@contextmanager
def apache() -> Iterator[Any]:
    """A function that takes one step at Apache's side."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        java_command("judge.ShareSessions"),
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to_it, from_it = process.stdin, process.stdout

    def ask(step: dict[str, Any]) -> Any:
        to_it.write(json.dumps(step) + "\n")
        to_it.flush()
        line = from_it.readline()
        assert line, "Apache's side ended"
        return json.loads(line)

    try:
        yield ask
    finally:
        to_it.close()
        try:
            process.wait(timeout=HANG_S)
        finally:
            process.kill()
            process.wait()
            from_it.close()


def name_of(each: Uuid) -> str:
    return bytes(each).rstrip(b".").decode()


def existing(each: Uuid) -> str | None:
    return None if name_of(each).startswith("?") else name_of(each)


def shown(partitions: list[SessionPartition]) -> list[str]:
    return [f"{name_of(each.topic_id)}-{each.partition}" for each in partitions]


def by_topic(names: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, _, number in (each.rpartition("-") for each in names):
        found.setdefault(topic, []).append(int(number))
    return found


class Story:
    """A seeded run of requests on both sides."""

    def __init__(self, seed: int, ask: Any) -> None:
        self.random = random.Random(seed)
        self.ask = ask
        self.sessions = ShareSessions(lambda: LIMIT)
        self.epochs: dict[tuple[str, str], int] = {}
        """What each member believes."""
        self.contexts: dict[int, ShareFetchContext] = {}
        self.count = 0
        ask({"step": "start", "limit": LIMIT})

    def step(self) -> None:
        draw = self.random.random()
        if draw < 0.5:
            self.fetch()
        elif draw < 0.8 and self.contexts:
            self.answer()
        elif draw < 0.9:
            self.acknowledge()
        elif draw < 0.95:
            self.close()
        else:
            self.disconnect()

    def _member(self) -> tuple[str, str]:
        return self.random.choice("gh"), self.random.choice("mnop")

    def _epoch(self, member: tuple[str, str]) -> int:
        epoch = self.epochs.get(member, 0)
        return self.random.choice([epoch, epoch, epoch, epoch, 0, -1, epoch + 1, 1, -3])

    def _names(self, most: int) -> list[str]:
        every = [f"{topic}-{number}" for topic in TOPICS for number in range(3)]
        drawn = self.random.sample(every, self.random.randrange(most + 1))
        return sorted(drawn, key=lambda name: name.rpartition("-")[0])

    def _connection(self, member: tuple[str, str]) -> str:
        """Each connection is one member's: Kafka remembers the newest session of each alone."""
        return f"{'gh'.index(member[0])}{'mnop'.index(member[1])}{self.random.randrange(3)}"

    def fetch(self) -> None:
        member = self._member()
        epoch, wanted, forget = self._epoch(member), self._names(5), self._names(2)
        if self.random.random() < 0.02:
            wanted += wanted[-1:]
        has_acknowledgements = self.random.random() < 0.1 and bool(wanted)
        connection = self._connection(member)
        self.count += 1
        request = ShareFetchRequest(
            share_session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic_id=topic_id(topic),
                    partitions=[
                        FetchPartition(
                            partition_index=each,
                            acknowledgement_batches=[AcknowledgementBatch()]
                            if has_acknowledgements
                            else [],
                        )
                        for each in numbers
                    ],
                )
                for topic, numbers in by_topic(wanted).items()
            ],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id(topic), partitions=numbers)
                for topic, numbers in by_topic(forget).items()
            ],
        )
        theirs = self.ask(
            {
                "step": "fetch",
                "number": self.count,
                "group": member[0],
                "member": member[1],
                "epoch": epoch,
                "connection": connection,
                "wanted": wanted,
                "forget": forget,
                "acks": has_acknowledgements,
            }
        )
        ours = self.sessions.begin_fetch(*member, request, int(connection), existing)
        context = f"{self.count}: {member} {epoch} {wanted} {forget}"
        if isinstance(ours, ErrorCode):
            assert ours == theirs.get("error"), context
            if ours == ErrorCode.UNKNOWN_SERVER_ERROR:
                self.epochs[member] = 0
        else:
            assert "error" not in theirs, context
            partitions = ours.partitions(existing)
            valid = [each for each in partitions if each.topic is not None]
            assert shown(rotated(valid, epoch)) == theirs["valid"], context
            assert len(partitions) - len(valid) == theirs["unknown"], context
            self.contexts[self.count] = ours
            if epoch >= 0:
                self.epochs[member] = epoch + 1
        self.compare(theirs, context)

    def answer(self) -> None:
        number = self.random.choice([*self.contexts])
        ours = self.contexts.pop(number)
        partitions = ours.partitions(existing)
        results = []
        for each in partitions:
            size = self.random.choice([0, 0, 0, 5])
            error = 0 if size else self.random.choice([0, 0, 0, 6])
            results.append((each, PartitionData(records=bytes(size), error_code=error)))
        is_throttled = self.random.random() < 0.1
        listed: list[SessionPartition] = []
        if not ours.is_outdated() and not is_throttled:
            chosen = ours.listed(results)
            ours.answered(chosen)
            listed = [partition for partition, _ in chosen]
        theirs = self.ask(
            {
                "step": "answer",
                "number": number,
                "throttled": is_throttled,
                "results": [
                    [*shown([each]), len(data.records or b""), data.error_code]  # type: ignore[arg-type]  # bytes here
                    for each, data in results
                ],
            }
        )
        error = ErrorCode.INVALID_SHARE_SESSION_EPOCH if ours.is_outdated() else ErrorCode.NONE
        assert theirs["error"] == error, number
        assert sorted(shown(listed)) == sorted(theirs["listed"]), number

    def acknowledge(self) -> None:
        member = self._member()
        epoch = self._epoch(member)
        ours = self.sessions.begin_acknowledge(*member, epoch)
        theirs = self.ask(
            {"step": "acknowledge", "group": member[0], "member": member[1], "epoch": epoch}
        )
        assert ours == theirs.get("error", 0), (member, epoch)
        if ours is ErrorCode.NONE and epoch >= 0:
            self.epochs[member] = epoch + 1
        self.compare(theirs, f"acknowledge {member} {epoch}")

    def close(self) -> None:
        member = self._member()
        ours = self.sessions.close(*member)
        theirs = self.ask({"step": "close", "group": member[0], "member": member[1]})
        assert theirs["error"] == (ours is None), member
        self.compare(theirs, f"close {member}")

    def disconnect(self) -> None:
        connection = self._connection(self._member())
        ours = self.sessions.connection_closed(int(connection))
        theirs = self.ask({"step": "disconnect", "connection": connection})
        assert ["/".join(each.key) for each in ours.sessions] == theirs["left"], connection
        assert ours.empty_groups == theirs["empty"], connection
        self.compare(theirs, f"disconnect {connection}")

    def compare(self, theirs: Any, context: str) -> None:
        assert len(self.sessions) == theirs["sessions"], context
        assert self.sessions.partitions_count == theirs["partitions"], context


def test_answers_are_those_of_apache() -> None:
    """932-SESS-01, 932-SESS-02, 932-SESS-03, 932-SESS-04, 932-SESS-05, 932-SESS-06, 932-SESS-07,
    932-SESS-09, 932-SESS-10, 932-SESS-11, 932-SESS-12, 932-SESS-13.
    """
    with apache() as ask:
        for seed in range(3):
            story = Story(seed, ask)
            for _ in range(STEPS):
                story.step()
