"""An environment that has the wheel and nothing of the checkout, on a pyspark of its own.

``python -m tests.spark.wheel_environment`` makes it and prints its interpreter. It has pyspark
4.2.0, the one on which Delta works. What the wheel needs is installed once, the wheel itself each
time. The folder is ``wheel-pyspark-4.2.0`` beside Apache's jars.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.apache.jars import cache_directory

PYSPARK = "4.2.0"
CHECKOUT = Path(__file__).resolve().parents[2]
COMPLETE = ".complete"
LEFT_OUT = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME")
SECONDS_MAX = 1200


def wheel_python() -> str:
    """Build the wheel from the checkout, install it, and return the interpreter."""
    directory = cache_directory().resolve() / f"wheel-pyspark-{PYSPARK}"
    python = directory / "bin" / "python"
    with tempfile.TemporaryDirectory(prefix="kraft-wire-wheel-") as scratch:
        _run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", scratch, str(CHECKOUT))
        (wheel,) = Path(scratch).glob("*.whl")
        if not (directory / COMPLETE).exists():
            _run(sys.executable, "-m", "venv", str(directory))
            _run(
                str(python), "-m", "pip", "install", "-q", f"pyspark=={PYSPARK}", f"{wheel}[spark]"
            )
            (directory / COMPLETE).write_text(f"{PYSPARK}\n")
        pip = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall"]
        _run(*pip, str(wheel))
    where = _run(str(python), "-c", "import kraft_wire; print(kraft_wire.__file__)").strip()
    assert where.startswith(str(directory)), where
    return str(python)


def clean_environment() -> dict[str, str]:
    """This process's environment without what would lead to the checkout."""
    return {key: value for key, value in os.environ.items() if key not in LEFT_OUT}


def _run(*command: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
        cwd=tempfile.gettempdir(),
        env=clean_environment(),
    )
    assert done.returncode == 0, f"{' '.join(command)}: {(done.stdout + done.stderr)[-2000:]}"
    return done.stdout


if __name__ == "__main__":
    print(wheel_python())
