"""The lanes of `make test` and `make test-all`: each test in one of them, and what is printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from tests import conftest, everything, judges, pythons, unsteady
from tests.everything import Phase
from tests.junit_reports import Timed, read_report
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
    installed = {word for line in re.findall(r"\bneed ([^#\n]*)", script) for word in line.split()}
    assert judges.PACKAGES.keys() == judges.PROGRAMS.keys()
    wanted = {package for packages in judges.PACKAGES.values() for package in packages}
    assert wanted <= installed


@pytest.mark.parametrize(
    ("verb", "paths"),
    [("coverage", everything.COVERED), ("test-simulated", everything.SIMULATED)],
)
def test_other_phases_run_what_the_lanes_leave_out(verb: str, paths: tuple[str, ...]) -> None:
    (recipe,) = re.findall(rf"^{verb}:.*\n\t(.*)", MAKEFILE, re.M)
    assert re.findall(r"(?<= )tests/\S+", recipe) == list(paths)
    assert all(f"--ignore={each}" in everything.REST for each in paths)


def test_phases_are_verbs_of_the_makefile() -> None:
    verbs = [command[1] for command in everything.PHASES.values() if command[0] == "make"]
    assert [verb for verb in verbs if not re.search(rf"^{verb}:", MAKEFILE, re.M)] == []
    assert {"check", "coverage", "test-together", "test-alone"} <= {*verbs}


def test_every_test_is_in_one_of_two_phases() -> None:
    recipes = dict(re.findall(r"^(test-[a-z]+):.*\n\t(.*)", MAKEFILE, re.M))
    together, alone = recipes["test-together"], recipes["test-alone"]
    assert '-m "not alone"' in together
    assert "$(PAIR) -m alone" in alone
    assert "--judges" not in together + alone
    assert '--judges only -m "not alone"' in recipes["test-judged"]


def test_report_of_pytest_is_read_and_counted(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert read_report(report) == []
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.a.test_b" name="test_c[1]" time="2.5"/>'
        '<testcase classname="tests.a" name="d" time="1"><failure/></testcase>'
        '<testcase classname="tests.a" name="e" time="1"><error/></testcase>'
        '<testcase classname="tests.a" name="f" time="0"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    tests = read_report(report)
    assert tests[0] == Timed("tests/a/test_b.py::test_c[1]", 2.5, "passed")
    ran = [Phase("one", 3600.0, 0), Phase("two", 125.0, 0)]
    assert everything.summary(ran, tests, 3725.0) == (
        "1 failed, 1 passed, 1 skipped, 1 error in 3725.00s (1:02:05)"
    )


class Phases:
    """Stands in for the phases: some fail, and each reports the tests that it is given."""

    def __init__(self, failing: str, report: str) -> None:
        self.ran: list[str] = []
        self.others_ran = threading.Event()
        self._failing = failing
        self._report = report

    def run(self, name: str, report: Path) -> Phase:
        self.ran.append(name)
        if self._report:
            report.write_text(self._report)
        return self._ended(name, report)

    def run_beside(self, name: str, report: Path) -> Phase:
        self.others_ran.wait()
        self.ran.append(name)
        return self._ended(name, report)

    def _ended(self, name: str, report: Path) -> Phase:
        exit_code = everything.RECIPE_FAILED if name == self._failing else 0
        return Phase(name, 60.0, exit_code, read_report(report))


CHOSEN = ["--only", "coverage", "--only", "checks", "--only", "tests"]
REPORT = (
    '<testsuite><testcase classname="tests.a" name="b" time="61">'
    '<failure message="OSError: no room&#10;left"/></testcase></testsuite>'
)


def test_phase_that_fails_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = Phases("checks", REPORT)
    monkeypatch.setattr(everything, "run", phases.run)
    assert everything.main(CHOSEN) == 1
    assert phases.ran == ["checks", "coverage", "tests"]
    *printed, last = capsys.readouterr().out.splitlines()
    assert "0:01:00  checks: FAILED" in printed
    assert "0:01:00  coverage" in printed
    assert "  183.0 s  tests/a.py" in printed
    assert printed[-3:] == ["FAILED tests/a.py::b: OSError: no room"] * 3
    assert last.startswith("checks: FAILED, 3 failed in ")


def test_nothing_follows_checks_that_cannot_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = Phases("checks", "")
    monkeypatch.setattr(everything, "run", phases.run)
    assert everything.main(CHOSEN) == 1
    assert phases.ran == ["checks"]
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("checks: FAILED, no tests ran in ")


def test_no_phase_waits_for_the_simulators(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    phases = Phases("simulated clusters", REPORT)

    def run(name: str, report: Path) -> Phase:
        phase = phases.run(name, report)
        if name == "tests that run alone":
            phases.others_ran.set()
        return phase

    monkeypatch.setattr(everything, "run", run)
    monkeypatch.setattr(everything, "run_beside", phases.run_beside)
    ended = everything.run_all(list(everything.PHASES), tmp_path)
    assert phases.ran[:4] == ["checks", "coverage", "tests", "tests that run alone"]
    assert {each.name for each in ended if not each.succeeded} == {"simulated clusters"}
    assert {each.name for each in ended} == {*everything.PHASES}


def test_a_phase_beside_others_prints_in_one_piece(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["sh", "-c", "echo begins; nice; echo fails >&2; exit 3"]
    monkeypatch.setitem(everything.PHASES, "simulated quorums", command)
    phase = everything.run_beside("simulated quorums", tmp_path / "report.xml")
    assert not phase.succeeded
    printed, errors = capfd.readouterr()
    assert printed.split("\n") == [
        "", "=== simulated quorums, beside the others", "begins", "19", "fails", "", "",
    ]  # fmt: skip
    assert errors == ""


def test_longest_files_are_kept_for_the_workers_to_begin_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "durations.json"
    monkeypatch.setattr(everything, "DURATIONS", kept)
    times = {"tests/a.py::b": 6.0, "tests/c.py::d": 20.4, "tests/a.py::c[x::y]": 5.0, "e.py::f": 9}
    everything.write_durations([Timed(name, seconds, "passed") for name, seconds in times.items()])
    assert list(json.loads(kept.read_text()).items()) == [("tests/c.py", 20), ("tests/a.py", 11)]


def test_files_that_were_timed_exist() -> None:
    timed = json.loads(everything.DURATIONS.read_text(encoding="utf-8"))
    assert [file for file in timed if not (CHECKOUT / file).is_file()] == []


def test_workers_begin_with_the_longest_file_and_keep_its_tests_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    timed = tmp_path / "durations.json"
    timed.write_text('{"b.py": 30, "c.py": 20}')
    monkeypatch.setattr(conftest, "DURATIONS", timed)
    nodeids = ["a.py::1", "b.py::1", "c.py::1", "b.py::2", "a.py::2"]
    items = [Item(nodeid) for nodeid in nodeids]
    conftest.pytest_collection_modifyitems(Worker(), items)  # type: ignore[arg-type]  # of pytest's
    assert [each.nodeid for each in items] == [
        "b.py::1",
        "b.py::2",
        "c.py::1",
        "a.py::1",
        "a.py::2",
    ]


class Item:
    """A test without marks."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid

    def get_closest_marker(self, name: str) -> None:
        """No mark."""


