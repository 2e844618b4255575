"""A campaign from its map to its record: on one file of tests and one of its functions."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mutants.random.__main__ import _kept, _left
from mutants.random.campaign import Bounds, Outcome, chosen_seeds, chosen_tests
from mutants.random.candidates import Candidate, source_of
from mutants.random.coverage_map import Judge
from mutants.random.report import by_package, rate, survivors
from tests.tidiness import CHECKOUT

JUDGING = "tests/storage/test_leader_epochs.py"
"""What judges in the campaign below."""

CODE = """
import json, sys
from pathlib import Path
from mutants.random import campaign, candidates, coverage_map, fork_server
fork_server.preload()
folder = Path(sys.argv[1])
coverage_map.build(print, ["JUDGING"], folder)
known = coverage_map.CoverageMap(folder)
running = campaign.Campaign(known, campaign.Bounds(tests_s=20, hang_s=1))
path = "kraft_wire/storage/leader_epochs.py"
source = candidates.source_of(path)
for old, new, reason in json.loads(sys.argv[2]):
    assert source.count(old) == 1, old
    sources = {path: source.replace(old, new)}
    mutant = candidates.Candidate("x", "storage", path, "", old, new, sources, reason)
    print(json.dumps(running.run(mutant).to_json()))
running.close()
coverage_map.build(print, ["JUDGING"], folder)
""".replace("JUDGING", JUDGING)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What became of a dead, a harmless, a hanging, a broken, an equivalent and a swapped one."""
    begin = "self._begin(epoch, start_offset)\n        self.is_unsaved"
    changes = [
        ("(epoch <= epochs[-1] or", "(epoch < epochs[-1] or", ""),
        ("(epoch <= epochs[-1] or", "(epoch <= 0 + epochs[-1] or", ""),
        ("self._epochs, self._offsets = epochs, offsets", "while True: pass", ""),
        ("class LeaderEpochs:", "import nothing_of_that_name\n\n\nclass LeaderEpochs:", ""),
        ("(epoch <= epochs[-1] or", "(epoch < epochs[-1] or", "for a reason"),
        (begin, begin.replace("epoch, start_offset", "start_offset, epoch"), ""),
    ]
    folder = tmp_path_factory.mktemp("map")
    command = [sys.executable, "-c", CODE, str(folder), json.dumps(changes)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [one for one in lines if one.startswith("map ")] == lines[
        :1
    ]  # the second call adds nothing
    return [json.loads(one) for one in lines[1:]]


def test_states_are_told_apart(outcomes: list[dict[str, Any]]) -> None:
    states = [one["state"] for one in outcomes]
    assert states == ["tests", "survived", "timeout", "tests", "equivalent", "tests"]
    dead, harmless, _, broken, equivalent, swapped = outcomes
    assert dead["by"].startswith(JUDGING)
    assert harmless["tests_run"] == harmless["covering_tests"] > 3
    assert broken["by"] == "import"
    assert equivalent["why"] == "for a reason"
    assert (swapped["by"], swapped["tests_run"]) == ("tests/test_argument_names.py", 0)
    assert swapped["why"] == "_begin(epoch=start_offset)"
    assert equivalent["tests_run"] == 0


def outcome(state: str, package: str = "raft", **more: Any) -> Outcome:
    return Outcome(f"{state}-1", package, "m.py:1 f", "sign", "a + b", "a - b", state, **more)


def test_rate_leaves_out_what_is_not_executed_or_equivalent() -> None:
    states = ["tests", "simulator", "timeout", "survived", "equivalent", "not executed"]
    counts = by_package([*map(outcome, states), outcome("tests", "wire")])
    assert list(counts) == ["raft", "wire", "all"]
    assert rate(counts["raft"]) == 0.75
    assert rate(counts["all"]) == 0.8


def test_survivor_is_listed_with_the_line_that_runs_it_again() -> None:
    (text,) = survivors([outcome("survived", closest=["tests/a.py::b"]), outcome("tests")])
    assert "--only survived-1" in text
    assert "tests/a.py::b" in text


def judge(name: str, seconds: float, breadth: int = 10) -> Judge:
    return Judge(name, seconds, breadth)


def test_chosen_are_the_closest_and_the_cheapest_file_by_file() -> None:
    tests = [judge(f"tests/a.py::{number}", 1, number) for number in range(9)]
    tests += [judge("tests/b.py::cheap", 0.1, 90), judge("tests/c.py::dear", 30, 100)]
    chosen = [one.name for one in chosen_tests(tests, Bounds(tests_s=5))]
    assert chosen[0] == "tests/b.py::cheap"
    assert chosen[1:] == [f"tests/a.py::{number}" for number in range(4)]
    assert len(chosen_tests(tests, Bounds(tests=3))) == 3
    assert {one.name[:10] for one in chosen_tests(tests, Bounds(files=1))} == {"tests/a.py"}


def test_half_of_the_seeds_are_the_cheapest_and_half_reach_most() -> None:
    seeds = [
        judge(f"{kind}:{seed}", 9 - seed, 90 - seed)
        for kind in ("quorum", "membership", "cluster", "groups")
        for seed in range(9)
    ]
    chosen = [one.name for one in chosen_seeds(seeds, Bounds(quorum_seeds=3, cluster_seeds=2))]
    assert sorted(chosen) == [
        *("cluster:0", "cluster:8", "groups:8", "membership:8"),
        *("quorum:0", "quorum:7", "quorum:8"),
    ]


def candidate(name: str, reason: str = "") -> Candidate:
    return Candidate(name, "raft", "m.py:1 f", "sign", "a + b", "a - b", {}, reason)


def test_record_is_taken_up_again(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    assert _kept(record) == _kept(None) == {}
    lines = [outcome("survived"), outcome("tests"), outcome("equivalent"), outcome("broken")]
    lines[3].id = "survived-1"  # the same, run once more: the newer line counts
    record.write_text("".join(json.dumps(one.to_json()) + "\n" for one in lines[:3]))
    kept = _kept(record)
    assert kept["tests-1"] == lines[1]
    chosen = [candidate(name) for name in ("survived-1", "tests-1", "new")]
    chosen += [candidate("equivalent-1", "for a reason")]
    assert [one.id for one in _left(chosen, kept, False)] == ["new"]
    assert [one.id for one in _left(chosen, kept, True)] == ["survived-1", "new"]
    explained = [candidate("survived-1", "for a reason"), candidate("equivalent-1")]
    assert _left(explained, kept, False) == explained, "what is explained now, and what no more"
    with record.open("a") as file:
        file.write(json.dumps(lines[3].to_json()) + "\n")
    assert _kept(record)["survived-1"].state == "broken"


def test_mutant_shows_its_change() -> None:
    path = "kraft_wire/raft/elections.py"
    text = source_of(path).replace("> voters", ">= voters")
    diff = Candidate("x", "raft", path, "", "", "", {path: text + "# end\n"}).diff()
    assert "+# end" in diff


@pytest.mark.parametrize("arguments", [["--jobs", "0"], ["--count", "0"], ["--judges", "luck"]])
def test_wrong_arguments_end_with_2(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "mutants.random", *arguments]
    assert subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False).returncode == 2


SHARING = """
import notes
import pytest

@pytest.fixture(scope="module")
def made(): notes.ran.append("made")

@pytest.fixture
def each(made): notes.ran.append("each")

def test_first(each): notes.ran.append("first")
def test_alone(): notes.ran.append("alone")
def test_second(each): notes.ran.append("second")
"""
LISTENING = """
import json, sys, types
ran = []
sys.modules["notes"] = types.SimpleNamespace(ran=ran)
from mutants.random.judges import run_tests
def took():
    text = ",".join(ran)
    ran.clear()
    return text
lines = []
run_tests(lines.append, [sys.argv[1]], took_hits=took)
print(json.dumps([line for line in lines if "test" in line]))
"""


def test_what_makes_a_shared_fixture_counts_for_every_test_that_has_it(tmp_path: Path) -> None:
    """The first test makes it; a change of what makes it is the others' matter too."""
    (tmp_path / "test_sharing.py").write_text(SHARING)
    command = [sys.executable, "-c", LISTENING, str(tmp_path / "test_sharing.py")]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    found = {
        row["test"].partition("::")[2]: (row["hits"], [each for each in row["more_hits"] if each])
        for row in rows
    }
    assert found == {
        "test_first": ("each,first", ["made"]),
        "test_alone": ("alone", []),
        "test_second": ("each,second", ["made"]),
    }
