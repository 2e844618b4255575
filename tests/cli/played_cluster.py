"""A cluster that gives written answers: connection, client and group coordinator in one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import pytest
import typer
from typer.testing import CliRunner

from kraft_wire.cli import output
from kraft_wire.client.cluster import EARLIEST_TIMESTAMP, ClusterSettings
from kraft_wire.model import TopicPartition
from kraft_wire.wire.message import Message

__all__ = ["PlayedCluster"]


class PlayedCluster:
    """Answers by the class of a request; a list of answers gives one after the other."""

    group = "g"
    address = "b:9092"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[type[Message], Any] = {}
        self.sent: list[Any] = []
        self.asked: list[object] = []
        """The brokers, leaders and deadlines that were chosen."""
        self.forgotten_count = 0
        self.versions: dict[type[Message], int] = {}
        self.settings = ClusterSettings(("a:1",), deadline_seconds=0.0)
        self.counts = {"t": 3}
        self.starts: Mapping[TopicPartition, int] = {}
        self.ends: Mapping[TopicPartition, int] = {}
        monkeypatch.setattr(output, "connect_any", lambda addresses: self)
        monkeypatch.setattr(output, "ClusterClient", self._client)

    def run(self, app: typer.Typer, words: str | Sequence[str]) -> tuple[int, str, str]:
        """Run a verb; return its exit code, its lines without blanks at their ends, and errors."""
        arguments = words.split() if isinstance(words, str) else words
        done = CliRunner().invoke(app, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        text = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
        return done.exit_code, text, done.stderr

    def _client(self, settings: ClusterSettings) -> Self:
        self.asked.append(settings.deadline_seconds)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def forget(self) -> None:
        """Count that leaders were forgotten."""
        self.forgotten_count += 1

    def wait_at_most(self, seconds: float) -> None:
        """Answers come at once."""

    def version_of(self, request: Message, *, at_most: int | None = None) -> int:
        """Return the version that was set, or the newest."""
        newest = self.versions.get(type(request), 99)
        return newest if at_most is None else min(newest, at_most)

    def send(self, request: Message, response: type[Message], *_: object, **__: object) -> Any:
        """Return the answer of a request's class."""
        self.sent.append(request)
        answer = self.answers[type(request)]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, response), answer
        return answer

    def any_broker(self) -> Self:
        """Return this one."""
        return self

    def broker_ids(self) -> list[int]:
        """Return two."""
        return [1, 2]

    def broker(self, broker_id: int) -> Self:
        """Return this one, and note the id."""
        self.asked.append(broker_id)
        return self

    def leader_of(self, key: TopicPartition) -> Self:
        """Return this one, and note the partition."""
        self.asked.append(key)
        return self

    def topic_names(self) -> list[str]:
        """Return the topics."""
        return list(self.counts)

    def partitions_of(self, topics: Iterable[str], *, create: bool = False) -> dict[str, int]:
        """Return counts of partitions."""
        assert not create
        return {name: self.counts[name] for name in topics}

    def offsets_at(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Return starts or ends of logs."""
        assert not read_committed
        return {
            key: (self.starts if at == EARLIEST_TIMESTAMP else self.ends)[key]
            for key, at in wanted.items()
        }
