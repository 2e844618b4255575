"""``kraft-wire cluster up`` as a process, and the other commands beside it, as a person runs them.

It is read line by line as JSON. Ending it twice is the quick way: its own children are killed then.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tests.ending import end
from tests.waiting import HANG_S

KRAFT_WIRE = str(Path(sys.executable).parent / "kraft-wire")
SECONDS_MAX = HANG_S

Answer = TypeVar("Answer")


def kraft_wire(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [KRAFT_WIRE, *arguments], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )


class ClusterCommand:
    """A cluster that ``cluster up`` runs in a directory."""

    def __init__(
        self, directory: Path, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.directory = directory
        self.output = directory.parent / f"{directory.name}.up"
        self._arguments = arguments
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start, and wait until somebody leads."""
        self.begin()
        self.until(lambda: self._process is None or self._process.poll() is not None or self.leads)
        assert self._process is not None
        assert self._process.poll() is None, self.output.read_text()

    def begin(self) -> None:
        """Start, and wait for nothing."""
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [KRAFT_WIRE, "cluster", "up", "--json", "-d", self.directory, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
            )

    def down(self, *, at_once: bool = True, number: signal.Signals = signal.SIGINT) -> int:
        """Ctrl-C, twice where it is to be quick; returns the exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        if at_once:
            process.send_signal(number)
            time.sleep(0.2)
        return end(process, signal.SIGINT if at_once else number, SECONDS_MAX)

    def kill_up(self) -> None:
        """SIGKILL ``up`` itself: its nodes go on without it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another of the cluster's commands."""
        return kraft_wire("cluster", *arguments, "--dir", str(self.directory))

    def did(self, *arguments: str) -> None:
        """Run one that must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, (done, self.output.read_text())

    def quorum(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Ask the cluster's quorum."""
        return kraft_wire("quorum", verb, "-c", self.bootstrap, *arguments)

    def described(self) -> Any:
        """What the leader says, once there is one."""

        def answered() -> str | None:
            done = self.quorum("describe", "--json")
            return done.stdout if done.returncode == 0 else None

        return json.loads(self.until(answered) or "")

    @property
    def shown(self) -> list[Any]:
        """Everything that ``up`` has printed so far."""
        return [json.loads(line) for line in self.output.read_text().splitlines()]

    @property
    def leads(self) -> bool:
        """Whether somebody leads, as ``up`` shows it."""
        shown = self.shown
        return bool(shown) and shown[-1]["leader_id"] is not None

    @property
    def news(self) -> list[str]:
        """What happened, a line each."""
        return [line for each in self.shown for line in each["news"]]

    @property
    def bootstrap(self) -> str:
        """All controllers."""
        bootstrap: str = self.shown[-1]["bootstrap_controllers"]
        return bootstrap

    def states(self) -> dict[int, str]:
        """Each node's state, as ``status`` says."""
        done = self.run("status", "--json")
        assert done.returncode == 0, done
        return {each["node_id"]: each["state"] for each in json.loads(done.stdout)["nodes"]}

    def until(self, ask: Callable[[], Answer]) -> Answer:
        """Ask until the answer is one."""
        deadline = time.monotonic() + SECONDS_MAX
        while not (answer := ask()):
            assert time.monotonic() < deadline, (self.output.read_text(), self.logs())
            time.sleep(0.05)
        return answer

    def logs(self) -> dict[str, str]:
        """The ends of all nodes' logs."""
        found = sorted(self.directory.glob("node-*.log"))
        return {each.name: each.read_text(errors="replace")[-2_000:] for each in found}

    def __enter__(self) -> ClusterCommand:
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()
