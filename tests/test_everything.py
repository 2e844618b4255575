"""The lanes of `make test` and `make test-all`: each test in one of them, and what is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import everything, judges, pythons
from tests.everything import Phase, Timed
from tests.tidiness import CHECKOUT

MAKEFILE = (CHECKOUT / "Makefile").read_text(encoding="utf-8")

SUITE = """
import pytest

def test_plain() -> None:
    pass

@pytest.mark.java
@pytest.mark.kcat
def test_with_two_judges() -> None:
    pass
"""


def lane(folder: Path, *options: str, ci: str = "") -> tuple[int, str]:
    """Run a suite of two tests, with no judge at hand, under this suite's rules."""
    file = folder / "test_two.py"
    file.write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "tests.conftest"]
    command += ["-c", str(CHECKOUT / "pyproject.toml"), *options, str(file)]
    environment = {**os.environ, "PATH": "", "PYTHONPATH": str(CHECKOUT), "CI": ci}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_lane_without_judges_names_those_it_left_out(tmp_path: Path, workers: str) -> None:
    code, printed = lane(tmp_path, "--judges", "without", "-n", workers, ci="true")
    assert (code, "test_with_two_judges" in printed) == (0, False), printed
    assert "test_plain" in printed
    assert re.search(
        r"^java +1 tests? .*apt-get install default-jdk-headless maven$", printed, re.M
    )
    assert re.search(r"^kcat +1 tests? .*apt-get install kcat$", printed, re.M)
    assert "`make test-all`" in printed


def test_lane_of_judges_fails_in_ci_where_one_is_missing(tmp_path: Path) -> None:
    code, printed = lane(tmp_path, "--judges", "only", ci="true")
    assert (code, "test_plain" in printed) == (1, False), printed
    assert "not run: java, javac, mvn, kcat missing" in printed


@pytest.mark.parametrize("workers", ["0", "2"])
def test_whole_suite_lists_what_lacks_a_judge(tmp_path: Path, workers: str) -> None:
    code, printed = lane(tmp_path, "-n", workers)
    assert (code, "1 passed, 1 skipped" in printed) == (0, True), printed
    assert "test_with_two_judges: not run: java, javac, mvn, kcat missing" in printed


def test_ci_installs_the_packages_that_a_person_is_told_of() -> None:
    script = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8")
    installed = {word for line in re.findall(r"^need (.*)$", script, re.M) for word in line.split()}
    assert judges.PACKAGES.keys() == judges.PROGRAMS.keys()
    wanted = {package for packages in judges.PACKAGES.values() for package in packages}
    assert wanted <= installed


def test_coverage_runs_what_the_lanes_leave_out() -> None:
    (recipe,) = re.findall(r"^coverage:.*\n\t(.*)", MAKEFILE, re.M)
    assert re.findall(r"(?<= )tests/\S+", recipe) == list(everything.COVERED)


def test_phases_are_verbs_of_the_makefile() -> None:
    verbs = [command[1] for command in everything.PHASES.values() if command[0] == "make"]
    assert [verb for verb in verbs if not re.search(rf"^{verb}:", MAKEFILE, re.M)] == []
    assert {"check", "coverage", "test", "test-judged"} <= {*verbs}


def test_report_of_pytest_is_read_and_counted(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert everything.tests_of(report) == []
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.a.test_b" name="test_c[1]" time="2.5"/>'
        '<testcase classname="tests.a" name="d" time="1"><failure/></testcase>'
        '<testcase classname="tests.a" name="e" time="1"><error/></testcase>'
        '<testcase classname="tests.a" name="f" time="0"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    tests = everything.tests_of(report)
    assert tests[0] == Timed("tests/a/test_b.py::test_c[1]", 2.5, "passed")
    ran = [Phase("one", 3600.0, True), Phase("two", 125.0, True)]
    assert everything.summary(ran, tests) == (
        "1 failed, 1 passed, 1 skipped, 1 error in 3725.00s (1:02:05)"
    )


def test_first_phase_that_fails_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run(name: str, report: Path) -> Phase:
        ran.append(name)
        return Phase(name, 60.0, name != "coverage")

    monkeypatch.setattr(everything, "run", run)
    assert everything.main(
        ["--only", "coverage", "--only", "checks", "--only", "tests with judges"]
    )
    assert ran == ["checks", "coverage"]
    printed = capsys.readouterr().out
    assert "0:01:00  checks\n0:01:00  coverage\n" in printed
    last = printed.splitlines()[-1]
    assert last == "coverage: FAILED, no tests ran in 120.00s (0:02:00)"


def test_missing_python_is_named_and_the_others_are_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pythons.supported()[:3] == ["3.11", "3.12", "3.13"]
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        if command[0] == "absent":
            raise FileNotFoundError
        return subprocess.CompletedProcess(command, 0, stdout="3.11\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert pythons.main(["absent", "present"]) == 0
    assert ran[-1] == ["make", "test", "PYTHON=present", "VENV=.venv/pythons/3.11"]
    assert capsys.readouterr().out.splitlines() == [
        "absent: not run: there is no such interpreter here",
        "present: passed",
    ]
    assert pythons.main(["absent"]) == 1
