"""The integration tests in kafka-python's source archive, on a broker that runs already.

The archive lacks two files of their test package: an empty `__init__.py`, and `service.py`, of
which a broker that runs already needs one class. Both are made here. Tests that start a broker of
their own for SASL and SSL are left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

from tests.apache.jars import CHECKOUT, RELEASE
from tests.clients.registry import prepare
from tests.scoreboard.results import FAILED, Results, of_junit

__all__ = ["run_kafka_python"]

SECONDS_MAX = 900
TEST_SECONDS_MAX = 90
FILES = ("admin", "consumer", "producer")
SERVICE = '''"""A broker that runs already."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    stop = dump_logs = open


class SpawnedService:
    pass
'''


def sources() -> Path:
    """The archive of the installed version, unpacked."""
    name = f"kafka_python-{version('kafka-python')}"
    home = CHECKOUT / "var" / "clients" / "suites"
    folder = home / name
    if not folder.exists():
        home.mkdir(parents=True, exist_ok=True)
        wanted = f"kafka-python=={version('kafka-python')}"
        options = ["--no-binary", "kafka-python", "--no-deps", "--quiet", "--dest", str(home)]
        prepare([sys.executable, "-m", "pip", "download", *options, wanted], home)
        with tarfile.open(home / f"{name}.tar.gz") as archive:
            archive.extractall(home, filter="data")
    (folder / "test" / "__init__.py").touch()
    (folder / "test" / "service.py").write_text(SERVICE, "utf-8")
    return folder


def run_kafka_python(bootstrap: str, log: Path) -> Results:
    """Run the tests; those that fail run once more."""
    folder = sources()
    names = [f"test/integration/test_{each}_integration.py" for each in FILES]
    found = _run(folder, names, bootstrap, log)
    if FAILED in found.values():
        found |= _run(folder, ["--last-failed", *names], bootstrap, log)
    return found


def _run(folder: Path, wanted: list[str], bootstrap: str, log: Path) -> Results:
    report = log.with_suffix(".xml")
    cache = f"cache_dir={log.with_suffix('.cache')}"
    options = ["-q", "-p", "no:randomly", "-o", cache, "-o", "log_level=WARNING"]
    limits = [f"--timeout={TEST_SECONDS_MAX}", "--timeout-method=signal", f"--junitxml={report}"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "KAFKA_VERSION": RELEASE,
        "KAFKA_URI": f"kafka://{bootstrap}",
        "KAFKA_ROOT": str(folder),
    }
    with log.open("a") as output:
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *limits, *wanted],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            check=False,
            timeout=SECONDS_MAX,
        )
    return of_junit(report)
