"""The short scenarios of mixed quorums, and a few cycles of chaos; `make mixed` runs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apache.jars import RELEASE
from tests.mixed.chaos import Chaos
from tests.mixed.scenarios import SCENARIOS
from tests.mixed.steps import Steps

pytestmark = [pytest.mark.java, pytest.mark.slow]

CYCLES = 4
SHORT = ("observer", "voter", "leader", "join-apache", "join-ours", "observer-3.9.1", "tools")


@pytest.mark.parametrize("name", SHORT)
def test_a_scenario_of_a_mixed_quorum_holds(name: str, tmp_path: Path) -> None:
    steps = Steps(name)
    SCENARIOS[name](tmp_path, steps)
    assert steps.figures


@pytest.mark.parametrize("makes", [(RELEASE, RELEASE, "ours"), (RELEASE, "ours", "ours")])
def test_a_mixed_quorum_survives_kills_pauses_and_stops(
    makes: tuple[str, ...], tmp_path: Path
) -> None:
    chaos = Chaos(tmp_path, dict(enumerate(makes, start=1)), seed=3, say=print)
    verdict = chaos.run(CYCLES, seconds_max=300)
    assert verdict.is_good, verdict.lines()
    assert verdict.cycles == CYCLES
    assert verdict.changes > 0
