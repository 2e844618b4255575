"""`kraft-wire spark ingest` as a process that is started again with the same line."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

from tests.process import Process


class Ingesting(Process):
    """The verb as a process that is started again and again."""

    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}

    def __init__(self, home: Path, python: str, words: list[str]) -> None:
        super().__init__(home / "ingest.log")
        self.home = home
        self.starts = 0
        self.ended_by_itself: Counter[str] = Counter()
        self._verb = [str(Path(python).parent / "kraft-wire"), "spark", "ingest", *words]
        self._trigger = ""

    def command(self) -> list[str]:
        return [*self._verb, "--trigger", self._trigger]

    @property
    def commits(self) -> int:
        """The number of the last batch that is committed, -1 before the first."""
        names = [path.name for path in (self.home / "checkpoint" / "commits").glob("[0-9]*")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def keep(self, trigger: str = "1 second") -> None:
        """Start the verb if it does not run."""
        if self.died:
            code = self.wait()
            if code != -signal.SIGKILL:
                last = self.text.splitlines()[-1:]
                self.ended_by_itself[f"{code}: {' '.join(last)[:160]}"] += 1
        if not self.is_running:
            self.starts += 1
            self._trigger = trigger
            self.begin()