class Worker:
    """The settings of a parallel worker."""

    workerinput: ClassVar[dict[str, str]] = {}

    def getoption(self, name: str, default: str) -> str:
        return default


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


def test_phase_that_hangs_is_ended_and_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(everything, "PHASE_SECONDS_MAX", 0.2)
    monkeypatch.setattr(everything, "PHASES", {"slow": ["sleep", "600"], "quick": ["true"]})
    assert not everything.run("slow", tmp_path / "no.xml").succeeded
    assert "slow: no end within 0.2 s" in capsys.readouterr().out
    monkeypatch.setattr(everything, "PHASE_SECONDS_MAX", 60)
    assert everything.run("quick", tmp_path / "no.xml").succeeded


UNSTEADY_SUITE = """
import pathlib
import pytest

def fails_once(name: str) -> None:
    if not pathlib.Path(name).exists():
        pathlib.Path(name).touch()
        raise OSError("too slow")

@pytest.mark.slow
def test_unsteady() -> None:
    fails_once("unsteady")

@pytest.mark.slow
def test_broken() -> None:
    raise OSError("broken")

def test_of_our_code_alone() -> None:
    fails_once("ours")
"""

UNSTEADY_SETUP = f"""
import pytest
from test_three import fails_once

pytestmark = pytest.mark.slow

@pytest.fixture(scope="module")
def cluster() -> None:
    fails_once("cluster")

@pytest.mark.parametrize("number", range({unsteady.AGAIN_MAX + 1}))
def test_of_a_cluster(cluster: None, number: int) -> None:
    pass
"""


