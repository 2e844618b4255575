"""The examples of docs/TESTING.md, run as a user runs them: in a directory without our settings."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidiness import CHECKOUT
from tests.waiting import HANG_S

EXAMPLES = CHECKOUT / "examples" / "testing"

pytestmark = pytest.mark.client


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A copy of the examples."""
    for each in EXAMPLES.glob("test_*.py"):
        shutil.copy(each, tmp_path)
    return tmp_path


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["one process", "pytest-xdist"])
def test_examples_pass_under_pytest(directory: Path, options: list[str]) -> None:
    done = run(directory, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 passed" in done.stdout


def test_example_passes_under_unittest(directory: Path) -> None:
    done = run(directory, "-m", "unittest", "-q", "test_with_unittest")
    assert done.returncode == 0, done.stderr
    assert "Ran 2 tests" in done.stderr


def test_plugin_imports_nothing_of_the_package_until_a_test_asks(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\n\ndef test_nothing():\n"
        "    assert 'pytest_kraft_wire' in sys.modules\n"
        "    assert [each for each in sys.modules if each.startswith('kraft_wire')] == []\n"
    )
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
