"""A client library in a process of its own that does transactions step by step, as it is told.

The program takes ``BOOTSTRAP`` and reads one JSON command a line; each has one JSON line of answer:
``{"records": […]}``, or ``{"error": text, "fatal": bool}``. A session, named by ``producer``, is a
transactional producer and, if it has a group, the consumer whose offsets its transactions commit.

| ``do`` | further fields | what |
|---|---|---|
| ``open`` | ``id``, ``timeout_ms``, perhaps ``group`` and ``source`` | make and initialise |
| ``begin`` | | begin a transaction |
| ``poll`` | ``max`` | records of the source, whose offsets the transaction is to commit |
| ``send`` | ``topic``, ``records``: [partition, value] | produce; the answer has the offsets |
| ``commit`` | | send the offsets of what was polled, and commit |
| ``abort`` | ``offsets`` | send them or not, abort, and go back to the group's offsets |
| ``close`` | | drop producer and consumer, whatever is open |
| ``read`` | ``topic``, ``partitions``, ``isolation``, ``count``, ``seconds``, ``quiet_ms`` | read |

To read is to take all from the beginning: until there are so many records, or the time is over, and
what comes in the quiet time after that.

Records are [partition, offset, value].
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["ClientError", "Driver", "DriverFailed", "Record", "Session"]

ANSWER_SECONDS_MAX = 150.0
"""More than any client tries before it gives up (delivery.timeout.ms is 120 s)."""
Record = tuple[int, int, str]
"""Partition, offset, value."""


class ClientError(Exception):
    """What the client library raised."""

    def __init__(self, text: str, *, is_fatal: bool) -> None:
        super().__init__(text)
        self.is_fatal = is_fatal


class DriverFailed(AssertionError):
    """The program ended, or did not answer in time."""


class Session:
    """One transactional producer of a driver, once it is open."""

    def __init__(self, driver: Driver, name: str, **settings: object) -> None:
        self._driver = driver
        self._settings = settings
        self.name = name

    def open(self) -> None:
        """Make it, again if need be: a new one with the same id fences the one before."""
        self._do("open", **self._settings)

    def begin(self) -> None:
        """Begin a transaction."""
        self._do("begin")

    def send(self, topic: str, records: Sequence[tuple[int, str]]) -> list[Record]:
        """Produce values to partitions, wait for the acknowledgements, and return the offsets.

        A client that does not tell them (those of Node.js) returns nothing.
        """
        return self._do("send", topic=topic, records=records)

    def poll(self, count: int) -> list[Record]:
        """Records of the source."""
        return self._do("poll", max=count)

    def commit(self) -> None:
        """Commit, with the offsets of what was polled."""
        self._do("commit")

    def abort(self, *, with_offsets: bool = False) -> None:
        """Abort, if wanted with the offsets that a commit has, and go back to the group's."""
        self._do("abort", offsets=with_offsets)

    def close(self) -> None:
        """Drop it."""
        self._do("close")

    def _do(self, verb: str, **fields: object) -> list[Record]:
        return self._driver.do({"do": verb, "producer": self.name, **fields})


class Driver:
    """A driver's process."""

    def __init__(self, command: Sequence[str], bootstrap: str, log: Path) -> None:
        self._command = [*command, bootstrap]
        self._log = log
        self._answers: queue.Queue[str] = queue.Queue()

    def session(
        self,
        transactional_id: str,
        *,
        name: str = "",
        timeout_ms: int = 60_000,
        group: str | None = None,
        source: str = "",
    ) -> Session:
        """A transactional producer, by default of the name of its id."""
        settings: dict[str, object] = {"id": transactional_id, "timeout_ms": timeout_ms}
        if group is not None:
            settings |= {"group": group, "source": source}
        session = Session(self, name or transactional_id, **settings)
        session.open()
        return session

    def read(
        self,
        topic: str,
        partitions: int,
        count: int,
        *,
        committed: bool = True,
        seconds: float = 60,
        quiet_ms: int = 500,
    ) -> list[Record]:
        """What a consumer finds: at least `count`, if they come, and what else is there."""
        level = "read_committed" if committed else "read_uncommitted"
        fields = {"topic": topic, "partitions": partitions, "isolation": level, "count": count}
        return self.do({"do": "read", **fields, "seconds": seconds, "quiet_ms": quiet_ms})

    def do(self, command: dict[str, Any]) -> list[Record]:
        """Have a command done; what the client raises is raised here."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=ANSWER_SECONDS_MAX)
        except (queue.Empty, OSError) as problem:
            raise DriverFailed(f"{command}"[:200] + f": no answer\n{self._tail()}") from problem
        if not line:
            raise DriverFailed(f"{command}"[:200] + f": the program ended\n{self._tail()}")
        answer = json.loads(line)
        if "error" in answer:
            raise ClientError(answer["error"], is_fatal=answer["fatal"])
        return [(partition, offset, value) for partition, offset, value in answer["records"]]

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-2_000:]

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as told:
            for line in told:
                if line.startswith("{"):
                    self._answers.put(line)
        self._answers.put("")

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                errors="replace",
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
            )
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # what was not written yet has no reader
            self._process.stdin.close()
        self._listening.join()
