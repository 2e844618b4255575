"""One controller as a process, of either make, with a directory that either make's tool formatted.

Ours is started by `kraft-wire server`, Apache's by its main class, both over the same kind of
server.properties. Whatever a process writes is kept beside its directory. Does not look inside.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.apache.java_process import java_command, run_java
from tests.ending import end

OURS = "ours"
CLUSTER_ID = "kWjudgeAAAAAAAAAAAAAAA"
STOP_SECONDS_MAX = 30.0
HEAP_MB = 256
KRAFT_WIRE = str(Path(sys.executable).parent / "kraft-wire")


class FormatFailed(RuntimeError):
    """A format tool ended with an error; the text holds what it said."""


class Controller:
    """One member of a quorum: format, start, stop, kill, pause, resume, wipe."""

    stop_seconds_max = STOP_SECONDS_MAX
    heap_mb = HEAP_MB
    """Of Apache's."""

    def __init__(
        self, node_id: int, make: str, home: Path, port: int, properties: Mapping[str, str]
    ) -> None:
        """`make` is `ours` or a release of Apache Kafka."""
        self.node_id = node_id
        self.make = make
        self.port = port
        self.data = home / f"node-{node_id}"
        self.log_file = home / f"node-{node_id}.log"
        self.properties_file = home / f"node-{node_id}.properties"
        self.properties = dict(properties)
        self.is_paused = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def is_ours(self) -> bool:
        """Whether it is not one of Apache's."""
        return self.make == OURS

    @property
    def is_running(self) -> bool:
        """Whether it was started and not ended by the harness."""
        return self._process is not None

    @property
    def answers(self) -> bool:
        """Whether asking it makes sense."""
        return self.is_running and not self.is_paused

    @property
    def died(self) -> bool:
        """Whether the process ended although nobody ended it."""
        return self._process is not None and self._process.poll() is not None

    @property
    def log(self) -> str:
        """All that its processes wrote."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def format(self, *arguments: str, make: str | None = None) -> None:
        """Write the properties, and format the directory with the tool of a make (its own)."""
        self.write_properties()
        tool = make or self.make
        given = ["format", "-t", CLUSTER_ID, "-c", str(self.properties_file), *arguments]
        if tool == OURS:
            ours = subprocess.run([KRAFT_WIRE, *given], capture_output=True, text=True, check=False)
            code, text = ours.returncode, ours.stdout + ours.stderr
        else:
            done = run_java("kafka.tools.StorageTool", given, release=tool)
            code, text = done.exit_code, done.text
        if code:
            raise FormatFailed(text)

    def write_properties(self) -> None:
        """Write server.properties."""
        lines = [f"{key}={value}\n" for key, value in self.properties.items()]
        self.properties_file.write_text("".join(lines))

    def directory_id(self) -> str:
        """Its identity as meta.properties says."""
        lines = (self.data / "meta.properties").read_text().splitlines()
        return next(line.split("=", 1)[1] for line in lines if line.startswith("directory.id="))

    def start(self) -> None:
        """Start the process; whoever needs it to answer asks until it does."""
        assert self._process is None, self.node_id
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        return self._end(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: it neither answers nor notices."""
        self._signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)
        self.is_paused = False

    def wipe(self) -> None:
        """Lose the disk of a process that does not run."""
        assert self._process is None, self.node_id
        shutil.rmtree(self.data)

    def _command(self) -> Sequence[str]:
        if self.is_ours:
            return [KRAFT_WIRE, "server", str(self.properties_file)]
        arguments = [str(self.properties_file)]
        flags = ["-Djudge.level=WARN", "-Xms32m"]
        return java_command(
            "kafka.Kafka", arguments, release=self.make, heap_mb=self.heap_mb, flags=flags
        )

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, self.node_id
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        self.is_paused = False
        if process is None:
            return 0
        process.send_signal(number)
        return end(process, signal.SIGCONT, self.stop_seconds_max)
