"""``kraft-wire cluster up`` as a process, and the other commands beside it, as a person runs them.

It is read line by line as JSON. Ending it twice is the quick way: its own children are killed then.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tests.command_forks import run_forked
from tests.process import KRAFT_WIRE, Process
from tests.waiting import HANG_S, until

Answer = TypeVar("Answer")


def kraft_wire(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    done = run_forked(arguments, timeout_s=HANG_S)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


class ClusterCommand(Process):
    """A cluster that ``cluster up`` runs in a directory."""

    def __init__(
        self, directory: Path, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(directory.parent / f"{directory.name}.up")
        self.directory = directory
        self.environment = {**os.environ, **(environment or {})}
        self._arguments = arguments

    def command(self) -> list[str]:
        return [KRAFT_WIRE, "cluster", "up", "--json", "-d", str(self.directory), *self._arguments]

    def prepare(self) -> None:
        self.log.unlink(missing_ok=True)

    def is_ready(self) -> bool:
        """Whether a node leads, as ``up`` shows it."""
        shown = self.shown
        return bool(shown) and shown[-1]["leader_id"] is not None

    def start(self) -> None:
        """Start, and wait until a node leads."""
        self.begin()
        try:
            self.await_ready()
        except BaseException:
            self.down()  # with its nodes, which SIGKILL would leave behind
            raise

    def down(self, *, at_once: bool = True, number: signal.Signals = signal.SIGINT) -> int:
        """Ctrl-C, twice where it is to be quick; returns the exit code."""
        if at_once and self.is_running:
            self.send(number)
            time.sleep(0.2)
        return self.end(signal.SIGINT if at_once else number)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another of the cluster's commands."""
        return kraft_wire("cluster", *arguments, "--dir", str(self.directory))

    def did(self, *arguments: str) -> None:
        """Run one that must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, (done, self.text)

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
        """Everything that ``up`` has printed so far, in whole lines."""
        whole = self.text.rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

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
        """Ask until the answer is true."""
        return until(ask, lambda: (self.news, self.shown[-1:], self.logs()), every_s=0.05)

    def logs(self) -> dict[str, str]:
        """The ends of all nodes' logs."""
        found = sorted(self.directory.glob("node-*.log"))
        return {each.name: each.read_text(errors="replace")[-2_000:] for each in found}

    def __exit__(self, *_: object) -> None:
        self.down()
