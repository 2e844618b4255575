"""docs/TESTING.md and docs/FAULTS.md, executed: the first blocks, and the file of rules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kraft_wire.testing.faults.documents import read_rules
from kraft_wire.testing.faults.rule import Effect
from tests.tidiness import CHECKOUT
from tests.waiting import HANG_S

PAGES = ("TESTING.md", "FAULTS.md")


def blocks(page: str, language: str) -> list[str]:
    text = (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.client
@pytest.mark.parametrize("page", PAGES)
def test_first_block_of_a_page_is_a_test_that_passes(page: str, tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(blocks(page, "python")[0])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_rules_of_the_page_are_rules() -> None:
    (text,) = blocks("FAULTS.md", "yaml")
    assert [each.fault.effect for each in read_rules(text)] == [
        Effect.INJECT_ERROR,
        Effect.DELAY,
        Effect.DISCONNECT,
    ]


def test_page_names_every_effect() -> None:
    text = (CHECKOUT / "docs" / "FAULTS.md").read_text(encoding="utf-8")
    assert [each.value for each in Effect if f"| `{each.value}(" not in text] == []
