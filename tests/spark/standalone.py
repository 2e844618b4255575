"""A standalone Spark cluster: a master and workers as processes on 127.0.0.1, from pip's pyspark.

Ports are chosen by the system. Whose pyspark it is, and so where the workers look for Python, says
an interpreter. Does not look into Spark: what is ready is read from the logs.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.process import Process

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
_READY = re.compile(
    r"Starting Spark master at (spark://[\d.]+:\d+)|Successfully registered with master"
)


def spark_home(python: str) -> str:
    """The folder of an interpreter's pyspark, which is a whole Spark."""
    script = "import os, pyspark; print(os.path.dirname(pyspark.__file__))"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Daemon(Process):
    """A master or a worker, which is ready when its log says so."""

    def __init__(self, home: Path, name: str, spark_home: str, words: Sequence[str]) -> None:
        super().__init__(home / f"{name}.log")
        self.environment = os.environ | {
            "SPARK_HOME": spark_home,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(home / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        self._command = [f"{spark_home}/bin/spark-class", *words]

    def command(self) -> list[str]:
        return self._command

    def is_ready(self) -> bool:
        return _READY.search(self.text) is not None


class Standalone:
    """Master and workers; `url` is what `--master` takes."""

    def __init__(self, home: Path, python: str, *, workers: int = 2, memory_mb: int = 1024) -> None:
        self.home = home
        self.url = ""
        self.workers: list[Daemon] = []
        self._master: Daemon | None = None
        self._count = workers
        self._memory_mb = memory_mb
        self._spark_home = spark_home(python)
        home.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Standalone:
        try:
            master = self._master = self._daemon("master", MASTER)
            master.start()
            self.url = _READY.findall(master.text)[0]
            memory = ["--cores", "1", "--memory", f"{self._memory_mb}m"]
            work = ["--work-dir", str(self.home / "work")]
            for number in range(self._count):
                self.workers.append(
                    self._daemon(f"worker-{number}", WORKER, *work, *memory, self.url)
                )
                self.workers[-1].begin()
            for worker in self.workers:
                worker.await_ready()
        except BaseException:
            self.close()
            raise
        return self

    def _daemon(self, name: str, program: str, *arguments: str) -> Daemon:
        place = ["--webui-port", "0", "--host", "127.0.0.1", "--port", "0"]
        return Daemon(self.home, name, self._spark_home, [program, *place, *arguments])

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
            process.stop()
        self.workers, self._master = [], None
