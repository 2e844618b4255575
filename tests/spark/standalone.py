"""A standalone Spark cluster: a master and workers as processes on 127.0.0.1, from pip's pyspark.

Ports are chosen by the system. Whose pyspark it is, and so where the workers look for Python, says
an interpreter. Does not look into Spark: what is ready is read from the logs.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType

from tests.ending import end

READY_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 60.0
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
_ADDRESS = re.compile(r"Starting Spark master at (spark://[\d.]+:\d+)")
_REGISTERED = re.compile(r"Successfully registered with master")


def spark_home(python: str) -> str:
    """The folder of an interpreter's pyspark, which is a whole Spark."""
    script = "import os, pyspark; print(os.path.dirname(pyspark.__file__))"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Standalone:
    """Master and workers; `url` is what `--master` takes."""

    def __init__(self, home: Path, python: str, *, workers: int = 2, memory_mb: int = 1024) -> None:
        self.home = home
        self.url = ""
        self.workers: list[subprocess.Popen[bytes]] = []
        self._master: subprocess.Popen[bytes] | None = None
        self._count = workers
        self._memory_mb = memory_mb
        self._spark_home = spark_home(python)
        home.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Standalone:
        try:
            self._master = self._started("master", MASTER, "--host", "127.0.0.1", "--port", "0")
            self.url = self._said("master", _ADDRESS, self._master)[1]
            for number in range(self._count):
                memory = ["--cores", "1", "--memory", f"{self._memory_mb}m"]
                work = str(self.home / "work")
                place = ["--host", "127.0.0.1", "--port", "0", "--work-dir", work]
                name = f"worker-{number}"
                self.workers.append(self._started(name, WORKER, *place, *memory, self.url))
            for number, process in enumerate(self.workers):
                self._said(f"worker-{number}", _REGISTERED, process)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process; executors end with their worker."""
        for process in [*self.workers, *([self._master] if self._master else [])]:
            end(process, signal.SIGTERM, STOP_SECONDS_MAX)
        self.workers, self._master = [], None

    def _started(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [f"{self._spark_home}/bin/spark-class", program, "--webui-port", "0", *arguments]
        environment = os.environ | {
            "SPARK_HOME": self._spark_home,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.home / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with (self.home / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _said(
        self, name: str, pattern: re.Pattern[str], process: subprocess.Popen[bytes]
    ) -> re.Match[str]:
        """Wait for a line of a process's log."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        log = self.home / f"{name}.log"
        while (match := pattern.search(log.read_text(errors="replace"))) is None:
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
            time.sleep(0.05)
        return match
