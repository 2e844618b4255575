"""Parallel workers share out whole files, and a worker that dies costs the test that it ran."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.tidiness import CHECKOUT
from tests.waiting import HANG_S
from tests.whole_files import GROUPS, grouped, sharers

PLAIN = "def test_{}(): pass\n"
DEADLY = "import os\ndef test_{}(): os.kill(os.getpid(), 9)\n"
FILES = {
    "first": [PLAIN, PLAIN, PLAIN],
    "second": [PLAIN, DEADLY, PLAIN, PLAIN, PLAIN],
    **{f"single{number}": [PLAIN] for number in range(4)},
    "third": [PLAIN, PLAIN, DEADLY],
    "last": [PLAIN],
}


def run(folder: Path, workers: int) -> str:
    """Run the files in their order; return what pytest prints."""
    paths = []
    for name, tests in FILES.items():
        paths.append(folder / f"test_{name}.py")
        text = "".join(test.format(number) for number, test in enumerate(tests))
        paths[-1].write_text(text)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "xdist", "-p", "tests.whole_files"]
    command += ["-c", os.devnull, "--rootdir", str(folder)]
    command += [
        "-n",
        str(workers),
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        *map(str, paths),
    ]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 1, done
    return done.stdout


def test_worker_that_dies_fails_its_test_and_the_others_run_the_rest(tmp_path: Path) -> None:
    count = sum(map(len, FILES.values()))
    for workers in (1, 2):
        printed = run(tmp_path, workers)
        assert f"2 failed, {count - 2} passed" in printed, printed
        crashed = re.findall(r"crashed while running '.*test_(\w+\.py::test_\d)'", printed)
        assert set(crashed) == {"second.py::test_1", "third.py::test_2"}


def test_file_stays_with_one_worker(tmp_path: Path) -> None:
    printed = run(tmp_path, 2)
    found = re.findall(r"\[(gw\d)\].* PASSED .*test_first\.py::test_\d", printed)
    assert (len(found), len(set(found))) == (3, 1)


def test_files_of_one_session_are_in_groups_of_about_one_length() -> None:
    seconds = {"a": 9.0, "b": 5.0, "c": 3.0, "d": 2.0}
    chosen = grouped(["d", "new", "c", "b", "a"], seconds)
    assert len(set(chosen.values())) == GROUPS == 2
    assert chosen["a"] != chosen["b"] == chosen["c"]
    totals = [
        sum(seconds.get(file, 0) for file in chosen if chosen[file] == each)
        for each in set(chosen.values())
    ]
    assert sorted(totals) == [9.0, 10.0]


def test_files_that_ask_for_the_session_share_one(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "spark"
    folder.mkdir(parents=True)
    (folder / "test_rows.py").write_text("def test_rows(spark: SparkSession) -> None: ...\n")
    (folder / "test_plans.py").write_text("def test_plans() -> None: ...\n")
    (folder / "rows.py").write_text("def rows(spark: SparkSession) -> None: ...\n")
    assert sharers(tmp_path) == ["tests/spark/test_rows.py"]
    assert "tests/spark/test_apache_views.py" in sharers(CHECKOUT)