@pytest.fixture
def unsteady_suite(tmp_path: Path) -> Path:
    """A folder with tests of which one is unsteady."""
    (tmp_path / "test_three.py").write_text(UNSTEADY_SUITE)
    names = ("slow", "client", *judges.PROGRAMS)
    markers = "".join(f"\n  {name}: of a test" for name in names)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers ={markers}\n")
    return tmp_path


def ran(folder: Path, *names: str) -> list[Timed]:
    """Run tests of a suite, and the failed ones again."""
    report, again = folder / "report.xml", folder / "again.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"]
    subprocess.run([*command, *names], cwd=folder, check=False, capture_output=True)
    return unsteady.run_again(read_report(report), folder, again)


def test_a_test_that_starts_programs_and_passes_alone_is_unsteady(unsteady_suite: Path) -> None:
    found = {each.name.partition("::")[2]: each for each in ran(unsteady_suite)}
    assert {name: each.outcome for name, each in found.items()} == {
        "test_unsteady": "unsteady",
        "test_broken": "failed",
        "test_of_our_code_alone": "failed",
    }
    assert found["test_unsteady"].reason == "OSError: too slow"


def test_a_phase_whose_failures_are_unsteady_has_succeeded(unsteady_suite: Path) -> None:
    tests = ran(unsteady_suite, "test_three.py::test_unsteady")
    phase = Phase("tests", 60.0, everything.RECIPE_FAILED, tests)
    assert phase.succeeded
    assert everything.summary([phase], tests, 60.0) == "1 unsteady in 60.00s (0:01:00)"
    broken = Timed("test_three.py::test_broken", 1.0, "failed")
    assert not Phase("tests", 60.0, everything.RECIPE_FAILED, [*tests, broken]).succeeded
    assert not Phase("tests", 60.0, None, tests).succeeded


def test_many_failures_are_not_run_again(unsteady_suite: Path) -> None:
    failed = [
        Timed(f"test_three.py::{each}", 1.0, "failed") for each in range(unsteady.AGAIN_MAX + 1)
    ]
    assert unsteady.run_again(failed, unsteady_suite, unsteady_suite / "again.xml") == failed
    assert not (unsteady_suite / "again.xml").exists()


def test_setups_that_fail_in_one_file_are_one_failure(unsteady_suite: Path) -> None:
    (unsteady_suite / "test_shared.py").write_text(UNSTEADY_SETUP)
    found = ran(unsteady_suite, "test_shared.py")
    assert len(found) == unsteady.AGAIN_MAX + 1
    assert {each.outcome for each in found} == {"unsteady"}
    files = [Timed(f"test_{each}.py::test", 1.0, "error") for each in range(len(found))]
    again = unsteady_suite / "many.xml"
    assert unsteady.run_again(files, unsteady_suite, again) == files
    assert not again.exists()
