"""A few mutants of the catalogue die, and what is no mutant is named; `make mutants` kills all."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from mutants import catalogue
from mutants.__main__ import main
from mutants.campaign import run_all
from mutants.catalogue import Mutant, StaleMutant, load_all, mutated
from tests.tidiness import CHECKOUT

MUTANTS = load_all()
SAMPLE = ["M06", "M11", "M12", "M25"]
"""One of each kind of check; each takes about a second."""

ROTATING = 4
"""As many more, others in each commit."""


def sample() -> list[str]:
    """The fixed ones, and some that the commit chooses."""
    command = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    random_source = random.Random(done.stdout)
    others = [one.id for one in MUTANTS if one.id not in SAMPLE and one.check.verb != "node"]
    return SAMPLE + random_source.sample(others, ROTATING)


def test_sample_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = sample()
    assert main(["--only", ",".join(chosen)]) == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert f"{len(chosen)} mutants, {len(chosen)} killed" in printed


def harmless(title: str, new: str, old: str = "return True") -> str:
    return f"""
id = "X1"
title = "{title}"
mirrors = "none"

[check]
verb = "test"
names = ["tests/raft/test_twins.py"]

[[change]]
module = "kraft_wire.raft.peer_connections"
function = "PeerConnections.is_ready"
old = "{old}"
new = "{new}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raft").mkdir()
    return tmp_path


def planted(folder: Path, text: str) -> Mutant:
    (folder / "raft" / "X1-planted.toml").write_text(text)
    (found,) = load_all(folder)
    return found


def test_change_without_effect_survives(folder: Path) -> None:
    (result,) = run_all([planted(folder, harmless("harmless", "return not False"))], 1, print)
    assert (result.state, result.unit) == ("survived", "tests")
    assert result.needed > 3


def test_mutant_that_cannot_be_imported_is_not_killed(folder: Path) -> None:
    text = harmless("broken", "import nothing_of_that_name").replace(
        'function = "PeerConnections.is_ready"\nold = "return True"', 'old = "READY = \\"ready\\""'
    )
    (result,) = run_all([planted(folder, text)], 1, print)
    assert result.state == "broken"


def test_kill_by_a_check_that_fails_anyway_is_unsound(folder: Path) -> None:
    test = folder / "test_always_red.py"
    test.write_text("def test_red():\n    raise AssertionError\n")
    text = harmless("any", "return False").replace("tests/raft/test_twins.py", str(test))
    (result,) = run_all([planted(folder, text)], 1, print)
    assert result.state == "unsound"
    assert result.by.startswith("fails without the mutant: ")


def test_code_that_moved_is_named(folder: Path) -> None:
    with pytest.raises(StaleMutant, match=r"X1: .*stands there 0 times, not once: .* must follow"):
        mutated(planted(folder, harmless("gone", "x", "return 77")), CHECKOUT)
    text = harmless("elsewhere", "x").replace(
        "PeerConnections.is_ready", "PeerConnections.was_ready"
    )
    with pytest.raises(StaleMutant, match="there is no such function"):
        mutated(planted(folder, text), CHECKOUT)
    text = harmless("elsewhere", "x").replace("raft.peer_connections", "raft.nobody")
    with pytest.raises(StaleMutant, match=r"no such module; it is in kraft_wire/"):
        mutated(planted(folder, text), CHECKOUT)
    (result,) = run_all([planted(folder, text)], 1, print)
    assert result.state == "stale"


def test_white_space_is_no_difference_and_lines_are_indented(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(CHECKOUT / "kraft_wire/raft", copy / "kraft_wire/raft")
    old = "if connection is None or\\n  connection.state is _READY:"
    text = harmless("spaced", "if node_id:\\n    pass\\nif connection is None:", old)
    source = mutated(planted(folder, text), copy)["kraft_wire/raft/peer_connections.py"]
    assert "        if node_id:\n            pass\n        if connection is None:\n" in source


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('mirrors = "none"', ""), "mirrors"),
        (('mirrors = "none"', 'mirrors = "none"\nowner = "me"'), "unknown keys"),
        (('id = "X1"', 'id = "X2"'), "does not begin with X2"),
        (('verb = "test"', 'verb = "test"\nspeed = 3'), "speed"),
    ],
)
def test_file_that_is_not_in_its_form_is_refused(
    folder: Path, change: tuple[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        planted(folder, harmless("odd", "x").replace(*change))


def test_unknown_id_is_a_wrong_argument() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--only", "M999"])
    assert ended.value.code == 2
    assert catalogue.HERE == CHECKOUT / "mutants"
