"""`kraft-wire spark ingest` as a process that is started again with the same line."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Ingesting:
    """The verb as a process that is started again and again."""

    home: Path
    python: str
    words: list[str]
    starts: int = 0
    ended_by_itself: Counter[str] = field(default_factory=Counter)
    process: subprocess.Popen[bytes] | None = None

    @property
    def commits(self) -> int:
        """The number of the last batch that is committed, -1 before the first."""
        names = [path.name for path in (self.home / "checkpoint" / "commits").glob("[0-9]*")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def keep(self, trigger: str = "1 second") -> None:
        """Start the verb if it does not run."""
        if self.process is not None and self.process.poll() is not None:
            code = self.process.wait()
            if code != -signal.SIGKILL:
                last = self.log.read_text(errors="replace").splitlines()[-1:]
                self.ended_by_itself[f"{code}: {' '.join(last)[:160]}"] += 1
            self.process = None
        if self.process is None:
            program = str(Path(self.python).parent / "kraft-wire")
            self.starts += 1
            environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    [program, "spark", "ingest", *self.words, "--trigger", trigger],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    @property
    def log(self) -> Path:
        """What all its processes said."""
        return self.home / "ingest.log"

    @property
    def pid(self) -> int:
        """The driver's Python."""
        assert self.process is not None
        return self.process.pid
