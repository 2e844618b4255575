"""A short chaos run leaves clean directories; acknowledged records taken away are missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.chaos import WRITES_MIN, Left, audited, planted, run_chaos

CYCLES = 2


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return run_chaos(tmp_path_factory.mktemp("chaos"), CYCLES, 2, 7, is_networked=False)


def test_directories_after_kills_and_pauses_have_no_error(left: Left) -> None:
    found, summary = audited(list(left.directories.values()), "--acks", str(left.acks))
    assert found == []
    assert summary["nodes"] == 3
    assert len(left.acknowledged) >= WRITES_MIN


def test_losses_are_told_by_the_ledger_once(left: Left, tmp_path: Path) -> None:
    assert planted(left, tmp_path, victims=[2]) == []
