"""A ``kraft-wire server`` as a process on 127.0.0.1, with a data directory that outlives it.

It is started as a person starts it: the command of the virtual environment, ``--listen`` on a free
port, ready when the ready file appears. Does not look inside the server.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.ending import end
from tests.ports import free_port
from tests.waiting import HANG_S

READY_SECONDS_MAX = HANG_S
STOP_SECONDS_MAX = 120
"""For a hang, not for a disk that is slow to sync two thousand partitions."""


class ServerDidNotStart(RuntimeError):
    """The process ended, or its ready file did not appear in time; the text holds its log."""


class ServerProcess:
    """Start, stop, kill and restart one kraft-wire server over one data directory.

    The port is chosen once, so that clients find the server again after a restart.
    """

    def __init__(
        self, directory: Path, *, overrides: Mapping[str, str] | None = None, port: int = 0
    ) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "server.log"
        self.overrides = dict(overrides or {})
        self.ready: dict[str, Any] = {}
        self._port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the first listener."""
        listeners: dict[str, str] = self.ready["listeners"]
        return next(iter(listeners.values()))

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def command(self, ready_file: Path) -> list[str]:
        """The very command that starts the server."""
        program = Path(sys.executable).parent / "kraft-wire"
        command = [str(program), "server", "--data", str(self.data)]
        command += ["--listen", f"127.0.0.1:{self._port}", "--ready-file", str(ready_file)]
        for key, value in self.overrides.items():
            command += ["--override", f"{key}={value}"]
        return command

    def start(self) -> None:
        """Start the process and wait until it answers requests."""
        assert self._process is None, "the server is running"
        ready_file = self.directory / "ready.json"
        ready_file.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(ready_file), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        try:
            self._await_ready(ready_file)
        except BaseException:
            self.kill()
            raise
        self.ready = json.loads(ready_file.read_text())

    def _await_ready(self, ready_file: Path) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not ready_file.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServerDidNotStart(self.log.read_text(errors="replace")[-4000:])
            time.sleep(0.002)

    def stop(self) -> int:
        """SIGTERM, wait for the graceful end, and give the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: the crash that a restart must survive."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """A graceful stop and a new start over the same data."""
        self.stop()
        self.start()

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        return end(process, number, STOP_SECONDS_MAX)

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
