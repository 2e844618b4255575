"""Seeds of whole runs: those that once failed, and one trace whatever Python hashes by."""

import os
import subprocess
import sys
from pathlib import Path

from tests.tidiness import CHECKOUT

__all__ = ["kept_seeds", "printed_by_hash_seed"]


def kept_seeds(beside: str, name: str = "seeds.txt") -> list[int]:
    """Read a file of seeds beside a test file: one seed a line, its story behind it."""
    lines = Path(beside).with_name(name).read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def printed_by_hash_seed(program: str) -> list[str]:
    """Run a program twice, each time with other hashes of strings, and return what it prints."""
    return [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
