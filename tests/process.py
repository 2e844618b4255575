"""A program that a test starts, watches and ends: what every server of the tests is launched by.

A subclass says what the command is, and when it is ready. Output goes to a file that outlives each
start. A process ends by its id; one that is too slow is killed, and the test fails. None is left
behind: a process whose last reference is dropped while it runs would fail some later test, with a
warning that names neither.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.waiting import HANG_S

__all__ = [
    "KRAFT_WIRE",
    "DidNotStart",
    "KraftWireServer",
    "Process",
    "accepts",
    "end",
    "write_properties",
]

KRAFT_WIRE = str(Path(sys.executable).parent / "kraft-wire")
LOOK_S = 0.002
TAIL = 4_000
"""Characters of its output that a failure shows."""


class DidNotStart(AssertionError):
    """The process ended, or was not ready in time; the text is the end of its output."""


class Process:
    """Starts one command, again and again; see the module."""

    stop_seconds_max = HANG_S
    """For a hang, not for a disk that is slow to sync two thousand partitions."""
    is_apart = False
    """Whether it has a process group of its own, so that Ctrl-C is the harness's alone."""
    directory_of_work: Path | None = None
    environment: Mapping[str, str] | None = None
    """All its variables; None for those of the test."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.is_paused = False
        self._process: subprocess.Popen[bytes] | None = None

    # -- what a subclass says --------------------------------------------------------------------

    def command(self) -> Sequence[str]:
        """Return the command to start."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Whether the process that runs has begun to serve."""
        return True

    def prepare(self) -> None:
        """Remove what a former process has left that would look like readiness."""

    # -- looking ---------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The id of the process that runs."""
        assert self._process is not None, f"{self.log}: it is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not ended by the test."""
        return self._process is not None

    @property
    def answers(self) -> bool:
        """Whether asking it makes sense."""
        return self.is_running and not self.is_paused

    @property
    def died(self) -> bool:
        """Whether the process ended although no test ended it."""
        return self._process is not None and self._process.poll() is not None

    @property
    def text(self) -> str:
        """All that its processes have written."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # -- starting --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process, and wait until it is ready."""
        self.begin()
        try:
            self.await_ready()
        except BaseException:
            self.kill()
            raise

    def begin(self) -> None:
        """Start the process, and wait for nothing."""
        assert self._process is None, f"{self.log}: it is running"
        self.prepare()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.command()],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.directory_of_work,
                env=None if self.environment is None else dict(self.environment),
                process_group=0 if self.is_apart else None,
            )

    def await_ready(self) -> None:
        """Wait until it is ready; `DidNotStart` when it ends before, or hangs."""
        deadline = time.monotonic() + HANG_S
        while not self.is_ready():
            if self.died or time.monotonic() > deadline:
                raise DidNotStart(self.text[-TAIL:])
            time.sleep(LOOK_S)

    # -- ending ----------------------------------------------------------------------------------

    def stop(self) -> int:
        """SIGTERM: wait for the orderly end, and return the exit code."""
        return self.end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: the crash that a start must survive."""
        self.end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop in order, and start again."""
        self.stop()
        self.start()

    def end(self, number: signal.Signals) -> int:
        """Send a signal, wait, and return the exit code; 0 where nothing runs."""
        process, self._process = self._process, None
        if process is None:
            return 0
        if self.is_paused:
            process.send_signal(number)
            self.is_paused, number = False, signal.SIGCONT
        return end(process, number, self.stop_seconds_max)

    def wait(self) -> int:
        """Wait until the process ends by itself, and return its exit code."""
        assert self._process is not None, f"{self.log}: it is not running"
        code = self._process.wait(self.stop_seconds_max)
        self._process = None
        return code

    # -- pausing ---------------------------------------------------------------------------------

    def pause(self) -> None:
        """SIGSTOP: it neither answers nor notices."""
        self.send(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)
        self.is_paused = False

    def send(self, number: signal.Signals) -> None:
        """Send a signal, which does nothing to a process that has ended."""
        assert self._process is not None, f"{self.log}: it is not running"
        self._process.send_signal(number)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class KraftWireServer(Process):
    """`kraft-wire server`, which is ready when its ready file appears."""

    program: Sequence[str] = (KRAFT_WIRE,)

    def __init__(self, log: Path, ready_file: Path) -> None:
        super().__init__(log)
        self.ready_file = ready_file
        self.ready: dict[str, Any] = {}
        """What the ready file said when it appeared last."""

    def arguments(self) -> Sequence[str]:
        """Return what follows `kraft-wire server`: a file of properties, or options."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """Return the command that a person would type."""
        return [*self.program, "server", *self.arguments(), "--ready-file", str(self.ready_file)]

    def prepare(self) -> None:
        self.ready_file.unlink(missing_ok=True)

    def is_ready(self) -> bool:
        return self.ready_file.exists()

    def await_ready(self) -> None:
        super().await_ready()
        self.ready = json.loads(self.ready_file.read_text())


def end(process: subprocess.Popen[bytes], number: signal.Signals, seconds_max: float) -> int:
    """Send a signal, wait, and return the exit code; one that is too slow is killed, and raises."""
    try:
        process.send_signal(number)
        return process.wait(timeout=seconds_max)
    except BaseException:
        process.kill()
        process.wait()
        raise


def accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a process takes connections on a port."""
    with socket.socket() as probe:
        probe.settimeout(HANG_S)
        return probe.connect_ex((host, port)) == 0


def write_properties(file: Path, properties: Mapping[str, str]) -> None:
    """Write a server.properties."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
