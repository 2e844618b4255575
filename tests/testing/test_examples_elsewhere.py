"""The examples in other languages, run by their own test runners."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidiness import CHECKOUT
from tests.waiting import HANG_S


@pytest.mark.parametrize(
    ("language", "command"),
    [
        pytest.param("node", ["node", "--test"], marks=pytest.mark.node),
        pytest.param("go", ["go", "test", "-count=1", "./..."], marks=pytest.mark.go),
        pytest.param("java", ["mvn", "-q", "-B", "test"], marks=pytest.mark.java),
    ],
)
def test_example_passes(language: str, command: list[str], tmp_path: Path) -> None:
    directory = tmp_path / language
    shutil.copytree(CHECKOUT / "examples" / "testing" / language, directory)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=2 * HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
