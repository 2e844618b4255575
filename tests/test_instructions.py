"""Instructions of the hot paths: no request may cost more than its budget allows."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import instructions
from benchmarks.instructions import Budgets, Row, count, load_budgets, not_comparable, rows_of
from benchmarks.instructions_cases import CASES


def budgets_of(figures: Mapping[str, int], interpreter: str = sys.version) -> Budgets:
    """Budgets of this machine."""
    return Budgets(interpreter, instructions.platform.machine(), figures)


@pytest.mark.valgrind
@pytest.mark.slow
def test_no_hot_path_executes_more_instructions_than_its_budget() -> None:
    """`python -m benchmarks.instructions --write` makes a wanted growth the new budget."""
    budgets = load_budgets()
    reason = not_comparable(budgets)
    if reason is not None:
        pytest.skip(reason)
    rows = rows_of(count(list(CASES)), budgets.instructions)
    assert [row.name for row in rows] == list(CASES)
    assert [row for row in rows if row.is_over] == []


def test_every_case_has_a_budget() -> None:
    assert list(load_budgets().instructions) == list(CASES)


@pytest.mark.parametrize(
    ("instructions", "budget", "is_over"),
    [(1_030, 1_000, False), (1_031, 1_000, True), (500, 1_000, False), (1, None, True)],
)
def test_three_percent_more_are_allowed(
    instructions: int, budget: int | None, is_over: bool
) -> None:
    assert Row("case", instructions, budget).is_over is is_over


def test_another_interpreter_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions.shutil, "which", lambda _: "/usr/bin/valgrind")
    assert not_comparable(budgets_of({})) is None
    reason = not_comparable(budgets_of({}, "3.99"))
    assert reason is not None
    assert reason.startswith("the budgets are for Python 3.99 on ")


def test_a_machine_without_valgrind_says_so_and_counts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(instructions.shutil, "which", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["instructions"])
    monkeypatch.setattr(instructions, "count", lambda names: pytest.fail("counted"))
    assert instructions.main() == 0
    assert "not counted: valgrind is not installed" in capsys.readouterr().out


def test_a_case_over_its_budget_fails_the_command_until_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first, second, *_ = CASES
    path = tmp_path / "instructions.json"
    budgets = {first: 1_000, second: 700}
    path.write_text(json.dumps(vars(budgets_of(budgets))))
    monkeypatch.setattr(instructions, "BUDGETS", path)
    monkeypatch.setattr(instructions.shutil, "which", lambda _: "/usr/bin/valgrind")
    monkeypatch.setattr(instructions, "count", lambda names: dict.fromkeys(names, 2_000))

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["instructions", "--json", "--only", first, *arguments])
        return instructions.main()

    assert run() == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row == {"name": first, "instructions": 2_000, "budget": 1_000, "ratio": 2.0}
    assert run("--write") == 0
    assert load_budgets() == budgets_of({first: 2_000, second: 700})
    assert run() == 0
