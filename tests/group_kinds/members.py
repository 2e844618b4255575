"""Members of Apache's Java client in one process, which are started and stopped one by one."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS, archive_flags, compiled
from tests.group_kinds.verdict import Verdict

__all__ = ["JavaMembers"]

SOURCES = Path(__file__).parent / "java"
HEAP_MB = 1024
ASSIGNOR = "RangeAssignor"
TAIL = 2_000


class JavaMembers:
    """`judge.GroupMembers`, whose lines go to a verdict."""

    def __init__(
        self, bootstrap: str, topic: str, home: Path, verdict: Verdict, assignor: str = ASSIGNOR
    ) -> None:
        self.log = home / "members.log"
        self.lines = home / "members.lines"
        self._words = [bootstrap, topic, assignor]
        self._verdict = verdict

    def starts(self, kind: str, group: str, name: str) -> None:
        """Start a member of a group of a kind."""
        self._say(f"start {kind} {group} {name}")

    def stops(self, name: str) -> None:
        """Let a member leave."""
        self._say(f"stop {name}")

    def tail(self) -> str:
        """Return the end of what the clients logged."""
        return self.log.read_text()[-TAIL:]

    def __enter__(self) -> Self:
        path = jars.classpath()
        path = os.pathsep.join([path, str(compiled((SOURCES,), path, jars.RELEASE))])
        flags = [*LEAN_FLAGS, *archive_flags(), f"-Xmx{HEAP_MB}m"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                ["java", *flags, "-cp", path, "judge.GroupMembers", *self._words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        told = self._kept(self._process.stdout)
        self._reader = threading.Thread(target=self._verdict.take, args=(told,))
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        if error is not None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _kept(self, lines: Iterable[str]) -> Iterator[str]:
        """Write the lines with their time into a file, which explains failures."""
        with self.lines.open("w", buffering=1) as kept:
            for line in lines:
                kept.write(f"{time.time():.3f} {line}")
                yield line

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
