"""Each import contract, proved by a violation that is planted in a copy of the package's skeleton.

A contract that nothing can break is decoration; here every one is broken once and must say so.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidiness import CHECKOUT

LINT_IMPORTS = str(Path(sys.executable).parent / "lint-imports")
DOORS = {
    "kraft_wire/storage/os_files.py": "import fcntl\nimport os\n",
    "kraft_wire/sim/runs/campaign.py": "import time\n",
    "kraft_wire/sim/crash/runs.py": "import time\n",
    "kraft_wire/sim/quorum_model/__main__.py": "import time\n",
}
"""What these modules import, and nobody else beside them may."""

SINGLE_MODULES = (
    *(path.relative_to(CHECKOUT).as_posix() for path in CHECKOUT.glob("kraft_wire/*.py")),
    "codegen/__init__.py",
)
PLANTED = {
    "layers": ("kraft_wire/wire/planted.py", "import kraft_wire.broker\n"),
    "layers, between siblings": ("kraft_wire/broker/planted.py", "import kraft_wire.storage\n"),
    "layers, metadata stands below": (
        "kraft_wire/metadata/planted.py",
        "import kraft_wire.controller\n",
    ),
    "layers, exhaustive": ("kraft_wire/utils/__init__.py", ""),
    "logs": ("kraft_wire/raft/planted.py", "import kraft_wire.metadata\n"),
    "pure": ("kraft_wire/node/planted.py", "import asyncio\n"),
    "pure, in a function": (
        "kraft_wire/storage/planted.py",
        "def now() -> float:\n    import time\n\n    return time.time()\n",
    ),
    "files": ("kraft_wire/controller/planted.py", "from pathlib import Path\n"),
    "files, beside the door": ("kraft_wire/storage/planted.py", "import os\n"),
    "simulated": ("kraft_wire/sim/planted.py", "from time import monotonic\n"),
    "rooms": ("kraft_wire/sim/judge/planted.py", "import kraft_wire.sim.clients\n"),
    "model": ("kraft_wire/sim/quorum_model/planted.py", "import kraft_wire.raft\n"),
    "judge": ("kraft_wire/conformance/planted.py", "import kraft_wire.broker\n"),
    "codegen": ("codegen/planted.py", "import kraft_wire.model\n"),
    "codegen, the other way": ("kraft_wire/cli/planted.py", "import codegen\n"),
    "layers, Spark is no judge's": (
        "kraft_wire/audit/planted.py",
        "import kraft_wire.spark.planted\n",
    ),
    "light node": ("kraft_wire/server/planted.py", "import pandas\n"),
    "light node, beside Spark": ("kraft_wire/cli/planted.py", "import pyspark\n"),
    "columns": ("kraft_wire/server/planted.py", "import numpy\n"),
    "columns, in a function": (
        "kraft_wire/cli/planted.py",
        "def processors() -> int:\n    import pyarrow\n\n    return pyarrow.cpu_count()\n",
    ),
}


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """The packages without their code, with the real configuration."""
    for real in CHECKOUT.glob("kraft_wire/**/__init__.py"):
        copy = tmp_path / real.relative_to(CHECKOUT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()
    for module in SINGLE_MODULES:
        (tmp_path / module).parent.mkdir(exist_ok=True)
        (tmp_path / module).touch()
    for door, source in DOORS.items():
        (tmp_path / door).write_text(source)
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the real linter with the real contracts over a tree."""
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache"],
        cwd=directory,
        env={"PYTHONPATH": str(directory), "PATH": "", "HOME": str(directory)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_skeleton_keeps_every_contract(skeleton: Path) -> None:
    result = lint(skeleton)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("contract", PLANTED)
def test_planted_violation_breaks_its_contract(skeleton: Path, contract: str) -> None:
    path, source = PLANTED[contract]
    planted = skeleton / path
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(source)
    result = lint(skeleton)
    assert result.returncode != 0, result.stdout
    name = contract.split(",")[0]
    broken = [line for line in result.stdout.splitlines() if " BROKEN" in line]
    assert [line for line in broken if line.startswith(f"{name}:")], result.stdout + result.stderr
