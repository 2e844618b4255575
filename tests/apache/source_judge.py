"""A judge in one file of Java source, run against the classes of the release."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.apache import jars

__all__ = ["answers_of"]


def answers_of(source: Path, lines: Iterable[str], *, heap: str = "256m") -> str:
    """Return what a judge prints about lines of its input."""
    done = subprocess.run(
        ["java", f"-Xmx{heap}", "-cp", jars.classpath(), str(source)],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
