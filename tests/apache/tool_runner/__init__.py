"""Apache's tools in one virtual machine for each release, which starts once for all tests.

A start costs about a second of a processor, more than what nearly every tool does then. A tool has
classes, standard input and outputs of its own, and its exit code is what it would end its process
with; `runner/ToolRunner.java` says how. While one tool runs, another thread starts a process.
Only the lowest frames of stack traces differ. A tool that calls `System.exit` ends the runner, and
so does one that leaves a client open, which would look for its brokers until then.
"""

from __future__ import annotations

import atexit
import locale
import os
import struct
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = [
    "MAIN_CLASS",
    "SOURCES",
    "TOOLS",
    "ToolHung",
    "ToolRunner",
    "ToolRunnerDied",
    "free_runner",
]

TOOLS = ("org.apache.kafka.tools.", "kafka.tools.", "kafka.admin.")
"""Packages of main classes that a runner takes."""
MAIN_CLASS = "runner.ToolRunner"
SOURCES = Path(__file__).parent / "runner"
OPTIONS = "JAVA_TOOL_OPTIONS"
STOP_SECONDS_MAX = 30
JSTACK_S_MAX = 20
FRAMES_MAX = 8

_LENGTH = struct.Struct(">i")
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""By release, held while a tool runs."""
_runners: dict[tuple[int, str, str], ToolRunner] = {}
"""By process, release and the options of the environment, which Java reads at its start."""


class ToolRunnerDied(RuntimeError):
    """The virtual machine ended while a tool ran."""


class ToolHung(subprocess.TimeoutExpired):
    """A tool did not end in time; the message has what its main thread was doing."""

    def __init__(self, command: Sequence[str], timeout_s: float, frames: Sequence[str]) -> None:
        super().__init__(command, timeout_s)
        self.frames = frames

    def __str__(self) -> str:
        """Name the innermost frames first: summaries are cut."""
        return f"hung for {self.timeout} s in {' < '.join(self.frames)}: {self.cmd}"


class ToolRunner:
    """One virtual machine that runs tools one after the other."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._frames: list[str] = []

    @property
    def is_alive(self) -> bool:
        """Whether it can take another tool."""
        return self._process.poll() is None

    def run(
        self, main_class: str, arguments: Sequence[str], stdin: str, timeout_s: float
    ) -> tuple[int, str, str]:
        """Run a tool to its end: exit code, and both outputs as `subprocess` decodes them.

        Raises:
            ToolRunnerDied: the virtual machine ended.
            ToolHung: the tool did not, and the virtual machine was killed.
        """
        is_late = threading.Event()
        late = threading.Timer(timeout_s, self._kill, [is_late])
        late.start()
        try:
            self._send([main_class, *arguments], stdin.encode(_encoding()))
            answer = self._received_int(), self._received_text(), self._received_text()
            if self._received_int() > 0:
                self.close()
            return answer
        except (BrokenPipeError, EOFError) as problem:
            self._process.wait()
            if is_late.is_set():
                raise ToolHung([main_class, *arguments], timeout_s, self._frames) from problem
            raise ToolRunnerDied(f"{main_class}: {self._process.returncode}") from problem
        finally:
            late.cancel()

    def close(self) -> None:
        """End the virtual machine."""
        with self._process as process:
            if not self._pipe(process.stdin).closed:
                self._pipe(process.stdin).close()
            process.wait(STOP_SECONDS_MAX)

    def _kill(self, is_late: threading.Event) -> None:
        is_late.set()
        self._frames = _frames_of_main(self._process.pid)
        self._process.kill()

    def _send(self, words: Sequence[str], stdin: bytes) -> None:
        parts = [*(word.encode() for word in words), stdin]
        framed = b"".join(_LENGTH.pack(len(part)) + part for part in parts)
        pipe = self._pipe(self._process.stdin)
        pipe.write(_LENGTH.pack(len(words)) + framed)
        pipe.flush()

    def _received_text(self) -> str:
        text = self._received(self._received_int()).decode(_encoding())
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _received_int(self) -> int:
        number: int
        (number,) = _LENGTH.unpack(self._received(_LENGTH.size))
        return number

    def _received(self, count: int) -> bytes:
        data = self._pipe(self._process.stdout).read(count)
        if len(data) < count:
            raise EOFError
        return data

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


@contextmanager
def free_runner(release: str, command: Sequence[str]) -> Iterator[ToolRunner | None]:
    """Give this process's runner of a release, started if need be; None while it runs a tool."""
    lock = _locks[release]
    if not lock.acquire(blocking=False):
        yield None
        return
    try:
        key = os.getpid(), release, os.environ.get(OPTIONS, "")
        runner = _runners.get(key)
        if runner is None or not runner.is_alive:
            runner = _runners[key] = ToolRunner(command)
            atexit.register(runner.close)
        yield runner
    finally:
        lock.release()


def _frames_of_main(pid: int) -> list[str]:
    """Return Apache's frames of a virtual machine's thread `main`, innermost first."""
    try:
        shown = subprocess.run(
            ["jstack", str(pid)], capture_output=True, text=True, check=False, timeout=JSTACK_S_MAX
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    (_, _, behind) = shown.rpartition('\n"main" ')
    frames = [line.strip().removeprefix("at ") for line in behind.split("\n\n", 1)[0].splitlines()]
    return [frame for frame in frames if frame.startswith("org.apache.")][:FRAMES_MAX]


def _encoding() -> str:
    return locale.getpreferredencoding(do_setlocale=False)
