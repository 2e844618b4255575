"""What a Python client must be able to do to be driven; and the loop that reads the commands."""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Library", "Message", "Reader", "Session", "serve"]

POLL_S = 0.1
Message = tuple[int, int, str]
"""Partition, offset, value."""


class Reader(ABC):
    """A consumer without a group, from the beginning of its partitions."""

    @abstractmethod
    def poll(self) -> list[Message]:
        """What has come within `POLL_S`."""

    @abstractmethod
    def close(self) -> None:
        """End it."""


class Session(ABC):
    """A transactional producer, and the consumer whose offsets it commits, if it has a group."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, records: list[tuple[int, str]]) -> list[Message]:
        """Produce, wait for the acknowledgements, and tell the offsets."""

    @abstractmethod
    def poll(self, count: int) -> list[Message]:
        """At most so many records of the source; what comes within a second."""

    @abstractmethod
    def send_offsets(self, moved: dict[int, int]) -> None:
        """Make offsets of the source, those that come next, by partition, a part of it."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None:
        """Abort, and go back to the group's offsets."""

    @abstractmethod
    def close(self) -> None:
        """Drop producer and consumer."""


class Library(ABC):
    """One client library."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def session(
        self, transactional_id: str, timeout_ms: int, group: str | None, source: str
    ) -> Session:
        """Make a session, its producer initialised."""

    @abstractmethod
    def reader(self, topic: str, partitions: int, isolation: str) -> Reader:
        """A reader of an isolation level."""

    @abstractmethod
    def is_fatal(self, error: Exception) -> bool:
        """Whether the producer that raised it cannot continue."""


class _Commands:
    def __init__(self, library: Library) -> None:
        self._library = library
        self._sessions: dict[str, Session] = {}
        self._moved: dict[str, dict[int, int]] = {}

    def do(self, command: dict[str, Any]) -> list[Message]:
        verb, name = command["do"], command.get("producer", "")
        if verb == "read":
            return self._read(command)
        if verb == "open":
            if name in self._sessions:
                self._sessions.pop(name).close()
            group, source = command.get("group"), command.get("source", "")
            opened = self._library.session(command["id"], command["timeout_ms"], group, source)
            self._sessions[name], self._moved[name] = opened, {}
            return []
        return self._do(verb, name, command)

    def _do(self, verb: str, name: str, command: dict[str, Any]) -> list[Message]:
        session, moved = self._sessions[name], self._moved[name]
        if verb == "send":
            return session.send(command["topic"], command["records"])
        if verb == "poll":
            found = session.poll(command["max"])
            moved.update({partition: offset + 1 for partition, offset, _ in found})
            return found
        if verb == "begin":
            session.begin()
        elif verb == "commit":
            if moved:
                session.send_offsets(moved)
            session.commit()
            moved.clear()
        elif verb == "abort":
            if moved and command["offsets"]:
                session.send_offsets(moved)
            moved.clear()
            session.abort()
        else:
            assert verb == "close", verb
            self._sessions.pop(name).close()
        return []

    def _read(self, command: dict[str, Any]) -> list[Message]:
        found: list[Message] = []
        reader = self._library.reader(command["topic"], command["partitions"], command["isolation"])
        late = time.monotonic() + command["seconds"]
        while len(found) < command["count"] and time.monotonic() < late:
            found += reader.poll()
        quiet = time.monotonic() + command["quiet_ms"] / 1000
        while time.monotonic() < quiet:
            found += reader.poll()
        reader.close()
        return found


def serve(library: Library) -> None:
    """Answer commands until standard input ends."""
    commands = _Commands(library)
    for line in sys.stdin:
        answer: dict[str, object]
        try:
            answer = {"records": commands.do(json.loads(line))}
        except Exception as error:  # noqa: BLE001  # a client may raise anything; it is told
            text = f"{type(error).__name__}: {error}"
            answer = {"error": text, "fatal": library.is_fatal(error)}
        print(json.dumps(answer), flush=True)
